package server

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Heartbeats commit the status and nothing else: attempts go on behind them, and when all
// fail, the error event speaks of no answer that the caller never saw.
func TestAFailureBehindHeartbeats(t *testing.T) {
	st := setUp(t, map[string]string{
		"a": "on chat responses\n  role\n  delay 200ms\n  cut reset\n",
		"b": "on chat responses\n  delay 200ms\n  status 503\n",
	}, twoChannels+"stream: {heartbeat: 60ms}\nbudgets: {interactive: {max_attempts: 2}}\nbreaker: {consecutive_failures: 0, failure_ratio: 0}\n")
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	for path, body := range map[string]string{
		"/v1/chat/completions": `{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}`,
		"/v1/responses":        `{"model":"m","stream":true,"input":"hi"}`,
	} {
		got, err := st.post(ctx, path, body)
		require.NoError(t, err)
		require.NoError(t, got.Err)
		require.Equal(t, 200, got.Status)
		require.True(t, strings.HasPrefix(got.Body, ":\n"), got.Body)
		require.Contains(t, got.Body, `"code":"routes_exhausted"`)
		require.NotContains(t, got.Body, "[DONE]")
		if path == "/v1/responses" {
			require.Contains(t, got.Body, "event: error\n")
			require.Contains(t, got.Body, "event: response.failed\n")
			require.NotContains(t, got.Body, "event: response.created\n")
		}
		r := st.record(got.ID())
		require.Equal(t, "exhausted", r.Terminal)
		require.Equal(t, 200, r.Status)
		require.Len(t, r.Attempts, 2)
		require.False(t, r.OutputStarted)
	}
}

// With after_disconnect: drain the upstream is read on for its usage, for nobody else.
func TestADisconnectedCallersUsageIsExactWhereAsked(t *testing.T) {
	st := setUp(t, map[string]string{
		"a": "on chat stream\n  role\n  text \"one\"\n  delay 300ms\n  text \"two\"\n  finish stop\n  usage 70 20\n  done\n",
	}, oneChannel+"stream: {after_disconnect: drain}\n")
	ctx, cancel := context.WithTimeout(context.Background(), 150*time.Millisecond)
	defer cancel()
	got, err := st.post(ctx, "/v1/chat/completions", `{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}`)
	require.NoError(t, err)
	require.Error(t, got.Err)
	require.Eventually(t, func() bool { return st.gateway.Running() == 0 }, 10*time.Second, time.Millisecond)
	r := st.record(got.ID())
	require.Equal(t, "cancelled", r.Terminal)
	require.NotNil(t, r.Usage)
	require.Equal(t, int64(70), *r.Usage.Input)
	require.False(t, r.Usage.Estimated)
}
