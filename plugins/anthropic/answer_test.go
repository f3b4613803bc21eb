package anthropic_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/plugins/anthropic"
	"github.com/interlock-gateway/interlock/plugins/plugintest"
	interlock "github.com/interlock-gateway/interlock/sdk/go"
)

func events(list ...string) (all []interlock.Frame) {
	for _, data := range list {
		all = append(all, interlock.Frame{Data: []byte(data)})
	}
	return all
}

const (
	started  = `{"type":"message_start","message":{"id":"m","usage":{"input_tokens":1,"output_tokens":1}}}`
	textual  = `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`
	thinks   = `{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":""}}`
	closed0  = `{"type":"content_block_stop","index":0}`
	ended    = `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":5}}`
	finished = `{"type":"message_stop"}`
)

func says(text string) string {
	return `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"` + text + `"}}`
}

func signs(text string) string {
	return `{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"` + text + `"}}`
}

func TestFinishReasons(t *testing.T) {
	for reason, want := range map[string]string{
		"end_turn": "stop", "stop_sequence": "stop", "pause_turn": "stop", "tool_use": "stop", "never_heard_of": "stop",
		"max_tokens": "length", "model_context_window_exceeded": "length", "refusal": "content_filter",
	} {
		text, f, e := newGuest(t, "{}").Whole("", []byte(`{"content":[{"type":"text","text":"a"}],"stop_reason":"`+reason+`"}`))
		require.Nil(t, f)
		require.Nil(t, e)
		m := plugintest.ReadWhole(t, text)
		require.Equal(t, want, m.Finish, reason)
		require.Nil(t, m.Usage, "there was none")
	}
}

func TestBrokenAnswers(t *testing.T) {
	for _, body := range []string{
		``, `[]`, `{}`, `{"content":"a","stop_reason":"end_turn"}`, `{"content":[]}`, `{"content":[],"stop_reason":null}`, `{"content":[}`,
	} {
		_, f, e := newGuest(t, "{}").Whole("", []byte(body))
		require.Nil(t, f)
		require.NotNil(t, e, body)
		require.Equal(t, interlock.CodeUpstreamMalformed, e.Code, body)
	}
}

func TestBrokenStreams(t *testing.T) {
	for _, list := range [][]string{
		{`nothing`},
		{`[]`},
		{started, textual, says("a"), finished},
		{started, says("a")},
		{started, textual, closed0, says("a")},
		{started, textual, `{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"a"}}`},
		{started, textual, says("a"), closed0, started},
	} {
		p := newGuest(t, "{}").Play("", events(list...), plugintest.Apart)
		require.NotNil(t, p.Failure, "%q", list)
		require.Equal(t, interlock.MalformedAnswer, p.Failure.Class, "%q", list)
	}
}

func TestAStreamThatIsCutIsNotWhole(t *testing.T) {
	p := newGuest(t, "{}").Play("", events(started, textual, says("a"), closed0), plugintest.Apart)
	require.Nil(t, p.Failure)
	require.False(t, p.Done)
	require.Equal(t, plugintest.Message{Text: "a"}, plugintest.Assemble(t, p.Chunks))
}

func TestAStreamWithoutItsLastEventIsWhole(t *testing.T) {
	p := newGuest(t, "{}").Play("", events(started, textual, says("a"), closed0, ended, "[DONE]", ""), plugintest.Apart)
	require.Nil(t, p.Failure)
	require.True(t, p.Done)
	m := plugintest.Assemble(t, p.Chunks)
	require.Equal(t, []any{"a", "stop", int64(6)}, []any{m.Text, m.Finish, m.Usage.Total})
}

// TestALargeSignature: what no state could hold leaves at once, and the rest goes on.
func TestALargeSignature(t *testing.T) {
	large := strings.Repeat("s", 60<<10)
	p := newGuest(t, "{}").Play("", events(started, thinks, signs("a"), signs(large), closed0,
		strings.ReplaceAll(textual, `"index":0`, `"index":1`), ended, finished), plugintest.Apart)
	require.Nil(t, p.Failure)
	require.True(t, p.Done)
	m := plugintest.Assemble(t, p.Chunks)
	require.Len(t, m.ProviderData, 1)
	var item struct{ Signature string }
	require.NoError(t, json.Unmarshal(m.ProviderData[0], &item))
	require.Equal(t, "a"+large, item.Signature)
}

// TestTextBeforeAReply: where the answer is to come by a tool and does not, the text is the
// answer; where it is too long to wait, the answer fails rather than be wrong.
func TestTextBeforeAReply(t *testing.T) {
	g := newGuest(t, `{"structured_output":"tool"}`)
	s, e := g.Request(hi + `,"response_format":{"type":"json_object"}}`)
	require.Nil(t, e)
	require.NotEmpty(t, s.State)
	p := g.Play(s.State, events(started, textual, says("a"), says("\\n"), closed0, ended, finished), plugintest.Apart)
	require.True(t, p.Done)
	require.Equal(t, "a\n", plugintest.Assemble(t, p.Chunks).Text)
	p = g.Play(s.State, events(started, textual, says(strings.Repeat("a", 9000))), plugintest.Apart)
	require.NotNil(t, p.Failure)
	require.Empty(t, p.Chunks)
}

func TestErrors(t *testing.T) {
	for _, c := range []struct {
		status               int
		kind, message, class string
	}{
		{400, "invalid_request_error", "messages: roles must alternate", interlock.ClientInvalid},
		{400, "invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum", interlock.ContextOverflow},
		{400, "invalid_request_error", "input length and `max_tokens` exceed context limit: 178959 + 64000 > 200000, decrease input length", interlock.ContextOverflow},
		{400, "invalid_request_error", "Your credit balance is too low to access the Anthropic API.", interlock.UpstreamAuth},
		{400, "invalid_request_error", "You have reached your specified API usage limits.", interlock.UpstreamAuth},
		{400, "invalid_request_error", "Output blocked by content filtering policy", interlock.ContentFiltered},
		{401, "authentication_error", "invalid x-api-key", interlock.UpstreamAuth},
		{402, "billing_error", "Payment required", interlock.UpstreamAuth},
		{403, "permission_error", "Your API key does not have permission to use the specified resource", interlock.UpstreamAuth},
		{403, "permission_error", "Your organization may not use this model", interlock.ModelUnavailable},
		{404, "not_found_error", "model: claude-none", interlock.ModelUnavailable},
		{404, "not_found_error", "File not found: file_1", interlock.ClientInvalid},
		{413, "request_too_large", "Request exceeds the maximum size", interlock.ContextOverflow},
		{429, "rate_limit_error", "slow down", interlock.RateLimited},
		{500, "api_error", "Internal server error", interlock.ServerError},
		{504, "timeout_error", "Request timed out", interlock.Timeout},
		{529, "overloaded_error", "Overloaded", interlock.Overloaded},
		{409, "conflict_error", "conflict", ""},
	} {
		text, err := json.Marshal(object{"type": "error", "error": object{"type": c.kind, "message": c.message}, "request_id": "r"})
		require.NoError(t, err)
		want := &interlock.Failure{Class: c.class, Type: c.kind, Message: c.message}
		require.Equal(t, want, newGuest(t, "{}").Classify(c.status, nil, text))
		_, f, e := newGuest(t, "{}").Whole("", text)
		require.Nil(t, e)
		require.Equal(t, want, f)
		require.Equal(t, want, newGuest(t, "{}").Play("", events(started, string(text)), plugintest.Apart).Failure)
	}
	g := newGuest(t, "{}")
	require.Equal(t, &interlock.Failure{}, g.Classify(502, nil, []byte(`<html>`)))
	require.Equal(t, &interlock.Failure{}, g.Classify(400, nil, []byte(`{"error":{"type":"invalid_requ`)), "cut short")
	require.Equal(t, &interlock.Failure{Class: interlock.Overloaded, HasRetryAfter: true, RetryAfter: 2000},
		g.Classify(529, map[string]string{"retry-after": "2"}, nil))
	require.Equal(t, &interlock.Failure{Type: "RESOURCE_EXHAUSTED", Message: "Quota exceeded"},
		g.Classify(429, nil, []byte(`[{"error":{"code":429,"message":"Quota exceeded","status":"RESOURCE_EXHAUSTED"}}]`)), "Vertex AI's own")
}

// TestASteadyStreamAllocatesNothing keeps the path of every token free of garbage.
func TestASteadyStreamAllocatesNothing(t *testing.T) {
	g := newGuest(t, "{}")
	state := ""
	input := func(list ...string) []byte {
		w := interlock.Writer(g.Context())
		w.Str(state)
		w.Bool(false)
		w.U32(uint32(len(list)))
		for _, data := range list {
			w.Str("")
			w.Str(data)
		}
		return w
	}
	out, failed := g.G.Call(interlock.OpEvents, input(started, textual, says("a")), nil)
	require.False(t, failed)
	r := interlock.NewReader(out)
	r.U32()
	state = strings.Clone(r.Str())
	in := input(says("b"), says("c"))
	dst := make([]byte, 0, 4096)
	require.Zero(t, testing.AllocsPerRun(100, func() { g.G.Call(interlock.OpEvents, in, dst) }))
}

func FuzzAnswers(f *testing.F) {
	for _, data := range []string{started, textual, thinks, says("a"), signs("a"), closed0, ended, finished} {
		f.Add([]byte(data), []byte(says("b")), []byte(``))
	}
	f.Add([]byte(`{"content":[{"type":"tool_use","id":"a","name":"structured_answer","input":{}}],"stop_reason":"tool_use"}`), []byte(finished), []byte(`{}`))
	f.Fuzz(func(t *testing.T, first, second, state []byte) {
		p, err := anthropic.New([]byte(`{}`))
		require.NoError(t, err)
		c := &interlock.Call{Model: "m", RequestID: "r", State: state}
		if body, err := p.Response(c, &interlock.Answer{Status: 200, Body: first}, nil); err == nil {
			require.True(t, json.Valid(body), "%s", body)
		}
		p.Classify(c, &interlock.Answer{Status: 500, Body: first})
		g := newGuest(t, "{}")
		w := interlock.Writer(g.Context())
		w.Bytes(state)
		w.Bool(true)
		w.U32(2)
		for _, data := range [][]byte{first, second} {
			w.Str("")
			w.Bytes(data)
		}
		out, failed := g.G.Call(interlock.OpEvents, w, nil)
		if failed {
			return
		}
		r := interlock.NewReader(out)
		r.U32()
		r.Bytes()
		for n := r.U32(); n > 0; n-- {
			r.Str()
			require.True(t, json.Valid(r.Bytes()))
		}
	})
}
