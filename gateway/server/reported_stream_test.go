package server

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/gateway/route/breaker"
)

func cutMidAnswer(t *testing.T) {
	st := setUp(t, corpus(t, "reported", "T01"), with(t, k0, k0Breaker, "breaker: {consecutive_failures: 1, failure_ratio: 0}"))
	got := st.stream(r0)
	got.broken(t, "one two")
	st.calls(map[string]int{"A": 1, "B": 0})
	e := st.requireRecord(got.ID(), "partial", tried{"a", "partial_stream"})
	require.Equal(t, "after_output", e.Attempts[0].Phase)
	require.Equal(t, "partial", e.Attempts[0].Terminal)
	require.NotNil(t, e.Attempts[0].Usage)
	require.True(t, e.Attempts[0].Usage.Estimated)
	require.Equal(t, breaker.Open, st.circuit("a"), "it counts against the route")
}

func cutMidAnswerCloseDelimited(t *testing.T) {
	st := baseline(t, "T02")
	got := st.stream(r0)
	got.broken(t, "one ")
	st.calls(map[string]int{"A": 1, "B": 0})
	st.requireRecord(got.ID(), "partial", tried{"a", "partial_stream"})
}

func errorFirstUnder200(t *testing.T) { overloadedInside200(t, "T03") }

func preambleThenError(t *testing.T) { overloadedInside200(t, "T04") }

func overloadedInside200(t *testing.T, id string) {
	st := baseline(t, id)
	got := st.stream(r0)
	got.onlyB(t)
	st.calls(map[string]int{"A": 1, "B": 1})
	e := st.requireRecord(got.ID(), "success", tried{"a", "overloaded"}, tried{"b", ""})
	require.Equal(t, "before_output", e.Attempts[0].Phase)
	require.Equal(t, "failed", e.Attempts[0].Terminal)
}

func bothFailBeforeContent(t *testing.T) {
	st := baseline(t, "T05")
	got := st.stream(r0)
	got.refused(t, 502, "routes_exhausted", "false")
	require.Equal(t, "2", got.Header.Get("interlock-attempts"))
	st.calls(map[string]int{"A": 1, "B": 1})
	st.requireRecord(got.ID(), "exhausted", tried{"a", "server_error"}, tried{"b", "overloaded"})
}

func finishedWithoutDone(t *testing.T) { endsItself(t, "T06") }

func lastEventWithoutNewline(t *testing.T) { endsItself(t, "T07") }

func endsItself(t *testing.T, id string) {
	st := baseline(t, id)
	got := st.stream(r0)
	require.Equal(t, "one ", got.whole(t).Text)
	st.calls(map[string]int{"A": 1, "B": 0})
	call := st.providers["A"].Calls()[0]
	require.Less(t, got.Ended.Sub(call.At.Add(call.Took)), 200*time.Millisecond+late)
	st.requireRecord(got.ID(), "success", tried{"a", ""})
}

func unusualFraming(t *testing.T) { passesWhole(t, "T09", "one two") }

func oneBytePerWrite(t *testing.T) {
	require.NotContains(t, passesWhole(t, "T10", "안녕 渐🌍é").Body, "\uFFFD")
}

func twoMebibyteEvent(t *testing.T) { passesWhole(t, "T11", strings.Repeat("x", 2097152)) }

// passesWhole is about bytes, not clocks: a busy machine may take its time over them.
func passesWhole(t *testing.T, id, text string) *seen {
	st := setUp(t, corpus(t, "reported", id), with(t, k0, "first_byte: 2s, first_output: 2s, idle: 2s", "first_byte: 20s, first_output: 20s, idle: 20s"))
	got := st.stream(r0)
	out := got.whole(t)
	require.True(t, text == out.Text, "the text is not the provider's: %d bytes, not %d", len(out.Text), len(text))
	st.calls(map[string]int{"A": 1, "B": 0})
	st.requireRecord(got.ID(), "success", tried{"a", ""})
	return got
}

func silenceBehindInstant200(t *testing.T) {
	st := baseline(t, "T12")
	got := st.stream(r0)
	got.onlyB(t)
	first := got.Events[0].At.Sub(got.Sent)
	require.GreaterOrEqual(t, first, 2*time.Second)
	require.Less(t, first, 2600*time.Millisecond+late)
	st.calls(map[string]int{"A": 1, "B": 1})
	call := st.closed("A", 1)
	require.Less(t, call.PeerClosed.Sub(call.At), 2600*time.Millisecond+late)
	e := st.requireRecord(got.ID(), "success", tried{"a", "timeout"}, tried{"b", ""})
	require.Equal(t, "before_output", e.Attempts[0].Phase)
}

func silenceAfterContent(t *testing.T) {
	st := baseline(t, "T13")
	got := st.stream(r0)
	got.broken(t, "one ")
	var content, failed time.Time
	for _, e := range got.Events {
		var c chunk
		require.NoError(t, json.Unmarshal([]byte(e.Data), &c))
		if c.Error != nil {
			failed = e.At
		} else if len(c.Choices) > 0 && c.Choices[0].Delta.Content != "" {
			content = e.At
		}
	}
	silent := failed.Sub(content)
	require.Greater(t, silent, 1900*time.Millisecond, "the idle clock is 2 s; the caller's view of its start may lag")
	require.Less(t, silent, 2600*time.Millisecond+late)
	st.calls(map[string]int{"A": 1, "B": 0})
	call := st.closed("A", 1)
	require.Less(t, call.PeerClosed.Sub(call.At), 2600*time.Millisecond+late)
	st.requireRecord(got.ID(), "partial", tried{"a", "partial_stream"})
}

func emptyCompletion(t *testing.T) {
	st := baseline(t, "T21")
	got := st.stream(r0)
	got.onlyB(t)
	st.calls(map[string]int{"A": 1, "B": 1})
	e := st.requireRecord(got.ID(), "success", tried{"a", "empty_completion"}, tried{"b", ""})
	require.Equal(t, "before_output", e.Attempts[0].Phase)
	require.Equal(t, "failed", e.Attempts[0].Terminal)
}

func usageAskedAndHidden(t *testing.T) {
	st := baseline(t, "T29")
	asked := strings.Replace(r0, `"stream":true`, `"stream":true,"stream_options":{"include_usage":true}`, 1)
	for i, body := range []string{r0, asked} {
		got := st.stream(body)
		out := got.whole(t)
		require.Equal(t, "one ", out.Text)
		call := st.providers["A"].Calls()[i]
		var sent struct {
			Options struct {
				Usage bool `json:"include_usage"`
			} `json:"stream_options"`
		}
		require.NoError(t, json.Unmarshal(call.Body, &sent))
		require.True(t, sent.Options.Usage, "the gateway asks for the usage itself")
		if body == r0 {
			require.Empty(t, out.Usages, "usage that was not asked for")
			require.Zero(t, out.Empty)
		} else {
			require.Len(t, out.Usages, 1)
			u := out.Usages[0]
			require.Empty(t, u.Choices)
			require.Equal(t, [3]int{7, 2, 9}, [3]int{u.Usage.Prompt, u.Usage.Completion, u.Usage.Total})
			require.Contains(t, got.Events[len(got.Events)-2].Data, `"usage"`, "the usage comes right before [DONE]")
		}
		e := st.requireRecord(got.ID(), "success", tried{"a", ""})
		require.NotNil(t, e.Usage)
		require.False(t, e.Usage.Estimated)
		require.EqualValues(t, 7, *e.Usage.Input)
		require.EqualValues(t, 2, *e.Usage.Output)
	}
	st.calls(map[string]int{"A": 2, "B": 0})
}
