package server

import (
	"context"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/gateway/ledger"
	"github.com/interlock-gateway/interlock/gateway/storage"
)

const hello = `{"model":"m","messages":[{"role":"user","content":"hi"}]}`

// requireError demands an error with everything that the caller needs to tell it by.
func requireError(t *testing.T, a *answer, status int, code string, again bool) {
	t.Helper()
	require.Equal(t, status, a.Status, a.Body)
	require.Equal(t, code, a.errorCode(), a.Body)
	require.Equal(t, again, a.Header.Get("x-should-retry") == "true")
	require.Equal(t, again, a.Header.Get("retry-after") != "", "a time belongs to it exactly if it is worth asking again")
	require.True(t, strings.HasPrefix(a.ID(), "req_"))
	require.Contains(t, a.Body, a.ID())
}

// TestGatewayBusy: the bodies in flight are bounded together; the one over the bound is told
// when to come again, and is served once another has gone.
func TestGatewayBusy(t *testing.T) {
	t.Parallel()
	st := setUp(t, map[string]string{"a": "on chat\n  once\n  stall\n", "b": ""},
		"listen: {address: 127.0.0.1:0, drain_delay: 0s, max_inflight_body: 1KiB}\n"+twoChannels)
	body := `{"model":"m","messages":[{"role":"user","content":"` + strings.Repeat("x", 700) + `"}]}`
	ctx, leave := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() {
		_, err := st.post(ctx, "/v1/chat/completions", body)
		gone <- err
	}()
	_, err := st.providers["a"].WaitStalled(patience(t), 1)
	require.NoError(t, err)
	requireError(t, st.chat(body), 503, "gateway_busy", true)
	st.calls(map[string]int{"a": 1, "b": 0})
	require.Equal(t, 200, st.chat(hello).Status, "a smaller body fits beside it")
	leave()
	require.Error(t, <-gone)
	require.Eventually(t, func() bool { return st.gateway.Running() == 0 }, 10*time.Second, time.Millisecond)
	require.Equal(t, 200, st.chat(body).Status)
}

// TestGatewayShutdown: what still runs when the drain is over is told so: with a status where
// none is out, else with the error that ends a partial stream.
func TestGatewayShutdown(t *testing.T) {
	t.Parallel()
	st := setUp(t, map[string]string{"a": "on chat json\n  stall\non chat stream\n  role\n  text \"one \"\n  stall\n", "b": ""},
		"listen: {address: 127.0.0.1:0, drain_delay: 0s, drain_timeout: 300ms}\n"+twoChannels)
	whole, stream := make(chan *answer, 1), make(chan *answer, 1)
	go func() { whole <- st.chat(hello) }()
	go func() { stream <- st.chat(strings.Replace(hello, `"m",`, `"m","stream":true,`, 1)) }()
	_, err := st.providers["a"].WaitStalled(patience(t), 1)
	require.NoError(t, err)
	_, err = st.providers["a"].WaitStalled(patience(t), 2)
	require.NoError(t, err)
	url := st.Gateway().Generation().Config.Storage.URL
	st.end()
	a, s := <-whole, <-stream
	requireError(t, a, 503, "gateway_shutdown", true)
	require.Equal(t, 200, s.Status)
	require.NoError(t, s.Err, "the body ends cleanly")
	require.Contains(t, s.Body, `"code":"partial_stream"`)
	require.NotContains(t, s.Body, "[DONE]")
	st.calls(map[string]int{"a": 2, "b": 0})

	db, err := storage.Open(patience(t), storage.Options{URL: url})
	require.NoError(t, err)
	defer db.Close()
	for id, terminal := range map[string]string{a.ID(): "policy_stop", s.ID(): "partial"} {
		r, err := ledger.NewReader(db).Show(patience(t), id)
		require.NoError(t, err)
		require.Equal(t, terminal, r.Terminal.String())
		require.Len(t, r.Attempts, 1)
	}
}

// endedBadly waits for a gateway whose storage was taken away: that it could not close it in order is
// no fault of its own.
func (st *stand) endedBadly() {
	st.stop()
	<-st.ended
	st.ended <- nil
}

// TestStorageAway: while storage is away attempts are recorded in the spool, and operators see
// it; where nothing takes a record no attempt is made.
func TestStorageAway(t *testing.T) {
	t.Parallel()
	for _, durability := range []string{"sync", "group_commit"} {
		t.Run(durability, func(t *testing.T) {
			t.Parallel()
			st := setUp(t, map[string]string{"a": "", "b": ""}, twoChannels+"storage: {ledger: {durability: "+durability+"}}\n")
			t.Cleanup(st.endedBadly)
			require.Equal(t, 200, st.chat(hello).Status)
			require.NoError(t, st.ledger.Flush(t.Context()))
			require.NoError(t, st.db.Close())
			require.Equal(t, 200, st.chat(hello).Status, "the spool takes it")
			var ready struct {
				Status   string            `json:"status"`
				Degraded map[string]string `json:"degraded"`
			}
			require.Eventually(t, func() bool {
				return st.admin("GET", "/readyz", "", &ready) == http.StatusOK && ready.Degraded["storage"] != ""
			}, 10*time.Second, 10*time.Millisecond)
			spool, err := filepath.Glob(filepath.Join(st.Gateway().Generation().Config.DataDir, "ledger.spool"))
			require.NoError(t, err)
			require.Len(t, spool, 1)
			require.Eventually(t, func() bool { return st.ledger.Status().SpoolBytes > 0 }, 10*time.Second, time.Millisecond)
			st.calls(map[string]int{"a": 2, "b": 0})

			// Then the ledger takes nothing any more.
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			_ = st.ledger.Close(ctx) // it cannot write what it has
			for _, stream := range []string{"false", "true"} {
				a := st.chat(`{"model":"m","stream":` + stream + `,"messages":[{"role":"user","content":"hi"}]}`)
				requireError(t, a, 503, "storage_unavailable", false)
			}
			st.calls(map[string]int{"a": 2, "b": 0})
		})
	}
}

// TestInternalError: a fault of the gateway's own is one answer, not the end of the process.
func TestInternalError(t *testing.T) {
	t.Parallel()
	st := setUp(t, map[string]string{"a": "", "b": ""}, twoChannels)
	require.Equal(t, 200, st.chat(hello).Status)
	g := st.gateway.Generation()
	st.gateway.Use(nil) // nothing in the gateway does that: every request panics
	a := st.chat(hello)
	st.gateway.Use(g)
	requireError(t, a, 500, "internal_error", false)
	require.NotContains(t, a.Body, "nil pointer", "what it was is for the log")
	require.Eventually(t, func() bool { return strings.Contains(st.logs.String(), `"msg":"panic"`) }, 10*time.Second, time.Millisecond)
	require.Equal(t, 200, st.chat(hello).Status)
	st.calls(map[string]int{"a": 2, "b": 0})
}
