package breaker

// Scope is what a failure says something about, and so what a circuit stands for.
type Scope uint8

// The scopes, in the order of the policy's words.
const (
	ChannelModel Scope = iota // the default: one model on one channel
	Channel
	Account
	AccountModel
	Provider
	Region     // of one provider
	Tools      // this and the following: one capability of one model on one channel
	JSONSchema //
	Streaming  //
	Vision     //
	Audio      //
	scopes     //
)

var scopeNames = [scopes]string{
	"channel_model", "channel", "account", "account_model", "provider", "region", "capability:tools",
	"capability:json_schema", "capability:streaming", "capability:vision", "capability:audio",
}

// String returns the word that policies use.
func (s Scope) String() string {
	if s < scopes {
		return scopeNames[s]
	}
	return "invalid"
}

// ParseScope finds the scope with that word.
func ParseScope(word string) (Scope, bool) {
	for i, n := range scopeNames {
		if n == word {
			return Scope(i), true
		}
	}
	return ChannelModel, false
}

// Capabilities is the set of capabilities that a request makes use of: a circuit of a
// capability concerns only requests that use it.
type Capabilities uint8

// The capabilities, one for each scope from Tools on.
const (
	UsesTools Capabilities = 1 << iota
	UsesJSONSchema
	UsesStreaming
	UsesVision
	UsesAudio
)

// Capability returns the capability that the scope is about, 0 if it is about none.
func (s Scope) Capability() Capabilities {
	if s < Tools || s >= scopes {
		return 0
	}
	return 1 << (s - Tools)
}

// State is the state of a circuit.
type State uint8

// The states, from well to sick.
const (
	Closed State = iota
	HalfOpen
	Open
)

// String returns the state's word, as in the ledger and in metrics.
func (s State) String() string {
	switch s {
	case Closed:
		return "closed"
	case HalfOpen:
		return "half_open"
	default:
		return "open"
	}
}
