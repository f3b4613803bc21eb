package openai

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func named(data string) string {
	var e struct{ Type string }
	_ = json.Unmarshal([]byte(data), &e)
	return "event: " + e.Type + "\n" + event(data)
}

// responseEvents are the events of a response in their order, by a name of their own.
var (
	created   = named(`{"type":"response.created","sequence_number":0,"response":{"id":"resp_1","object":"response","created_at":7,"status":"in_progress","error":null,"model":"m","output":[],"usage":null,"seed":9007199254740993}}`)
	progress  = named(`{"type":"response.in_progress","sequence_number":1,"response":{"id":"resp_1","object":"response","created_at":7,"status":"in_progress","error":null,"model":"m","output":[],"usage":null,"seed":9007199254740993}}`)
	itemAdded = named(`{"type":"response.output_item.added","sequence_number":2,"output_index":0,"item":{"id":"msg_1","type":"message","status":"in_progress","role":"assistant","content":[]}}`)
	partAdded = named(`{"type":"response.content_part.added","sequence_number":3,"output_index":0,"part":{"type":"output_text","text":""}}`)
	textOne   = named(`{"type":"response.output_text.delta","sequence_number":4,"output_index":0,"delta":"one \"x\" "}`)
	textTwo   = named(`{"type":"response.output_text.delta","sequence_number":5,"output_index":0,"delta":"two"}`)
	textDone  = named(`{"type":"response.output_text.done","sequence_number":6,"output_index":0,"text":"one \"x\" two"}`)
	itemDone  = named(`{"type":"response.output_item.done","sequence_number":7,"output_index":0,"item":{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"one \"x\" two","annotations":[]}]}}`)
	callAdded = named(`{"type":"response.output_item.added","sequence_number":8,"output_index":1,"item":{"id":"fc_1","type":"function_call","status":"in_progress","call_id":"call_1","name":"f","arguments":""}}`)
	callDelta = named(`{"type":"response.function_call_arguments.delta","sequence_number":9,"output_index":1,"delta":"{\"a\":"}`)
	callDone  = named(`{"type":"response.output_item.done","sequence_number":10,"output_index":1,"item":{"id":"fc_1","type":"function_call","status":"completed","call_id":"call_1","name":"f","arguments":"{\"a\":1}"}}`)
	completed = named(`{"type":"response.completed","sequence_number":11,"response":{"id":"resp_1","status":"completed","model":"m","service_tier":"default","output":[{"type":"message","content":[{"type":"output_text","text":"one \"x\" two"}]},{"type":"function_call","call_id":"call_1","name":"f","arguments":"{\"a\":1}"}],"usage":{"input_tokens":9,"output_tokens":4,"total_tokens":13,"input_tokens_details":{"cached_tokens":3},"output_tokens_details":{"reasoning_tokens":2}}}}`)
)

func playResponse(t require.TestingT, o StreamOptions, stream string) outcome {
	return replayCuts(t, new(Stream), Responses, o, []byte(stream), nil)
}

func TestResponsesPassThrough(t *testing.T) {
	stream := created + progress + itemAdded + partAdded + textOne + textTwo + textDone + itemDone + callAdded + callDelta + callDone + completed
	got := playResponse(t, StreamOptions{KeepText: true, IncludeUsage: false, Model: "other"}, stream+doneEvent)
	require.Equal(t, stream, got.down)
	require.Equal(t, Whole, got.ending)
	require.Equal(t, map[Step]int{Quiet: 4, Output: 7, Done: 1}, got.steps)
	require.Equal(t, `one "x" two`, got.text)
	require.Equal(t, finishToolCalls, got.finish)
	require.Equal(t, []ToolCall{{ID: "call_1", Name: "f", Arguments: []byte(`{"a":1}`)}}, got.calls)
	require.Equal(t, Usage{Input: 9, Output: 4, Cached: 3, Reasoning: 2}, got.usage)
	require.Equal(t, Content|ToolCalled, got.products)
	require.Equal(t, "m", got.model)

	// A last event without output says nothing against the events before it.
	bare := named(`{"type":"response.completed","sequence_number":11,"response":{"id":"resp_1","status":"completed","model":"m","output":[]}}`)
	got = playResponse(t, StreamOptions{KeepText: true}, strings.Replace(stream, completed, bare, 1))
	require.Equal(t, `one "x" two`, got.text)
	require.Len(t, got.calls, 1)
}

func TestResponsesSteps(t *testing.T) {
	for data, want := range map[string]Step{
		`{"type":"response.queued","response":{"id":"r"}}`:                                                                 Quiet,
		`{"type":"response.output_item.added","item":{"type":"reasoning","summary":[]}}`:                                   Quiet,
		`{"type":"response.output_item.done","item":{"type":"reasoning","summary":[]}}`:                                    Quiet,
		`{"type":"response.output_item.done","item":{"type":"reasoning","summary":[],"encrypted_content":"x"}}`:            Output,
		`{"type":"response.output_item.done","item":{"type":"reasoning","summary":[{"type":"summary_text","text":"hm"}]}}`: Output,
		`{"type":"response.output_item.added","item":{"type":"web_search_call","status":"in_progress"}}`:                   Output,
		`{"type":"response.output_item.added","item":{"type":"custom_tool_call","name":"f","input":""}}`:                   Output,
		`{"type":"response.output_text.delta","delta":""}`:                                                                 Quiet,
		`{"type":"response.output_text.annotation.added","annotation":{}}`:                                                 Quiet,
		`{"type":"response.refusal.delta","delta":"no"}`:                                                                   Output,
		`{"type":"response.refusal.done","refusal":"no"}`:                                                                  Output,
		`{"type":"response.reasoning_summary_text.delta","delta":"hm"}`:                                                    Output,
		`{"type":"response.reasoning_summary_part.added","part":{}}`:                                                       Quiet,
		`{"type":"response.audio.delta","delta":"AA"}`:                                                                     Output,
		`{"type":"response.web_search_call.searching","item_id":"w"}`:                                                      Output,
		`{"type":"response.image_generation_call.partial_image","partial_image_b64":"AA"}`:                                 Output,
		`{"type":"response.mcp_list_tools.in_progress"}`:                                                                   Output,
		`{"type":"keepalive","sequence_number":3}`:                                                                         Quiet,
		`{"type":"error","code":"server_error","message":"m","param":null,"sequence_number":2}`:                            Failed,
		`{"type":"error","error":{"type":"server_error","code":"x","message":"m"}}`:                                        Failed,
		`{"type":"response.failed","response":{"id":"r","status":"failed","error":{"code":"server_error","message":"m"}}}`: Failed,
		`{"type":"response.failed"}`:                                                                                       Failed,
		`{"type":"response.completed","response":{"status":"failed","error":{"message":"m"}}}`:                             Failed,
		`{"error":{"message":"m"}}`:                                                                                        Failed,
		`{"no":"type"}`:                                                                                                    Malformed,
	} {
		got := replayCuts(t, new(Stream), Responses, StreamOptions{}, []byte(event(data)), nil)
		require.Equal(t, map[Step]int{want: 1}, got.steps, data)
		if want == Failed {
			require.Equal(t, Errored, got.ending)
			require.Empty(t, got.down)
			require.NotEmpty(t, got.failure.Message)
		}
	}
}

func TestResponsesEndings(t *testing.T) {
	end := func(kind, members string) string {
		return named(`{"type":"response.` + kind + `","response":{"id":"r","status":"` + kind + `",` + members + `}}`)
	}
	for name, c := range map[string]struct {
		stream string
		want   Ending
		finish string
	}{
		"nothing":          {"", Cut, ""},
		"no last event":    {created + textOne + textTwo, Cut, ""},
		"a marker instead": {created + textOne + doneEvent, Cut, ""},
		"stop":             {created + textOne + end("completed", `"output":[]`), Whole, finishStop},
		"length":           {created + textOne + end("incomplete", `"incomplete_details":{"reason":"max_output_tokens"}`), Whole, finishLength},
		"length, nothing":  {created + end("incomplete", `"incomplete_details":{"reason":"max_output_tokens"}`), Whole, finishLength},
		"filtered":         {created + end("incomplete", `"incomplete_details":{"reason":"content_filter"}`), Whole, finishContentFilter},
		"empty":            {created + end("completed", `"output":[{"type":"reasoning","summary":[{"text":"hm"}]}]`), Empty, finishStop},
		"custom tools":     {created + end("completed", `"output":[{"type":"custom_tool_call","call_id":"c","name":"n","input":"i"}]`), Whole, finishStop},
		"hosted tools":     {created + end("completed", `"output":[{"type":"web_search_call"}]`), Whole, finishStop},
	} {
		t.Run(name, func(t *testing.T) {
			got := playResponse(t, StreamOptions{}, c.stream)
			require.Equal(t, c.want, got.ending)
			if c.finish != "" {
				require.Equal(t, c.finish, got.finish)
			}
			require.NotContains(t, got.down, "[DONE]")
		})
	}
}

func partial() *Error {
	e := NewError(PartialStream, "upstream connection lost before the response was complete")
	e.RequestID, e.Terminal, e.Attempts = "req_1", "partial", 2
	return e
}

const saying = `"message":"upstream connection lost before the response was complete (request req_1)"`

func TestPartialEndOfAChat(t *testing.T) {
	for _, e := range []Endpoint{ChatCompletions, Completions} {
		var s Stream
		s.Reset(e, StreamOptions{})
		require.Equal(t, `data: {"error":{`+saying+`,"type":"server_error","code":"partial_stream","param":null,`+
			`"interlock":{"request_id":"req_1","terminal":"partial","attempts":2}}}`+"\n\n", string(s.AppendPartialEnd(nil, partial())))
		after, _ := s.End(nil)
		require.Empty(t, after, "nothing follows")
	}
}

func TestPartialEndOfAResponse(t *testing.T) {
	got := func(stream string) string {
		var s Stream
		s.Reset(Responses, StreamOptions{Model: "asked"})
		feed(&s, stream)
		return string(s.AppendPartialEnd(nil, partial()))
	}
	errorEvent := func(n string) string {
		return `event: error` + "\n" + `data: {"type":"error","sequence_number":` + n + `,"code":"partial_stream",` + saying + `,"param":null,` +
			`"error":{"type":"server_error","code":"partial_stream",` + saying + `,"param":null,"interlock":{"request_id":"req_1","terminal":"partial","attempts":2}}}` + "\n\n"
	}
	require.Equal(t, errorEvent("0")+`event: response.failed`+"\n"+`data: {"type":"response.failed","sequence_number":1,"response":`+
		`{"id":"resp_req_1","object":"response","created_at":0,"status":"failed","error":{"code":"partial_stream",`+saying+`},"incomplete_details":null,"model":"asked","output":[],"usage":null}}`+"\n\n", got(""))
	require.Equal(t, errorEvent("10")+`event: response.failed`+"\n"+`data: {"type":"response.failed","sequence_number":11,"response":`+
		`{"id":"resp_1","object":"response","created_at":7,"status":"failed","error":{"code":"partial_stream",`+saying+`},"model":"m","output":[`+
		`{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"one \"x\" two","annotations":[]}]},`+
		`{"id":"fc_1","type":"function_call","status":"incomplete","call_id":"call_1","name":"f","arguments":"{\"a\":"}`+
		`],"usage":null,"seed":9007199254740993}}`+"\n\n", got(created+progress+itemAdded+partAdded+textOne+textTwo+itemDone+callAdded+callDelta))
	text := got(created + itemAdded + textOne)
	require.Contains(t, text, `"output":[{"id":"msg_1","type":"message","status":"incomplete","role":"assistant","content":[{"type":"output_text","annotations":[],"text":"one \"x\" "}]}]`)
	for _, d := range dataOf(t, text) {
		require.True(t, json.Valid([]byte(d)))
	}
}

func TestPartialEndKeepsLittle(t *testing.T) {
	var s Stream
	s.Reset(Responses, StreamOptions{})
	feed(&s, created+itemAdded)
	for range 50 {
		feed(&s, named(`{"type":"response.output_text.delta","sequence_number":4,"output_index":0,"delta":"`+strings.Repeat("x", 100_000)+`"}`))
	}
	got := s.AppendPartialEnd(nil, partial())
	require.Less(t, len(got), maxKept+10_000)
	require.Greater(t, len(got), maxKept/2)
}
