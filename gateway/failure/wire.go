package failure

// Phase says how far an attempt's answer had come when it ended.
type Phase uint8

// The response phases. An answer with an error status counts as BeforeHeaders.
const (
	BeforeHeaders Phase = iota // no 2xx head was accepted
	BeforeOutput               // a 2xx head came, nothing meaningful yet
	AfterOutput                // meaningful output of this attempt went downstream
	phases
)

var phaseNames = [phases]string{"before_headers", "before_output", "after_output"}

func (p Phase) String() string { return word(phaseNames[:], p) }

// ParsePhase finds the phase with that word.
func ParsePhase(s string) (Phase, bool) { return parse[Phase](phaseNames[:], s) }

// Phases lists the response phases.
func Phases() []Phase { return []Phase{BeforeHeaders, BeforeOutput, AfterOutput} }

// Wire is what surely happened on the wire of an attempt, in the order in which it happens.
// A later fact includes the earlier ones.
type Wire uint8

// The facts of the wire.
const (
	NotSent         Wire = iota // no byte of the request left, or the peer provably read none
	Sent                        // some of the request may have been read
	HeadersSeen                 // a response head came back
	OutputCommitted             // meaningful output went downstream
)

var wireNames = [...]string{"not_sent", "sent", "headers_seen", "output_committed"}

func (w Wire) String() string { return word(wireNames[:], w) }

// Transport names the fact of the transport that ended an attempt; TransportOK where the
// transport did its work and the answer itself was the failure.
type Transport uint8

// The transport's facts.
const (
	TransportOK      Transport = iota
	DNS                        // the name did not resolve
	Connect                    // refused, unreachable
	TLS                        // the handshake failed
	Reset                      // the peer reset the connection
	EOF                        // the peer closed before the answer was whole
	ClockConnect               // the connect clock (TLS handshake included) fired
	ClockWrite                 // the peer did not take the request in time
	ClockFirstByte             // no response head in time
	ClockFirstOutput           // a head, but no meaningful output in time
	ClockIdle                  // silence between bytes
	ClockTotal                 // the request's deadline or the stream's maximum duration
	ClockReserve               // ended so that time is left for another route
	Malformed                  // not HTTP: head or framing broken, or larger than allowed
	Aborted                    // the gateway ended it: the caller left, a drain
	transports
)

var transportNames = [transports]string{
	"none", "dns", "connect", "tls", "reset", "eof", "clock_connect", "clock_write", "clock_first_byte",
	"clock_first_output", "clock_idle", "clock_total", "clock_reserve", "malformed", "aborted",
}

func (t Transport) String() string { return word(transportNames[:], t) }

// ParseTransport finds the transport fact with that word.
func ParseTransport(s string) (Transport, bool) { return parse[Transport](transportNames[:], s) }

// Transports lists every transport fact, TransportOK included.
func Transports() []Transport {
	all := make([]Transport, 0, transports)
	for t := range transports {
		all = append(all, t)
	}
	return all
}
