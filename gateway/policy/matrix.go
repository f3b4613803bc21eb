package policy

import (
	"context"

	"github.com/interlock-gateway/interlock/gateway/failure"
)

// MatrixRow is what the rules make of one class of failure in one phase.
type MatrixRow struct {
	Class      failure.Class
	Phase      failure.Phase
	Idempotent bool
	First      []failure.Action // after the first failure on a route, with everything else open
	Again      []failure.Action // after a second one on the same route
	Reason     string           // of First
	Rule       string
}

// Matrix evaluates the replay rules over class × phase × idempotency, for a chat request that
// was sent, without an alias or labels: what the bundle does, not what its table says. The
// order is the vocabulary's.
func Matrix(ctx context.Context, r *Revision) ([]MatrixRow, error) {
	var rows []MatrixRow
	for _, class := range failure.Classes() {
		for _, phase := range failure.Phases() {
			for _, idempotent := range []bool{true, false} {
				in := openInput(class, phase, idempotent)
				first, meta := r.Replay(ctx, &in)
				if meta.Err != nil {
					return nil, meta.Err
				}
				in.Attempt.Number, in.Attempt.SameRoute, in.Attempt.SameGroup = 2, 2, 2
				in.Attempt.Cause = failure.SameRouteRetry
				again, meta := r.Replay(ctx, &in)
				if meta.Err != nil {
					return nil, meta.Err
				}
				rows = append(rows, MatrixRow{class, phase, idempotent, first.Actions, again.Actions, first.Reason, first.Rule})
			}
		}
	}
	return rows, nil
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
