package policy

// Code says why a decision failed closed.
type Code uint8

// The codes.
const (
	ErrorOther       Code = iota
	ErrorUndefined        // the rule gave nothing
	ErrorConflict         // it gave two different things
	ErrorBuiltin          // a builtin function failed
	ErrorTimeout          // it took too long
	ErrorCancelled        // the request went away
	ErrorUndecodable      // it gave something that is no decision
)

var codes = []string{"error", "undefined", "conflict", "builtin", "timeout", "cancelled", "undecodable"}

func (c Code) String() string { return word(codes, c) }

// DecisionError is why a decision failed closed.
type DecisionError struct {
	Point Point
	Code  Code
	Err   error
}

func (e *DecisionError) Error() string { return e.Point.String() + ": " + e.Code.String() + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *DecisionError) Unwrap() error { return e.Err }
