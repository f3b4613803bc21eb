package server

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func decode(t *testing.T, text string, v any) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(text), v), text)
}

// S01: asked again on the same route, no sooner than 1.8 s later.
func rateLimitedOnce(tr *trial) {
	r := tr.rescued()
	tr.answeredBy(r, "primary", "same_route_retry")
	tr.made(2, 0)
	calls := tr.providers["primary"].Calls()
	require.GreaterOrEqual(tr.T, calls[1].At.Sub(calls[0].At), 1800*time.Millisecond)
	tr.requireRecord(r.ID(), "success", tried{"primary", "rate_limited"}, tried{"primary", ""})
}

// S02: at most 4 primary attempts in 3 s, at most 6 in all; the substitute answers.
func rateLimitedForEver(tr *trial) {
	r := tr.rescued()
	tr.answeredBy(r, "substitute", "model_substitution")
	calls := tr.providers["primary"].Calls()
	require.LessOrEqual(tr.T, len(calls)+tr.providers["substitute"].Count(), 6)
	early := 0
	for _, c := range calls {
		if c.At.Sub(calls[0].At) < 3*time.Second {
			early++
		}
	}
	require.LessOrEqual(tr.T, early, 4)
}

// S03: one same-route retry rather than another model.
func serverErrorOnce(tr *trial) {
	r := tr.rescued()
	tr.answeredBy(r, "primary", "same_route_retry")
	tr.made(2, 0)
	tr.requireRecord(r.ID(), "success", tried{"primary", "server_error"}, tried{"primary", ""})
}

// S04: at most 6 attempts; the substitute answers.
func unavailableForEver(tr *trial) {
	r := tr.rescued()
	tr.answeredBy(r, "substitute", "model_substitution")
	require.LessOrEqual(tr.T, tr.providers["primary"].Count()+tr.providers["substitute"].Count(), 6)
}

// S05: answered.
func resetOnce(tr *trial) {
	r := tr.rescued()
	tr.answeredBy(r, "primary", "same_route_retry")
	tr.made(2, 0)
	tr.requireRecord(r.ID(), "success", tried{"primary", "network"}, tried{"primary", ""})
}

// S06: the first-byte clock ends it; the silent route is not asked again; the substitute
// answers.
func neverAnswers(tr *trial) {
	r := tr.rescued()
	tr.answeredBy(r, "substitute", "model_substitution")
	tr.made(1, 1)
	require.GreaterOrEqual(tr.T, r.took, time.Second)
	require.Less(tr.T, r.took, 2*time.Second+late, "the first-byte clock is 1 s")
	tr.closed("primary", 1)
	e := tr.requireRecord(r.ID(), "success", tried{"primary", "timeout"}, tried{"substitute", ""})
	require.Equal(tr.T, "before_headers", e.Attempts[0].Phase)
}

// S07: the first-output clock ends it; answered within 15 s.
func slowFirstToken(tr *trial) {
	r := tr.rescued()
	tr.answeredBy(r, "substitute", "model_substitution")
	tr.made(1, 1)
	require.GreaterOrEqual(tr.T, r.took, time.Second)
	require.Less(tr.T, r.took, 3*time.Second+late, "the first-output clock is 2 s; the case allows 15 s")
	tr.closed("primary", 1)
	e := tr.requireRecord(r.ID(), "success", tried{"primary", "timeout"}, tried{"substitute", ""})
	require.Equal(tr.T, "before_output", e.Attempts[0].Phase)
}

// S08: the whole answer from elsewhere, or a clear error; never a truncated success.
func diesAfterForty(tr *trial) {
	r := tr.rescued()
	tr.answeredBy(r, "substitute", "model_substitution")
	e := tr.entry(r.ID())
	for _, a := range e.Attempts[:len(e.Attempts)-1] {
		require.Equal(tr.T, "network", a.Class)
		require.Equal(tr.T, "before_output", a.Phase, "nothing of a buffered answer is out before all of it")
	}
}

// S09: the idle clock; the whole answer; healthy afterwards.
func silentAfterTwenty(tr *trial) {
	r := tr.rescued()
	tr.answeredBy(r, "substitute", "model_substitution")
	tr.made(1, 1)
	require.GreaterOrEqual(tr.T, r.took, time.Second)
	require.Less(tr.T, r.took, 2*time.Second+late, "the idle clock is 1 s")
	tr.closed("primary", 1)
	tr.requireRecord(r.ID(), "success", tried{"primary", "timeout"}, tried{"substitute", ""})
	tr.healthyAfterwards()
}

// S10: the complete answer; healthy afterwards.
func invalidTenthEvent(tr *trial) {
	r := tr.rescued()
	tr.answeredBy(r, "substitute", "model_substitution")
	tr.requireRecord(r.ID(), "success", tried{"primary", "malformed_answer"}, tried{"substitute", ""})
	tr.healthyAfterwards()
}

// S11: finished at once, with usage.
func withoutDone(tr *trial) {
	r := tr.rescued() // demands the usage
	tr.answeredBy(r, "primary", "initial")
	tr.made(1, 0)
	call := tr.providers["primary"].Calls()[0]
	require.Less(tr.T, r.Ended.Sub(call.At.Add(call.Took)), 200*time.Millisecond+late)
}

// S12: asked once; a larger approved model answers.
func promptTooLong(tr *trial) {
	r := tr.rescued()
	tr.answeredBy(r, "substitute", "model_substitution")
	tr.made(1, 1)
	tr.requireRecord(r.ID(), "success", tried{"primary", "context_overflow"}, tried{"substitute", ""})
}

// S13: asked once; that error to the caller; not routed around.
func contentPolicy(tr *trial) {
	r := tr.ask()
	r.refused(tr.T, 400, "content_policy_violation", "false")
	require.Contains(tr.T, r.Body, "Your request was rejected by our safety system.")
	tr.made(1, 0)
	tr.requireRecord(r.ID(), "policy_stop", tried{"primary", "content_filtered"})
}

// S14: restarted cleanly; the prefill error never reaches the caller.
func prefillRejected(tr *trial) {
	r := tr.rescued()
	tr.answeredBy(r, "substitute", "model_substitution")
	require.NotContains(tr.T, r.Body, "prefill")
	require.Equal(tr.T, 1, tr.providers["substitute"].Count(), "what the primary had said is not handed on")
	require.NotContains(tr.T, string(tr.providers["substitute"].Calls()[0].Body), "assistant")
}

// S15: all served; few primary attempts while down; back on the primary within 30 s. A scale
// of 1:20: 3 s of outage, a request each 200 ms, 1.5 s to be back.
func downForAMinute(tr *trial) {
	const outage, every, back = 3 * time.Second, 200 * time.Millisecond, 1500 * time.Millisecond
	tick := time.NewTicker(every)
	defer tick.Stop()
	began := time.Now()
	var well, returned time.Time
	for returned.IsZero() {
		r := tr.rescued() // every one of them is served
		primary := tr.providers["primary"].Calls()
		if well.IsZero() && len(primary) > 0 {
			well = primary[0].At.Add(outage)
		}
		if strings.HasSuffix(r.Header.Get("interlock-route"), "/primary") {
			returned = r.Ended
			break
		}
		require.Less(tr.T, time.Since(began), outage+back+5*late, "the primary is well and not used")
		<-tick.C
	}
	require.Less(tr.T, returned.Sub(well), back+late)
	down := 0
	for _, c := range tr.providers["primary"].Calls() {
		if c.Rule != "" {
			down++
		}
	}
	// Five failures open the circuit, which a request of two attempts may overrun by one; then
	// a probe after 0.75 s, 1 s, 1 s.
	require.LessOrEqual(tr.T, down, 6+4, "primary attempts while it was down")
	for range 3 {
		tr.healthyAfterwards()
	}
}

// S16: the answer names the substitute's model, with usage; failed attempts are not billed.
func billing(tr *trial) {
	r := tr.rescued()
	tr.answeredBy(r, "substitute", "model_substitution")
	e := tr.entry(r.ID())
	require.NotNil(tr.T, e.Answered)
	require.Equal(tr.T, "substitute-model", *e.Answered)
	for _, a := range e.Attempts[:len(e.Attempts)-1] {
		require.Equal(tr.T, "no", a.Billable)
		require.NotNil(tr.T, a.Cost)
		require.Zero(tr.T, *a.Cost)
		require.Nil(tr.T, a.Usage)
	}
	last := e.Attempts[len(e.Attempts)-1]
	const cost = (20*2.00 + 60*8.00) / 1e6
	require.Equal(tr.T, "yes", last.Billable)
	require.NotNil(tr.T, last.Cost)
	require.InDelta(tr.T, cost, *last.Cost, 1e-12)
	require.InDelta(tr.T, cost, *e.Cost, 1e-12, "the request costs what its answer costs")
	require.False(tr.T, e.Usage.Estimated)
	require.EqualValues(tr.T, 20, *e.Usage.Input)
	require.EqualValues(tr.T, 60, *e.Usage.Output)
}
