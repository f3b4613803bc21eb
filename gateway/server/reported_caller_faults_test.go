package server

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/gateway/route/breaker"
)

// leave calls the gateway and closes the caller's socket once ready returns, then returns
// when that was.
func (st *stand) leave(body string, ready func()) time.Time {
	st.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	over := make(chan *seen, 1)
	go func() { over <- st.watch(ctx, body) }()
	ready()
	left := time.Now()
	cancel()
	s := <-over
	require.Error(st.t, s.Err, "the caller got an answer before it left")
	return left
}

// leaveStalled leaves once the n-th call of a provider stalls.
func (st *stand) leaveStalled(body, provider string, n int) {
	st.t.Helper()
	left := st.leave(body, func() {
		_, err := st.providers[provider].WaitStalled(patience(st.t), n)
		require.NoError(st.t, err)
	})
	call := st.closed(provider, n)
	require.Less(st.t, call.PeerClosed.Sub(left), 500*time.Millisecond+late, "the upstream call outlived its caller")
}

func callerLeavesStream(t *testing.T) {
	yaml := with(t, k0, k0Breaker, opensAfter3)
	yaml = with(t, yaml, "first_output: 2s, idle: 2s", "first_output: 8s, idle: 8s")
	st := setUp(t, corpus(t, "reported", "T15"), yaml)
	const times = 20
	for i := range times {
		st.leaveStalled(r0, "A", i+1)
	}
	for _, id := range st.endedRequests(times) {
		e := st.requireRecord(id, "cancelled", tried{"a", "cancelled"})
		require.Equal(t, "cancelled", e.Attempts[0].Terminal)
		require.Equal(t, 499, e.Status)
	}
	require.Equal(t, breaker.Closed, st.circuit("a"))
	st.script("A", `healthy "from A" usage 7 2 whole`+"\n")
	got := st.stream(r0)
	require.Equal(t, "from A", got.whole(t).Text)
	st.calls(map[string]int{"A": times + 1, "B": 0})
}

func callerLeavesJSON(t *testing.T) {
	st := setUp(t, corpus(t, "reported", "T16"), with(t, k0, "first_byte: 2s, first_output: 2s, idle: 2s", "first_byte: 8s, first_output: 8s, idle: 8s"))
	st.leaveStalled(r1, "A", 1)
	id := st.endedRequests(1)[0]
	st.requireRecord(id, "cancelled", tried{"a", "cancelled"})
	require.Zero(t, st.Gateway().Running(), "a request that has ended starts nothing more")
	st.calls(map[string]int{"A": 1, "B": 0})
}

func callersErrorIsNotMasked(t *testing.T) {
	st := setUp(t, corpus(t, "reported", "T17"), with(t, k0, k0Breaker, opensAfter3))
	for i := range 4 { // as many as would open the circuit, and one
		got := st.stream(r0)
		got.refused(t, 400, "context_length_exceeded", "false")
		require.Contains(t, got.Body, `"maximum context length is 8192 tokens (request `+got.ID()+`)"`)
		require.Contains(t, got.Body, `"param":"messages"`)
		require.Contains(t, got.Body, `"type":"invalid_request_error"`)
		st.calls(map[string]int{"A": i + 1, "B": 0})
		st.requireRecord(got.ID(), "policy_stop", tried{"a", "context_overflow"})
	}
	require.Equal(t, breaker.Closed, st.circuit("a"))
}

func callersFaultsOpenNothing(t *testing.T) {
	yaml := with(t, k0, k0Breaker, opensAfter3)
	// The ratio rule as well, so that not even a count is kept.
	yaml = with(t, yaml, "consecutive_failures: 3, failure_ratio: 0", "consecutive_failures: 3, failure_ratio: 0.1, min_requests: 1")
	st := setUp(t, corpus(t, "reported", "T26"), yaml)
	for range 50 {
		st.chat(r1).refused(t, 400, "context_length_exceeded", "false")
	}
	for i := range 10 {
		n := 50 + i + 1
		st.leave(r1, func() {
			_, err := st.providers["A"].WaitCalls(patience(t), n)
			require.NoError(t, err)
		})
		st.closed("A", n)
	}
	ids := st.endedRequests(60)
	for _, id := range ids[:50] {
		st.requireRecord(id, "policy_stop", tried{"a", "context_overflow"})
	}
	for _, id := range ids[50:] {
		st.requireRecord(id, "cancelled", tried{"a", "cancelled"})
	}
	got := st.chat(r1)
	require.Equal(t, 200, got.Status, got.Body)
	require.Equal(t, "from A", got.content(t))
	st.calls(map[string]int{"A": 61, "B": 0})
	require.Equal(t, breaker.Closed, st.circuit("a"))
	e := st.requireRecord(got.ID(), "success", tried{"a", ""})
	require.Equal(t, "closed", e.Attempts[0].Circuit)
}

func unknownModelAndFields(t *testing.T) {
	st := baseline(t, "T30")
	got := st.chat(strings.Replace(r1, `"chat"`, `"nope"`, 1))
	got.refused(t, 404, "model_not_found", "false")
	st.calls(map[string]int{"A": 0, "B": 0})
	e := st.entry(got.ID())
	require.Equal(t, "policy_stop", e.Terminal)
	require.Empty(t, e.Attempts)

	body := strings.Replace(r1, `{"model"`, `{"seed":9007199254740993,"enable_thinking":false,"model"`, 1)
	got = st.chat(body)
	require.Equal(t, 200, got.Status, got.Body)
	st.calls(map[string]int{"A": 1, "B": 0})
	sent := string(st.providers["A"].Calls()[0].Body)
	require.Equal(t, strings.Replace(body, `"chat"`, `"ma"`, 1), sent, "the body goes on byte for byte but for its model")
	require.Contains(t, sent, `"seed":9007199254740993`)
	require.Contains(t, sent, `"enable_thinking":false`)
	require.Equal(t, http.StatusOK, st.entry(got.ID()).Status)
}
