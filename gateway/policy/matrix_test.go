package policy

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/gateway/failure"
)

const (
	again     = failure.RetrySameRoute
	elsewhere = failure.FallBackSameContract
	other     = failure.SubstituteModel
	stop      = failure.Stop
)

type actions = []failure.Action

// wanted is the default matrix of the contract, written down a second time and by hand: what
// follows a failure before output of an idempotent request.
var wanted = map[failure.Class]struct {
	first   actions // the route's first failure, everything open
	again   actions // its second
	noEqual actions // its first, and no equal route is left
	nothing bool    // of the three acts, none at all
}{
	failure.ClientInvalid:     {actions{stop}, actions{stop}, actions{stop}, true},
	failure.GatewayDenied:     {actions{stop}, actions{stop}, actions{stop}, true},
	failure.ContextOverflow:   {actions{other, stop}, actions{other, stop}, actions{other, stop}, false},
	failure.UpstreamAuth:      {actions{elsewhere, other, stop}, actions{elsewhere, other, stop}, actions{other, stop}, false},
	failure.ModelUnavailable:  {actions{elsewhere, other, stop}, actions{elsewhere, other, stop}, actions{other, stop}, false},
	failure.Network:           {actions{again, elsewhere, other, stop}, actions{elsewhere, other, stop}, actions{again, other, stop}, false},
	failure.Timeout:           {actions{elsewhere, other, again, stop}, actions{elsewhere, other, again, stop}, actions{other, again, stop}, false},
	failure.RateLimited:       {actions{elsewhere, again, other, stop}, actions{elsewhere, other, again, stop}, actions{again, other, stop}, false},
	failure.Overloaded:        {actions{elsewhere, again, other, stop}, actions{elsewhere, other, again, stop}, actions{again, other, stop}, false},
	failure.ServerError:       {actions{elsewhere, again, other, stop}, actions{elsewhere, other, again, stop}, actions{again, other, stop}, false},
	failure.MalformedAnswer:   {actions{elsewhere, other, stop}, actions{elsewhere, other, stop}, actions{other, stop}, false},
	failure.EmptyCompletion:   {actions{elsewhere, other, stop}, actions{elsewhere, other, stop}, actions{other, stop}, false},
	failure.SchemaInvalid:     {actions{elsewhere, other, stop}, actions{elsewhere, other, stop}, actions{other, stop}, false},
	failure.Refusal:           {actions{stop}, actions{stop}, actions{stop}, true},
	failure.ContentFiltered:   {actions{stop}, actions{stop}, actions{stop}, true},
	failure.Cancelled:         {actions{stop}, actions{stop}, actions{stop}, true},
	failure.PartialStream:     {actions{stop}, actions{stop}, actions{stop}, true},
	failure.SideEffectUnknown: {actions{stop}, actions{stop}, actions{stop}, true},
	failure.Unknown:           {actions{stop}, actions{stop}, actions{stop}, true},
}

func TestDefaultMatrix(t *testing.T) {
	r := builtin(t)
	ctx := testContext(t)
	require.Len(t, wanted, len(failure.Classes()))
	for _, class := range failure.Classes() {
		row := wanted[class]
		for _, phase := range failure.Phases() {
			for _, idempotent := range bothWays {
				for _, sent := range bothWays {
					if !sent && phase != failure.BeforeHeaders {
						continue
					}
					surelyNot := !sent || class.SurelyNotProcessed()
					ask := func(change func(*ReplayInput)) Replay {
						in := openInput(class, phase, idempotent)
						in.Failure.RequestSent = sent
						change(&in)
						d, meta := r.Replay(ctx, &in)
						require.NoError(t, meta.Err)
						return d
					}
					name := fmt.Sprintf("%s %s idempotent=%t sent=%t", class, phase, idempotent, sent)
					want := row
					switch {
					case phase == failure.AfterOutput:
						want.first, want.again, want.noEqual, want.nothing = actions{stop}, actions{stop}, actions{stop}, true
					case !idempotent && !surelyNot:
						want.first, want.again, want.noEqual = actions{stop}, actions{stop}, actions{stop}
					}
					require.Equal(t, want.first, ask(func(*ReplayInput) {}).Actions, name)
					require.Equal(t, want.again, ask(func(in *ReplayInput) {
						in.Attempt = Attempt{Number: 2, SameRoute: 2, SameGroup: 2, Cause: failure.SameRouteRetry}
					}).Actions, name)
					require.Equal(t, want.noEqual, ask(func(in *ReplayInput) {
						in.Candidates.SameContract, in.Candidates.SameContractSchemaVerified = 0, 0
					}).Actions, name)

					spent := ask(func(in *ReplayInput) { in.Candidates = Candidates{} })
					require.Equal(t, actions{stop}, spent.Actions, name)
					require.Equal(t, !want.nothing && (idempotent || surelyNot), spent.RanOut(), name)
					require.Equal(t, !want.nothing && !idempotent && !surelyNot, spent.OutcomeUnknown(), name)
				}
			}
		}
	}
}

// Only an action whose candidate is open is ever listed.
func TestOnlyOpenActions(t *testing.T) {
	r := builtin(t)
	ctx := testContext(t)
	for _, class := range failure.Classes() {
		for mask := range 8 {
			in := openInput(class, failure.BeforeOutput, true)
			in.Candidates = Candidates{
				SameRoute: mask & 1, SameContract: mask >> 1 & 1, SameContractSchemaVerified: mask >> 1 & 1, Substitutes: mask >> 2 & 1,
			}
			d, meta := r.Replay(ctx, &in)
			require.NoError(t, meta.Err)
			if mask&1 == 0 {
				require.NotContains(t, d.Actions, again)
			}
			if mask&2 == 0 {
				require.NotContains(t, d.Actions, elsewhere)
			}
			if mask&4 == 0 {
				require.NotContains(t, d.Actions, other)
			}
		}
	}
}

func TestWaiting(t *testing.T) {
	r := builtin(t)
	in := openInput(failure.RateLimited, failure.BeforeHeaders, true)
	in.Budget.RetryAfter, in.Budget.RetryAfterFits = LongRetryAfter, false
	d, meta := r.Replay(testContext(t), &in)
	require.NoError(t, meta.Err)
	require.Equal(t, actions{elsewhere, other, stop}, d.Actions)
}

func TestNoRouteToBeginWith(t *testing.T) {
	r := builtin(t)
	in := openInput(failure.None, failure.BeforeHeaders, false)
	in.Failure.RequestSent = false
	in.Attempt = Attempt{}
	in.Candidates = Candidates{Substitutes: 2}
	d, meta := r.Replay(testContext(t), &in)
	require.NoError(t, meta.Err)
	require.Equal(t, actions{other, stop}, d.Actions)
}

func TestMatrixIsWholeAndFromTheRules(t *testing.T) {
	cells, err := Matrix(testContext(t), builtin(t))
	require.NoError(t, err)
	require.Len(t, cells, (len(failure.Classes())+1)*len(failure.Phases())*2*len(Lefts()))
	for _, cell := range cells {
		want, surelyNot := wanted[cell.Class], cell.Class.SurelyNotProcessed()
		if cell.Class == failure.None {
			continue
		}
		if cell.Phase == failure.AfterOutput || !cell.Idempotent && !surelyNot {
			want.first, want.again, want.noEqual = actions{stop}, actions{stop}, actions{stop}
		}
		name := fmt.Sprintf("%s %s idempotent=%t %s", cell.Class, cell.Phase, cell.Idempotent, cell.Left)
		switch cell.Left {
		case LeftAll:
			require.Equal(t, want.first, cell.Actions, name)
		case LeftAskedAgain:
			require.Equal(t, want.again, cell.Actions, name)
		case LeftNoEqualRoute:
			require.Equal(t, want.noEqual, cell.Actions, name)
		case LeftOnlySubstitute:
			require.NotContains(t, cell.Actions, again, name)
			require.NotContains(t, cell.Actions, elsewhere, name)
		case LeftNothing:
			require.Equal(t, actions{stop}, cell.Actions, name)
		}
		require.NotEmpty(t, cell.Reason, name)
		require.NotEmpty(t, cell.Rule, name)
	}

	// The table says one thing, a rule of this bundle another: the rule counts.
	dir := copyBundle(t, map[string]string{"interlock/replay.rego": `package interlock.replay

decision := {"actions": ["same_contract_fallback"], "reason": "always"}
`})
	cells, err = Matrix(testContext(t), loadDir(t, dir))
	require.NoError(t, err)
	for _, cell := range cells {
		require.Equal(t, actions{elsewhere, stop}, cell.Actions)
	}
}

// S03 and S06 of the public fault catalogue, at the point that decides them.
func TestOneSameRouteRetryRatherThanAnotherModel(t *testing.T) {
	r := builtin(t)
	ask := func(class failure.Class, sameRoute int) failure.Action {
		in := openInput(class, failure.BeforeHeaders, true)
		in.Candidates = Candidates{SameRoute: 1, Substitutes: 1}
		in.Attempt.Number, in.Attempt.SameRoute = sameRoute, sameRoute
		d, meta := r.Replay(testContext(t), &in)
		require.NoError(t, meta.Err)
		return d.Actions[0]
	}
	require.Equal(t, again, ask(failure.ServerError, 1))
	require.Equal(t, other, ask(failure.ServerError, 2))
	require.Equal(t, other, ask(failure.Timeout, 1), "the silent route is not asked again while a substitute is left")
}

func TestKinds(t *testing.T) {
	r := builtin(t)
	for _, endpoint := range []string{"chat_completions", "completions", "embeddings", "moderations", "rerank", "responses"} {
		require.True(t, r.Kind(KindOf(endpoint, false, false, false)), endpoint)
		require.True(t, r.DeclaredKind(KindOf(endpoint, false, false, false)), endpoint)
	}
	for _, kind := range []string{
		KindOf("responses", true, false, false), KindOf("responses", false, true, false), KindOf("responses", false, false, true),
	} {
		require.False(t, r.Kind(kind), kind)
		require.False(t, r.DeclaredKind(kind), kind)
	}
	for _, kind := range []string{"images", "audio", "videos", "files", "batches"} {
		require.False(t, r.Kind(kind), kind)
		require.True(t, r.DeclaredKind(kind), kind)
	}
	require.False(t, r.Kind("telepathy"))
	require.False(t, r.DeclaredKind("telepathy"))
}
