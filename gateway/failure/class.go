package failure

// Class says what went wrong with an attempt. The zero value, None, is "nothing".
type Class uint8

// The failure classes, in the vocabulary's order.
const (
	None              Class = iota
	ClientInvalid           // the caller's request is wrong
	ContextOverflow         // the prompt does not fit the model's window
	GatewayDenied           // the gateway's own authentication, quota, policy or guard said no
	UpstreamAuth            // the channel's credential or account is bad
	ModelUnavailable        // this channel does not serve that model
	Network                 // DNS, connect, TLS, reset or EOF before output
	Timeout                 // 408, or a clock of the gateway fired before output
	RateLimited             // 429 for rate
	Overloaded              // the provider says it is over capacity
	ServerError             // 5xx
	MalformedAnswer         // the wire format is broken before output
	EmptyCompletion         // a well-formed answer with nothing in it
	SchemaInvalid           // the answer breaks the schema that the request promised
	Refusal                 // the model declined: a valid result
	ContentFiltered         // the provider's safety system answered or blocked
	Cancelled               // the caller went away
	PartialStream           // the upstream broke after output had gone downstream
	SideEffectUnknown       // a tool execution of this user action has no known end
	Unknown                 // none of the above: not safe to replay
	classes
)

var classNames = [classes]string{
	"", "client_invalid", "context_overflow", "gateway_denied", "upstream_auth", "model_unavailable",
	"network", "timeout", "rate_limited", "overloaded", "server_error", "malformed_answer",
	"empty_completion", "schema_invalid", "refusal", "content_filtered", "cancelled",
	"partial_stream", "side_effect_unknown", "unknown",
}

// String returns the class's word; None is the empty string.
func (c Class) String() string { return word(classNames[:], c) }

// ParseClass finds the class with that word. The empty string is no class.
func ParseClass(s string) (Class, bool) { return parse[Class](classNames[:], s) }

// Classes lists every class but None.
func Classes() []Class { return list[Class](classNames[:]) }

// Health says what a class does to the route it happened on, unless the policy says otherwise.
type Health uint8

// The effects on a route's health.
const (
	Neutral  Health = iota // counts neither for nor against: a probe's permit is given back
	Counts                 // against the circuit
	Isolates               // the channel's credential is dead: nobody uses the channel
	Cools                  // the account rests until it said it may be asked again
)

// Health returns the class's default effect.
func (c Class) Health() Health {
	switch c {
	case UpstreamAuth:
		return Isolates
	case RateLimited:
		return Cools
	case ModelUnavailable, Network, Timeout, Overloaded, ServerError, MalformedAnswer,
		EmptyCompletion, SchemaInvalid, PartialStream:
		return Counts
	default:
		return Neutral
	}
}

// SurelyNotProcessed reports whether an attempt that ended with this class did no work
// upstream, even though the request was sent: asking again cannot do anything twice.
func (c Class) SurelyNotProcessed() bool {
	return c == RateLimited || c == UpstreamAuth || c == ModelUnavailable
}
