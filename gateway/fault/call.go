package fault

import (
	"net/http"
	"time"
)

// End says how a call ended, seen from the provider.
type End string

const (
	// EndRunning is a call that has not ended.
	EndRunning End = "running"
	// EndCompleted is a call whose whole answer was written.
	EndCompleted End = "completed"
	// EndPeerClosed is a call whose peer closed or reset the connection
	// before the whole answer was written.
	EndPeerClosed End = "peer_closed"
	// EndCutFin and EndCutReset are calls that the script cut.
	EndCutFin   End = "cut_fin"
	EndCutReset End = "cut_reset"
	// EndBadRequest is a call whose request could not be read to its end.
	EndBadRequest End = "bad_request"
	// EndProviderClosed is a call that Provider.Close ended.
	EndProviderClosed End = "provider_closed"
)

// Phase is how far a call had come.
type Phase string

const (
	PhaseReading    Phase = "reading"        // the request's body is being read
	PhaseBeforeHead Phase = "before_head"    // the request is read, no byte of the answer is written
	PhaseBeforeBody Phase = "before_body"    // the head is written, nothing of the body
	PhaseInBody     Phase = "in_body"        // some of the body is written
	PhaseAnswered   Phase = "after_complete" // the whole answer is written
)

// Call is one request that a provider read, and what became of it. Times are
// those of the provider's clock. Values
// returned by a Provider are copies; Header and Body are shared and must not
// be changed.
type Call struct {
	Number     int // from 1, over the provider's life
	Conn       int // which connection carried it, from 1
	ConnCall   int // which request of that connection it was, from 1
	At         time.Time
	Method     string
	Path       string // path and query as sent
	Host       string
	Header     http.Header
	Body       []byte // the first Options.MaxBody bytes
	BodyLength int64  // bytes of the whole body that were read
	Model      string // the model the body asks for, "" where it names none
	Stream     bool   // the body asks for a stream
	Rule       string // "script:line" of the rule that answered, "" for the healthy answer

	End     End
	Stalled bool          // the script stalls the answer, or did until it ended
	Phase   Phase         // how far the answer had come at the end
	Took    time.Duration // from At to the end; 0 while running
	Written int64         // bytes of the answer put on the connection, head and framing included

	// PeerClosed is when the peer was seen to close the call's connection
	// (FIN or RST), during the call or later; zero while it has not.
	PeerClosed time.Time
	// PeerReset is true when that was an RST.
	PeerReset bool
}
