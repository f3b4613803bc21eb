package server

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// recordedError is the caller's side of an error.
type recordedError struct {
	Message, Type, Code string
	Interlock           struct{ Class, Terminal string }
}

func readRecordedError(t *testing.T, body string) recordedError {
	t.Helper()
	var v struct{ Error recordedError }
	require.NoError(t, json.Unmarshal([]byte(body), &v), body)
	return v.Error
}

// checkRecordedError checks what a caller gets of a provider's error status: its own mistakes as
// the provider words them, everything else as the gateway's.
func checkRecordedError(t *testing.T, r *recording, a *answer) {
	t.Helper()
	got := readRecordedError(t, a.Body)
	require.NotEmpty(t, got.Message)
	code := ""
	if r.expect != nil && r.expect.Error != nil && r.expect.Error.Code != nil {
		code = fmt.Sprint(r.expect.Error.Code)
	}
	switch {
	case string(r.request["messages"]) == "[]":
		require.Equal(t, 400, a.Status, "the gateway itself refuses it: %s", a.Body)
		require.Equal(t, "invalid_request", got.Code)
		return
	case r.status == 401 || r.status == 402 || code == "insufficient_quota":
		require.Equal(t, 502, a.Status, a.Body)
		require.Equal(t, "routes_exhausted", got.Code)
		require.Equal(t, "upstream_auth", got.Interlock.Class)
		return
	case r.status == 404 || code == "model_not_found":
		require.Equal(t, 502, a.Status, a.Body)
		require.Equal(t, "routes_exhausted", got.Code)
		require.Equal(t, "model_unavailable", got.Interlock.Class)
		return
	case r.status == 429:
		require.Equal(t, 429, a.Status, a.Body)
		require.Equal(t, "routes_exhausted", got.Code)
		require.Equal(t, "rate_limited", got.Interlock.Class)
		return
	}
	require.Equal(t, 400, r.status, "a recorded status this test has no rule for")
	require.Equal(t, 400, a.Status, a.Body)
	require.Equal(t, "policy_stop", got.Interlock.Terminal)
	if r.expect == nil || r.expect.Error == nil {
		return
	}
	want := r.expect.Error
	message, _, _ := strings.Cut(want.MessageContains, "http") // URLs are redacted
	require.Contains(t, got.Message, message)
	if code == "" { // OpenAI's word, where the provider has none
		code = map[string]string{"context_overflow": "context_length_exceeded", "content_filtered": "content_filter"}[got.Interlock.Class]
	}
	require.Equal(t, code, got.Code)
	switch kind := want.Type.(type) {
	case string:
		require.Equal(t, kind, got.Type)
	case float64: // a status in the place of a type says nothing to a caller
		require.Equal(t, "invalid_request_error", got.Type)
	}
}

// checkRecordedBreak checks a failure inside a 200 stream after output: a partial end.
func checkRecordedBreak(t *testing.T, r *recording, a *answer) {
	t.Helper()
	require.Equal(t, 200, a.Status, "both recorded ones had sent output before: %s", a.Body)
	h, err := hearStream(a.Body, r.endpoint)
	require.NoError(t, err)
	require.NotNil(t, h.err, a.Body)
	require.Equal(t, "partial_stream", h.err["code"])
	require.False(t, h.done, "no [DONE] after a partial end")
	require.Contains(t, h.err["message"], "(request "+a.ID()+")")
	// The gateway makes up no finish reason. One that the provider itself sent before its error
	// has gone out by then.
	sent, err := hearStream(string(r.body), r.endpoint)
	require.NoError(t, err)
	require.Equal(t, sent.finish, h.finish)
	require.Equal(t, sent.text, h.text, a.Body)
	require.Equal(t, sent.reasoning, h.reasoning)
}
