package server

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/gateway/route"
)

// kin is a failure of the same kind as a reported one that comes in another shape: what A
// does (B is healthy), and what has to become of a request.
type kin struct {
	name    string
	a       string // the rule's body
	json    bool   // the caller wants no stream
	text    string // of the answer; before the error event of a partial one
	partial bool
	class   string // of A's attempt; "" = A answers
	status  int    // of an error that is the caller's; 0 = an answer comes
	code    string
}

var kinds = []kin{
	// cut in the middle
	{name: "reset after output", a: "role\ntext \"one \"\ncut reset", text: "one ", partial: true, class: "partial_stream"},
	{name: "cut within an event after output", a: "role\ntext \"one \"\nraw \"data: {\\\"id\\\":\\\"cA\\\",\\\"choi\"\ncut fin", text: "one ", partial: true, class: "partial_stream"},
	{name: "ends cleanly within an event", a: "role\ntext \"one \"\nraw \"data: {\\\"id\\\":\\\"cA\\\",\\\"choi\"", text: "one ", partial: true, class: "partial_stream"},
	{name: "ends cleanly without a finish reason", a: "role\ntext \"one \"", text: "one ", partial: true, class: "partial_stream"},
	{name: "[DONE] without a finish reason", a: "role\ntext \"one \"\ndone", text: "one ", partial: true, class: "partial_stream"},
	{name: "error after output", a: "role\ntext \"one \"\nerror {\"message\": \"Overloaded\", \"code\": \"overloaded\"}\ndone", text: "one ", partial: true, class: "partial_stream"},
	{name: "error as a string after output", a: "role\ntext \"one \"\nerror \"gone\"", text: "one ", partial: true, class: "partial_stream"},
	{name: "error beside choices after output", a: "role\ntext \"one \"\nevent {\"id\": \"cA\", \"object\": \"chat.completion.chunk\", \"choices\": [{\"index\": 0, \"delta\": {\"content\": \"\"}, \"finish_reason\": \"error\"}], \"error\": {\"code\": 502, \"message\": \"Provider returned error\"}}\ndone", text: "one ", partial: true, class: "partial_stream"},
	{name: "finish reason error after output", a: "role\ntext \"one \"\nfinish error\ndone", text: "one ", partial: true, class: "partial_stream"},
	{name: "reset before output", a: "role\ncut reset", text: "from B", class: "network"},
	{name: "ends cleanly before output", a: "role", text: "from B", class: "network"},
	{name: "reset within a JSON body", a: "cut reset after 40\nanswer \"from A\"", json: true, text: "from B", class: "network"},
	{name: "JSON body shorter than its length", a: "content-length 900\nanswer \"from A\"", json: true, text: "from B", class: "network"},
	{name: "half a JSON body of the right length", a: "body \"{\\\"id\\\":\\\"cA\\\",\\\"choices\\\":[\" type \"application/json\"", json: true, text: "from B", class: "malformed_answer"},

	// errors and nothing under a 200
	{name: "error event named error", a: "error {\"message\": \"Overloaded\", \"type\": \"overloaded_error\"} named error", text: "from B", class: "overloaded"},
	{name: "error as a string", a: "error \"gone\"", text: "from B", class: "server_error"},
	{name: "finish reason error before output", a: "role\nfinish error\ndone", text: "from B", class: "server_error"},
	{name: "rate limit under 200", a: "error {\"message\": \"slow down\", \"code\": \"rate_limit_exceeded\"}", text: "from B", class: "rate_limited"},
	{name: "context overflow under 200", a: "error {\"message\": \"too long\", \"type\": \"invalid_request_error\", \"code\": \"context_length_exceeded\"}", class: "context_overflow", status: 400, code: "context_length_exceeded"},
	{name: "JSON where a stream was asked for", a: "as json\nanswer \"from A\"", text: "from B", class: "malformed_answer"},
	{name: "a stream where JSON was asked for", a: "as stream\nanswer \"from A\"", json: true, text: "from B", class: "malformed_answer"},
	{name: "HTML where a stream was asked for", a: "html \"<html>busy</html>\"", text: "from B", class: "malformed_answer"},
	{name: "an empty body", a: "empty", json: true, text: "from B", class: "malformed_answer"},
	{name: "a redirect", a: "status 307\nheader Location \"http://127.0.0.1:9/v1\"", json: true, text: "from B", class: "malformed_answer"},
	{name: "an empty text", a: "answer \"\" usage 7 0", json: true, text: "from B", class: "empty_completion"},
	{name: "empty deltas only", a: "role\ntext \"\"\ntext \"\"\nfinish stop\ndone", text: "from B", class: "empty_completion"},
	{name: "[DONE] and nothing else", a: "done", text: "from B", class: "network"},
	{name: "an invalid event before output", a: "role\nraw \"data: {oops\\n\\n\"\ntext \"one \"\nfinish stop\ndone", text: "from B", class: "malformed_answer"},
	{name: "pings are no output", a: "role\nrepeat 40 {\ndelay 100ms\ncomment \"ping\"\n}\nfinish stop\ndone", text: "from B", class: "timeout"},

	// unusual, and whole
	{name: "CRLF", a: "crlf\nrole\ntext \"one \"\nfinish stop\ndone", text: "one "},
	{name: "one byte a write, CRLF", a: "crlf\nchunk 1\nrole\ntext \"안녕\"\nfinish stop\ndone", text: "안녕"},
	{name: "the head too, seven bytes at a time", a: "trickle 7\nrole\ntext \"one \"\nfinish stop\ndone", text: "one "},
	{name: "gzip", a: "encoding gzip\nanswer \"one \" whole", text: "one "},
	{name: "reset behind the finish reason", a: "role\ntext \"one \"\nfinish stop\ncut reset", text: "one "},
	{name: "silence behind the finish reason", a: "role\ntext \"one \"\nfinish stop\nstall", text: "one "},
	{name: "an invalid event after output is skipped", a: "role\ntext \"one \"\nraw \"data: {oops\\n\\n\"\ntext \"two\"\nfinish stop\ndone", text: "one two"},
	{name: "a JSON answer in gzip", a: "encoding gzip\nanswer \"one \"", json: true, text: "one "},

	// the caller's own
	{name: "422", a: "status 422 message \"bad field\" param temperature", json: true, class: "client_invalid", status: 400, code: "invalid_request"},
	{name: "413 of the prompt", a: "status 413 code context_length_exceeded message \"too long\"", json: true, class: "context_overflow", status: 413, code: "context_length_exceeded"},
}

// TestReportedKinds goes through them on one gateway, which has to be as good as new after
// each.
func TestReportedKinds(t *testing.T) {
	t.Parallel()
	st := setUp(t, map[string]string{"A": "id \"cA\"\n", "B": "id \"cB\"\nhealthy \"from B\" usage 7 2 whole\n"}, k0)
	for _, k := range kinds {
		t.Run(strings.ReplaceAll(k.name, " ", "_"), func(t *testing.T) {
			on := *st
			on.t = t
			require.Eventually(t, func() bool { // an account may still rest
				return on.status("a").State == route.Ready
			}, 10*time.Second, 5*time.Millisecond)
			k.run(t, &on)
		})
	}
}

func (k kin) run(t *testing.T, st *stand) {
	rule := "on chat stream\n  "
	if k.json {
		rule = "on chat json\n  "
	}
	st.script("A", "id \"cA\"\n\n"+rule+strings.ReplaceAll(k.a, "\n", "\n  ")+"\n")
	wantA, wantB := st.providers["A"].Count()+1, st.providers["B"].Count()
	body := r0
	if k.json {
		body = r1
	}
	got := st.stream(body)
	attempts := []tried{{"a", k.class}}
	terminal := "success"
	switch {
	case k.partial:
		got.broken(t, k.text)
		terminal = "partial"
	case k.status != 0:
		require.Equal(t, k.status, got.Status, got.Body)
		require.Contains(t, got.Header.Get("Content-Type"), "application/json")
		require.Equal(t, "false", got.Header.Get("x-should-retry"))
		if k.code != "invalid_request" {
			require.Equal(t, k.code, got.errorCode(), got.Body)
		}
		terminal = "policy_stop"
	case k.class == "":
		if k.json {
			require.Equal(t, k.text, got.content(t))
		} else {
			require.Equal(t, k.text, got.whole(t).Text)
		}
	default:
		wantB++
		attempts = append(attempts, tried{"b", ""})
		if k.json {
			require.Equal(t, k.text, got.content(t))
			require.NotContains(t, got.Body, "cA")
		} else {
			got.onlyB(t)
		}
	}
	st.requireRecord(got.ID(), terminal, attempts...)
	st.calls(map[string]int{"A": wantA, "B": wantB})
}
