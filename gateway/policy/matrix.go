package policy

import (
	"context"

	"github.com/interlock-gateway/interlock/gateway/failure"
)

// Left is what is still open when the replay point is asked.
type Left uint8

// What can be left, most first.
const (
	LeftAll            Left = iota // the route's first failure, everything open
	LeftAskedAgain                 // its second, after it was asked again
	LeftNoTimeToWait               // its first, and the wait it asks for does not fit
	LeftNoEqualRoute               // its first, and no untried equal route is left
	LeftOnlySubstitute             // a substitute, and neither the same nor an equal route
	LeftNothing
)

var lefts = []string{"everything", "same_route_asked_again", "no_time_to_wait", "no_equal_route", "only_a_substitute", "nothing"}

func (l Left) String() string { return word(lefts, l) }

// Lefts lists what can be left, most first.
func Lefts() []Left {
	all := make([]Left, len(lefts))
	for i := range all {
		all[i] = Left(i)
	}
	return all
}

// apply takes from an input after which everything is open what is not left.
func (l Left) apply(in *ReplayInput) {
	switch l {
	case LeftAskedAgain:
		in.Attempt = Attempt{Number: 2, SameRoute: 2, SameGroup: 2, Cause: failure.SameRouteRetry}
	case LeftNoTimeToWait:
		in.Budget.RetryAfter, in.Budget.RetryAfterFits = LongRetryAfter, false
	case LeftNoEqualRoute:
		in.Candidates.SameContract, in.Candidates.SameContractSchemaVerified = 0, 0
	case LeftOnlySubstitute:
		in.Candidates = Candidates{Substitutes: in.Candidates.Substitutes}
	case LeftNothing:
		in.Candidates, in.Budget = Candidates{}, Budget{}
	}
}

// MatrixCell is what the rules make of one class of failure in one phase, with that left.
type MatrixCell struct {
	Class      failure.Class // None: there was no usable route to begin with
	Phase      failure.Phase
	Idempotent bool
	Left       Left
	Actions    []failure.Action
	Reason     string
	Rule       string
}

// Matrix evaluates the replay rules over class × phase × idempotency × what is left, for a chat
// request that was sent, without an alias or labels: what the bundle does, not what its table
// says. A decision that cannot be made is a stop there, as in the gateway. The order is the
// vocabulary's; an error is only that ctx has ended.
func Matrix(ctx context.Context, r *Revision) ([]MatrixCell, error) {
	var cells []MatrixCell
	for _, class := range append(failure.Classes(), failure.None) {
		for _, phase := range failure.Phases() {
			for _, idempotent := range []bool{true, false} {
				for _, left := range Lefts() {
					in := openInput(class, phase, idempotent)
					left.apply(&in)
					d, _ := r.Replay(ctx, &in)
					if err := context.Cause(ctx); err != nil {
						return nil, err
					}
					cells = append(cells, MatrixCell{class, phase, idempotent, left, d.Actions, d.Reason, d.Rule})
				}
			}
		}
	}
	return cells, nil
}

// openInput is a failed first attempt after which the interlocks leave everything open.
func openInput(class failure.Class, phase failure.Phase, idempotent bool) ReplayInput {
	in := ReplayInput{
		Failure: Failed{Class: class, Phase: phase, RequestSent: true},
		Request: ReplayRequest{
			Endpoint: "chat_completions", Kind: "chat", SideEffects: NoSideEffects,
			StructuredOutput: FreeText, Release: ReleaseStream, Idempotent: idempotent,
		},
		Attempt:    Attempt{Number: 1, SameRoute: 1, SameGroup: 1},
		Budget:     Budget{AttemptsLeft: 3, TimeLeft: AmpleTime, RetryAfterFits: true},
		Candidates: Candidates{SameRoute: 1, SameContract: 1, SameContractSchemaVerified: 1, Substitutes: 1},
	}
	if !idempotent {
		in.Request.SideEffects = PossibleSideEffects
	}
	return in
}
