package conformance_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/sdk/conformance"
	interlock "github.com/interlock-gateway/interlock/sdk/go"
	"github.com/interlock-gateway/interlock/sdk/guests/go/echo"
)

// The calls of a fixture come out by operation, and its frames as many at a time as asked.
func TestSteps(t *testing.T) {
	p := conformance.Native(echo.Manifest, echo.New)
	seen := map[string]int{}
	for _, x := range fixtures(t) {
		for _, batch := range []int{1, 8} {
			to, err := p.Open(x.Config())
			require.NoError(t, err)
			steps, err := x.Steps(to, batch)
			require.NoError(t, err, x.Name)
			require.NotEmpty(t, steps, x.Name)
			for _, s := range steps {
				require.LessOrEqual(t, s.Frames, batch)
				require.NotEmpty(t, s.In)
				seen[s.Name]++
			}
		}
	}
	for _, op := range []string{"request", "response", "events", "classify", "guard_request", "guard_events"} {
		require.NotZero(t, seen[op], op)
	}
}

// A report says what was looked at, and what a fixture would have to hold to be met.
func TestReportsNameChecksAndAnswers(t *testing.T) {
	x, err := conformance.ParseFixture("x", []byte(`
-- request.json --
{"messages":[{"role":"user","content":"a"}]}
-- provider.head --
PUT /
-- provider.json --
null
-- answer.json --
{"say":"b","end":"done"}
-- want.json --
{"choices":[{"message":{"content":"c"}}]}
`))
	require.NoError(t, err)
	r := conformance.Check(context.Background(), conformance.Native(echo.Manifest, echo.New), []conformance.Fixture{*x})
	require.Contains(t, r.Looks, conformance.Look{Fixture: "x", Check: "request"})
	require.Contains(t, r.Looks, conformance.Look{Check: "describe"})
	parts := map[string]string{}
	for _, a := range r.Answers {
		require.Equal(t, "x", a.Fixture)
		parts[a.Part] = string(a.Text)
	}
	require.Equal(t, "POST /v1/echo\necho-version: 1", parts["provider.head"])
	require.Contains(t, parts["provider.json"], `"turns"`)
	require.Contains(t, parts["want.json"], `"content":"b"`)

	bad := spoilt(func(p *interlock.Plugin) {
		p.GuardRequest = func(_ *interlock.Call, _ *interlock.Subject, _ []byte, out *interlock.Verdict) error {
			out.Action, out.Reason = interlock.Refuse, "other"
			return nil
		}
	})
	r = conformance.Check(context.Background(), bad, fixtures(t))
	require.Contains(t, r.Answers, conformance.Answer{
		Fixture: "guard_refuse", Part: "verdict.json", Text: []byte(`{"action":"refuse","message":"","reason":"other"}`),
	})
}
