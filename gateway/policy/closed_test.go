package policy

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/gateway/failure"
)

// treacherous behaves while it is probed and misbehaves for keys with a label, in the way that
// the label says.
const treacherous = `
decision := good if not input.key.labels.trap

decision := good if input.key.labels.trap == "conflict"

decision := bad if input.key.labels.trap == "conflict"

decision := bad if input.key.labels.trap == "unknown"

decision := 7 if input.key.labels.trap == "undecodable"

decision := good if {
	input.key.labels.trap == "builtin"
	to_number("x") > 0
}

decision := good if {
	input.key.labels.trap == "timeout"
	count([1 | some a in numbers.range(1, 100000); some b in numbers.range(1, 100000); a == b]) > 0
}
`

var traps = map[string]Code{
	"undefined": ErrorUndefined, "conflict": ErrorConflict, "unknown": ErrorUndecodable,
	"undecodable": ErrorUndecodable, "builtin": ErrorBuiltin, "timeout": ErrorTimeout,
}

func trapped(t *testing.T) *Revision {
	t.Helper()
	r, err := Load(testContext(t), Path("test", copyBundle(t, map[string]string{
		"interlock/admission.rego": "package interlock.admission\n" + treacherous + `
good := {"allow": true, "reason": "good"}

bad := {"allow": true, "reason": "bad", "grups": []}
`,
		"interlock/substitution.rego": "package interlock.substitution\n" + treacherous + `
good := {"approve": true, "reason": "good"}

bad := {"approve": "yes", "reason": "bad"}
`,
		"interlock/replay.rego": "package interlock.replay\n" + treacherous + `
good := {"actions": ["same_route_retry"], "reason": "good"}

bad := {"actions": ["same_route_retry", "retry"], "reason": "bad"}
`,
	})), Options{Timeout: 150 * time.Millisecond})
	require.NoError(t, err)
	return r
}

func TestFailsClosed(t *testing.T) {
	r := trapped(t)
	for trap, code := range traps {
		t.Run(trap, func(t *testing.T) {
			ctx := testContext(t)
			trap := LabelsOf(map[string]string{"trap": trap})
			reason := "policy_error:" + code.String()
			check := func(meta Meta, point Point) {
				var failed *DecisionError
				require.ErrorAs(t, meta.Err, &failed)
				require.Equal(t, code, failed.Code, meta.Err)
				require.Equal(t, point, failed.Point)
				require.False(t, meta.Cached)
				require.Contains(t, string(meta.Record.Output), reason)
				require.True(t, json.Valid(meta.Record.Input))
			}
			for range 2 { // the second time too: no failure is kept
				in := openInput(failure.Network, failure.BeforeHeaders, true)
				in.Labels = trap
				replay, meta := r.Replay(ctx, &in)
				check(meta, PointReplay)
				require.Equal(t, Replay{Actions: actions{stop}, Reason: reason, Rule: "fail_closed"}, replay)
				require.False(t, replay.RanOut())
			}
			admission, meta := r.Admission(ctx, &AdmissionInput{Key: Key{Labels: trap}})
			check(meta, PointAdmission)
			require.Equal(t, Admission{Reason: reason, Rule: "fail_closed"}, admission)

			substitution, meta := r.Substitution(ctx, &SubstitutionInput{Labels: trap})
			check(meta, PointSubstitution)
			require.False(t, substitution.Approve)
			require.Equal(t, reason, substitution.Reason)
		})
	}
	t.Run("none", func(t *testing.T) {
		in := openInput(failure.Network, failure.BeforeHeaders, true)
		replay, meta := r.Replay(testContext(t), &in)
		require.NoError(t, meta.Err)
		require.Equal(t, actions{again, stop}, replay.Actions)
		require.Equal(t, "good", replay.Reason)
	})
}

// Classification has no labels to set a trap with: a provider is the trap.
func TestClassificationFailsClosed(t *testing.T) {
	r, err := Load(testContext(t), Path("test", copyBundle(t, map[string]string{
		"interlock/failure.rego": `package interlock.failure

decision := {"class": "network", "reason": "good"} if input.channel.provider == "probe"

decision := {"class": "netwrok", "reason": "bad"} if input.channel.provider == "unknown_class"

decision := {"class": "network", "reason": "bad", "scope": "planet"} if input.channel.provider == "unknown_scope"
`,
	})), patient)
	require.NoError(t, err)
	for provider, code := range map[string]Code{
		"": ErrorUndefined, "unknown_class": ErrorUndecodable, "unknown_scope": ErrorUndecodable,
	} {
		f, meta := r.Failure(testContext(t), &FailureInput{Channel: Channel{Provider: provider}})
		var failed *DecisionError
		require.ErrorAs(t, meta.Err, &failed)
		require.Equal(t, code, failed.Code, provider)
		require.Equal(t, failure.Unknown, f.Class)
		require.Equal(t, failure.Neutral, f.Effect())
	}
	f, meta := r.Failure(testContext(t), &FailureInput{Channel: Channel{Provider: "probe"}})
	require.NoError(t, meta.Err)
	require.Equal(t, failure.Network, f.Class)
	require.Equal(t, failure.Counts, f.Effect(), "left out, it is the class's own")
}

// An admission that ran out of time is tried once more; the others are not.
func TestAdmissionIsTriedTwice(t *testing.T) {
	r := trapped(t)
	labels := LabelsOf(map[string]string{"trap": "timeout"})
	start := time.Now()
	_, meta := r.Admission(testContext(t), &AdmissionInput{Key: Key{Labels: labels}})
	require.True(t, isTimeout(meta.Err))
	require.GreaterOrEqual(t, time.Since(start), 2*r.options.Timeout)

	in := openInput(failure.Network, failure.BeforeHeaders, true)
	in.Labels = labels
	_, meta = r.Replay(testContext(t), &in)
	require.True(t, isTimeout(meta.Err))
	require.GreaterOrEqual(t, meta.Took, r.options.Timeout)
}

func TestCallerLeft(t *testing.T) {
	r := trapped(t)
	ctx, cancel := context.WithCancel(testContext(t))
	in := AdmissionInput{Key: Key{Labels: LabelsOf(map[string]string{"trap": "timeout"})}}
	time.AfterFunc(20*time.Millisecond, cancel)
	a, meta := r.Admission(ctx, &in)
	require.False(t, a.Allow)
	var failed *DecisionError
	require.ErrorAs(t, meta.Err, &failed)
	require.Equal(t, ErrorCancelled, failed.Code)

	a, meta = r.Admission(ctx, &in)
	require.False(t, a.Allow)
	require.True(t, errors.Is(meta.Err, context.Canceled))
}

// Actions after a stop do not count, and a stop always ends them: nobody downstream has to
// know what a list without one means.
func TestStopEndsTheActions(t *testing.T) {
	for text, want := range map[string]actions{
		`["stop", "same_route_retry"]`:               {stop},
		`["same_route_retry", "stop"]`:               {again, stop},
		`["same_route_retry", "model_substitution"]`: {again, other, stop},
	} {
		v, err := decodeJSON([]byte(`{"actions": ` + text + `, "reason": "r", "delay_ms": 1500}`))
		require.NoError(t, err)
		d, err := decodeReplay(v)
		require.NoError(t, err)
		require.Equal(t, want, d.Actions, text)
		require.Equal(t, 1500*time.Millisecond, d.Delay)
	}
}
