package telemetry

// SetCircuit shows the state of a route's circuit: closed, half_open or open.
func (m *Metrics) SetCircuit(group, channel, model, state string) {
	v := 0.0
	switch state {
	case "half_open":
		v = 1
	case "open":
		v = 2
	}
	m.circuits.of([3]string{group, channel, m.model(model)}).Set(v)
}

// KeepCircuits drops the circuits of channels that the configuration no longer has.
func (m *Metrics) KeepCircuits(wanted func(group, channel string) bool) {
	for _, k := range m.circuits.keep(func(k [3]string) bool { return wanted(k[0], k[1]) }) {
		m.circuitVec.DeleteLabelValues(k[0], k[1], k[2])
	}
}

// SetInvestigations shows how many investigations of a kind are open.
func (m *Metrics) SetInvestigations(kind string, n int) {
	m.investigations.of([1]string{kind}).Set(float64(n))
}

// SetLedgerQueue shows how many records wait for the ledger's writer.
func (m *Metrics) SetLedgerQueue(n int) { m.ledgerQueue.Set(float64(n)) }
