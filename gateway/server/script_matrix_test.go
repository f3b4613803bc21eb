package server

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// row is one line of the default matrix as decisions.md gives it, with how a provider fails so.
type row struct {
	class, phase string
	fault        string // of the primary, for every call
	streamOnly   bool
	certain      bool // surely not processed: replayable whatever the side effects
	retries      int  // same-route retries before the fallback
	fallback     bool
	terminal     string // where nothing else answers
}

var matrixRows = []row{
	{class: "client_invalid", phase: "before_headers", fault: "status 400 code invalid_value", terminal: "policy_stop"},
	{class: "context_overflow", phase: "before_headers", fault: "status 400 code context_length_exceeded", terminal: "policy_stop"},
	{class: "upstream_auth", phase: "before_headers", fault: "status 401 code invalid_api_key", certain: true, fallback: true},
	{class: "model_unavailable", phase: "before_headers", fault: "status 404 code model_not_found", certain: true, fallback: true},
	{class: "network", phase: "before_headers", fault: "cut reset", retries: 1, fallback: true},
	{class: "network", phase: "before_output", fault: "role\n  cut reset", streamOnly: true, retries: 1, fallback: true},
	{class: "timeout", phase: "before_headers", fault: "stall", fallback: true},
	{class: "timeout", phase: "before_output", fault: "role\n  stall", streamOnly: true, fallback: true},
	{class: "rate_limited", phase: "before_headers", fault: "status 429\n  header Retry-After 1", certain: true, fallback: true},
	{class: "overloaded", phase: "before_headers", fault: "status 529", fallback: true},
	{class: "overloaded", phase: "before_output", fault: "role\n  error {\"code\": \"overloaded_error\", \"type\": \"overloaded_error\", \"message\": \"busy\"}", streamOnly: true, fallback: true},
	{class: "server_error", phase: "before_headers", fault: "status 500", fallback: true},
	{class: "server_error", phase: "before_output", fault: "role\n  error {\"code\": \"server_error\", \"message\": \"oops\"}", streamOnly: true, fallback: true},
	{class: "malformed_answer", phase: "before_output", fault: "html \"<html>busy</html>\"", fallback: true},
	{class: "empty_completion", phase: "before_output", fault: "answer \"\" usage 7 0", fallback: true},
	{class: "content_filtered", phase: "before_headers", fault: "status 400 code content_policy_violation", terminal: "policy_stop"},
	{class: "unknown", phase: "before_headers", fault: "status 418", terminal: "policy_stop"},
	{class: "partial_stream", phase: "after_output", fault: "role\n  text \"one \"\n  cut reset", streamOnly: true, terminal: "partial"},
}

// TestTheDefaultMatrixThroughTheGateway drives a primary that fails in every way a provider can
// make it fail, with and without possible side effects, as a stream and not.
func TestTheDefaultMatrixThroughTheGateway(t *testing.T) {
	t.Parallel()
	yaml := strings.ReplaceAll(twoChannels, "priority: 1,", "priority: 1, timeouts: {first_byte: 300ms, first_output: 300ms, idle: 300ms},") +
		"budgets:\n  interactive: {backoff: {base: 1ms, max: 5ms}}\n"
	for _, r := range matrixRows {
		for _, side := range []string{"none", "possible"} {
			for _, stream := range []string{"true", "false"} {
				if r.streamOnly && stream == "false" {
					continue
				}
				t.Run(r.class+"/"+r.phase+"/"+side+"/stream "+stream, func(t *testing.T) {
					t.Parallel()
					st := setUp(t, map[string]string{"a": "on chat\n  " + r.fault + "\n", "b": ""}, yaml)
					got := st.chat(`{"model":"m","stream":`+stream+`,"messages":[{"role":"user","content":"hi"}]}`, "interlock-side-effects", side)
					rec := st.record(got.ID())
					var tried []string
					for _, a := range rec.Attempts {
						line := a.Cause + " " + a.Channel
						if a.Class != "" {
							line += " " + a.Class + " " + a.Phase
						}
						tried = append(tried, line)
					}
					require.Equal(t, r.attempts(side == "none"), tried)
					require.Equal(t, r.end(side == "none"), rec.Terminal)
				})
			}
		}
	}
}

func (r row) replayed(idempotent bool) bool { return r.fallback && (idempotent || r.certain) }

func (r row) attempts(idempotent bool) []string {
	failed := " a " + r.class + " " + r.phase
	out := []string{"initial" + failed}
	if r.replayed(idempotent) {
		for range r.retries {
			out = append(out, "same_route_retry"+failed)
		}
		out = append(out, "same_contract_fallback b")
	}
	return out
}

func (r row) end(idempotent bool) string {
	switch {
	case r.replayed(idempotent):
		return "success"
	case r.terminal != "":
		return r.terminal
	default:
		return "policy_stop" // the outcome is unknown
	}
}

// TestAChangedCellIsInForceWithoutARestart changes the policy folder under a running gateway.
func TestAChangedCellIsInForceWithoutARestart(t *testing.T) {
	t.Parallel()
	dir := policyDir(t)
	st := setUp(t, map[string]string{"a": "on chat\n  status 400 code context_length_exceeded\n", "b": ""},
		twoChannels+"policy: {bundles: [{name: own, path: \""+dir+"\"}]}\n")
	body := `{"model":"m","messages":[{"role":"user","content":"hi"}]}`
	becomes := func(status int) {
		t.Helper()
		start := time.Now()
		require.Eventually(t, func() bool { return st.chat(body).Status == status }, 20*time.Second, 50*time.Millisecond)
		t.Logf("in force after %v", time.Since(start))
	}
	require.Equal(t, 400, st.chat(body).Status)
	setCells(t, dir, "context_overflow before_headers same_contract_fallback yes\n")
	becomes(200)
	// A cell that no rule knows is refused, and the old revision stays.
	setCells(t, dir, "context_overflow before_headers same_contract_fallback perhaps\n")
	require.Eventually(t, func() bool {
		return strings.Contains(st.logs.String(), "perhaps") || strings.Contains(st.logs.String(), "refused")
	},
		20*time.Second, 50*time.Millisecond, "a broken change is in the log")
	require.Equal(t, 200, st.chat(body).Status)
	setCells(t, dir, "context_overflow before_headers same_contract_fallback no\n")
	becomes(400)
}
