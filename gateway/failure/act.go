package failure

// Cause says why an attempt was made.
type Cause uint8

// The attempt causes. The last three are different acts and are never called by one name.
const (
	Initial              Cause = iota
	SameRouteRetry             // same channel, same upstream model, later
	SameContractFallback       // another channel that serves the same model
	ModelSubstitution          // another model, approved and disclosed
	causes
)

var causeNames = [causes]string{"initial", "same_route_retry", "same_contract_fallback", "model_substitution"}

func (c Cause) String() string { return word(causeNames[:], c) }

// ParseCause finds the cause with that word.
func ParseCause(s string) (Cause, bool) { return parse[Cause](causeNames[:], s) }

// Action is what may be done after an attempt failed.
type Action uint8

// The actions. The zero value is the safe one.
const (
	Stop Action = iota
	RetrySameRoute
	FallBackSameContract
	SubstituteModel
	actions
)

var actionNames = [actions]string{"stop", "same_route_retry", "same_contract_fallback", "model_substitution"}

func (a Action) String() string { return word(actionNames[:], a) }

// ParseAction finds the action with that word.
func ParseAction(s string) (Action, bool) { return parse[Action](actionNames[:], s) }

// Cause returns the cause of an attempt that the action starts. Stop starts none.
func (a Action) Cause() Cause { return Cause(a) }

// Terminal says how a request ended. The zero value, Running, is "not yet".
type Terminal uint8

// The terminal reasons of requests.
const (
	Running     Terminal = iota
	Success              // an answer or a valid refusal was delivered
	Exhausted            // routes, attempts or time ran out
	CallerLeft           // the caller left, before or after output
	Partial              // the upstream broke after output
	PolicyStop           // a denial, an interlock, or a class that the policy does not replay
	Interrupted          // open when the gateway crashed
	terminals
)

var terminalNames = [terminals]string{"", "success", "exhausted", "cancelled", "partial", "policy_stop", "interrupted"}

func (t Terminal) String() string { return word(terminalNames[:], t) }

// ParseTerminal finds the terminal reason with that word; "" is Running.
func ParseTerminal(s string) (Terminal, bool) {
	if s == "" {
		return Running, true
	}
	return parse[Terminal](terminalNames[:], s)
}

// End says how one attempt ended. The zero value is "still open".
type End uint8

// The ends of attempts.
const (
	Open         End = iota
	EndSuccess       // it answered
	EndFailed        // it failed before output
	EndPartial       // it failed after output
	EndCancelled     // the caller left
	EndUnknown       // the gateway crashed while it was open
	ends
)

var endNames = [ends]string{"", "success", "failed", "partial", "cancelled", "unknown"}

func (e End) String() string { return word(endNames[:], e) }

// ParseEnd finds the end with that word; "" is Open.
func ParseEnd(s string) (End, bool) {
	if s == "" {
		return Open, true
	}
	return parse[End](endNames[:], s)
}

// EndOf returns how an attempt with that class and phase ended.
func EndOf(c Class, p Phase) End {
	switch {
	case c == None || c == Refusal:
		return EndSuccess
	case c == Cancelled:
		return EndCancelled
	case p == AfterOutput:
		return EndPartial
	default:
		return EndFailed
	}
}

// TerminalOf returns the terminal reason of a request whose last attempt ended with that
// class and phase and after which nothing further was allowed. ranOut says that another
// attempt would have been admissible had there been routes, attempts or time.
//
// It is the one table from classes and phases to terminal reasons.
func TerminalOf(c Class, p Phase, ranOut bool) Terminal {
	switch {
	case c == None || c == Refusal:
		return Success
	case c == Cancelled:
		return CallerLeft
	case p == AfterOutput:
		return Partial
	case ranOut && c.Health() != Neutral:
		return Exhausted
	default:
		return PolicyStop
	}
}
