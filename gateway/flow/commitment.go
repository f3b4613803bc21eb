package flow

// commitment says what of an answer has gone downstream and can no longer be taken back. The
// two commitments forbid different things, so they are kept apart in one ordered type.
type commitment uint8

const (
	// nothingCommitted: any status and any attempt are possible.
	nothingCommitted commitment = iota
	// statusCommitted: a heartbeat had to be sent. The status line is out, so another status
	// is impossible; another attempt is not.
	statusCommitted
	// outputCommitted: meaningful output is out. No attempt may follow.
	outputCommitted
)

// status reports whether the status line is out.
func (c commitment) status() bool { return c >= statusCommitted }

// output reports whether meaningful output is out.
func (c commitment) output() bool { return c >= outputCommitted }
