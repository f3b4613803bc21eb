package telemetry

// SetCircuit shows the state of a route's circuit: closed, half_open or open.
func (m *Metrics) SetCircuit(group, channel, model, state string) {
	m.setCircuit([3]string{group, channel, m.model(model)}, state)
}

func (m *Metrics) setCircuit(k [3]string, state string) {
	v := 0.0
	switch state {
	case "half_open":
		v = 1
	case "open":
		v = 2
	}
	m.circuits.of(k).Set(v)
}

// ShowCircuits shows the circuits that each names by calling show, as SetCircuit does, and drops
// all others: those of routes that the configuration no longer has.
func (m *Metrics) ShowCircuits(each func(show func(group, channel, model, state string))) {
	shown := map[[3]string]bool{}
	each(func(group, channel, model, state string) {
		k := [3]string{group, channel, m.model(model)}
		shown[k] = true
		m.setCircuit(k, state)
	})
	for _, k := range m.circuits.keep(func(k [3]string) bool { return shown[k] }) {
		m.circuitVec.DeleteLabelValues(k[0], k[1], k[2])
	}
}

// SetInvestigations shows how many investigations of a kind are open.
func (m *Metrics) SetInvestigations(kind string, n int) {
	m.investigations.of([1]string{kind}).Set(float64(n))
}

// SetLedgerQueue shows how many records wait for the ledger's writer.
func (m *Metrics) SetLedgerQueue(n int) { m.ledgerQueue.Set(float64(n)) }
