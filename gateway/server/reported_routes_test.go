package server

import (
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/gateway/route/breaker"
)

func allRateLimited(t *testing.T) {
	st := baseline(t, "T18")
	began := time.Now()
	got := st.chat(r1)
	require.Less(t, time.Since(began), 500*time.Millisecond+late, "nothing sleeps past the budget")
	got.refused(t, 429, "routes_exhausted", "true")
	require.Equal(t, "3", got.Header.Get("Retry-After"), "the soonest of all routes")
	require.Contains(t, got.Body, `"rate_limit_error"`)
	st.calls(map[string]int{"A": 1, "B": 1})
	st.requireRecord(got.ID(), "exhausted", tried{"a", "rate_limited"}, tried{"b", "rate_limited"})
}

func attemptsAreAHardCap(t *testing.T) {
	st := setUp(t, corpus(t, "reported", "T19"), with(t, k0, "max_attempts_per_route: 1", "max_attempts_per_route: 6"))
	got := st.chat(r1)
	got.refused(t, 502, "routes_exhausted", "false")
	sum := st.providers["A"].Count() + st.providers["B"].Count()
	require.Equal(t, 3, sum, "calls that reached the providers")
	require.Len(t, st.entry(got.ID()).Attempts, sum, "the ledger has them all and no other")
	require.Equal(t, "3", got.Header.Get("interlock-attempts"))
}

func noAnswerUnder200(t *testing.T) {
	st := baseline(t, "T22")
	for i, variant := range []string{"an error beside no choices", "an HTML page"} {
		got := st.chat(r1)
		require.Equal(t, 200, got.Status, "%s: %s", variant, got.Body)
		require.Equal(t, "from B", got.content(t), variant)
		require.NotContains(t, got.Body, "html", variant)
		require.NotContains(t, got.Body, "Provider returned error", variant)
		st.calls(map[string]int{"A": i + 1, "B": i + 1})
		e := st.entry(got.ID())
		require.Len(t, e.Attempts, 2, variant)
		require.Contains(t, []string{"malformed_answer", "server_error"}, e.Attempts[0].Class, variant)
		require.Equal(t, "", e.Attempts[1].Class, variant)
	}
}

func oneProbe(t *testing.T) {
	st := setUp(t, corpus(t, "reported", "T25"), with(t, k0, k0Breaker, opensAfter3))
	for range 3 {
		require.Equal(t, "from B", st.chat(r1).content(t))
	}
	require.Equal(t, breaker.Open, st.circuit("a"))
	require.Eventually(t, func() bool { return st.circuit("a") != breaker.Open }, 10*time.Second, 20*time.Millisecond)

	const callers = 20
	texts := make([]string, callers)
	var running sync.WaitGroup
	for i := range callers {
		running.Go(func() { texts[i] = st.chat(r1).content(t) })
	}
	running.Wait()
	require.Equal(t, 1, strings.Count(strings.Join(texts, "|"), "from A"), "one probe: %v", texts)
	require.Equal(t, callers-1, strings.Count(strings.Join(texts, "|"), "from B"))
	st.calls(map[string]int{"A": 3 + 1, "B": 3 + callers - 1})
	require.Equal(t, breaker.Closed, st.circuit("a"))
	for range 5 {
		require.Equal(t, "from A", st.chat(r1).content(t))
	}
	st.calls(map[string]int{"A": 3 + 1 + 5, "B": 3 + callers - 1})
}

func nothingIsSentTwice(t *testing.T) {
	st := baseline(t, "T27")
	first := st.chat(r1, "Idempotency-Key", "k1")
	require.Equal(t, "from A", first.content(t))
	second := st.chat(r1, "Idempotency-Key", "k2")
	require.Equal(t, "from B", second.content(t))
	st.calls(map[string]int{"A": 2, "B": 1})
	calls := st.providers["A"].Calls()
	require.Equal(t, calls[0].Conn, calls[1].Conn, "the case wants a kept connection")
	require.Equal(t, 2, calls[1].ConnCall)
	st.requireRecord(first.ID(), "success", tried{"a", ""})
	e := st.requireRecord(second.ID(), "success", tried{"a", "network"}, tried{"b", ""})
	a := e.Attempts[0]
	require.Equal(t, "before_headers", a.Phase)
	require.NotNil(t, a.Sent, "the request had been written")
	require.Nil(t, a.Headers)
}
