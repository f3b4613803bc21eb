package openai

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// delta renders a chunk of choice 0 of a chat.
func delta(members, finish string) string {
	return event(`{"id":"cA","object":"chat.completion.chunk","created":1,"model":"ma","choices":[{"index":0,"delta":{` + members + `},"finish_reason":` + finish + `}]}`)
}

func event(data string) string { return "data: " + data + "\n\n" }

const doneEvent = "data: [DONE]\n\n"

var (
	roleChunk  = delta(`"role":"assistant","content":""`, "null")
	oneChunk   = delta(`"content":"one "`, "null")
	twoChunk   = delta(`"content":"two"`, "null")
	stopChunk  = delta(``, `"stop"`)
	usageChunk = event(`{"id":"cA","object":"chat.completion.chunk","created":1,"model":"ma","choices":[],"usage":{"prompt_tokens":7,"completion_tokens":2,"total_tokens":9}}`)
)

func play(t require.TestingT, o StreamOptions, stream string) outcome {
	return replayCuts(t, new(Stream), ChatCompletions, o, []byte(stream), nil)
}

func TestStreamPassesWhatNeedsNoChange(t *testing.T) {
	for name, stream := range map[string]string{
		"text":           roleChunk + oneChunk + twoChunk + stopChunk,
		"multibyte":      roleChunk + delta(`"content":"안녕 渐🌍é"`, "null") + stopChunk,
		"unknown fields": delta(`"content":"x","seed":9007199254740993,"z":{"a":[1.50]}`, "null") + stopChunk,
		"comments":       ": hi\n" + oneChunk + stopChunk,
		"identifiers":    "id: 7\n" + oneChunk + stopChunk,
		"several choices": event(`{"model":"m","choices":[{"index":1,"delta":{"content":"b"},"finish_reason":null},{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}]}`) +
			event(`{"model":"m","choices":[{"index":1,"delta":{},"finish_reason":"length"}]}`),
		"filter results": event(`{"model":"m","choices":[],"prompt_filter_results":[]}`) + oneChunk + stopChunk,
		"vendor usage":   event(`{"model":"m","x_groq":{"usage":{"prompt_tokens":1}},"choices":[{"index":0,"delta":{"content":"x"},"finish_reason":"stop"}]}`),
	} {
		for _, end := range []string{"", doneEvent} {
			got := play(t, StreamOptions{Model: "other", KeepText: true}, stream+end)
			require.Equal(t, stream+doneEvent, got.down, name)
			require.Equal(t, Whole, got.ending, name)
			require.Equal(t, 1, strings.Count(got.down, "[DONE]"))
		}
	}
}

func TestStreamSteps(t *testing.T) {
	for name, c := range map[string]struct {
		event string
		want  Step
	}{
		"role":               {roleChunk, Quiet},
		"empty delta":        {delta(``, "null"), Quiet},
		"finish":             {stopChunk, Quiet},
		"usage":              {usageChunk, Quiet},
		"null content":       {delta(`"content":null,"tool_calls":null,"refusal":null`, "null"), Quiet},
		"filter annotations": {event(`{"choices":[{"index":0,"delta":{},"content_filter_results":{"hate":{}}}]}`), Quiet},
		"empty tool calls":   {delta(`"tool_calls":[]`, "null"), Quiet},
		"vendor's own":       {event(`{"type":"ping"}`), Quiet},
		"content":            {oneChunk, Output},
		"reasoning":          {delta(`"reasoning":"hm"`, "null"), Output},
		"reasoning content":  {delta(`"content":null,"reasoning_content":"hm"`, "null"), Output},
		"reasoning details":  {delta(`"reasoning_details":[{"type":"x"}]`, "null"), Output},
		"refusal":            {delta(`"refusal":"no"`, "null"), Output},
		"tool call":          {delta(`"tool_calls":[{"index":0,"id":"c","type":"function","function":{"name":"f","arguments":""}}]`, "null"), Output},
		"function call":      {delta(`"function_call":{"name":"f","arguments":""}`, "null"), Output},
		"audio":              {delta(`"audio":{"id":"a","data":"AA"}`, "null"), Output},
		"images":             {delta(`"images":[{"image_url":{}}]`, "null"), Output},
		"thinking in a list": {delta(`"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]}]`, "null"), Output},
		"empty list":         {delta(`"content":[{"type":"text","text":""}]`, "null"), Quiet},
		"legacy text":        {event(`{"choices":[{"index":0,"text":"x","finish_reason":null}]}`), Output},
		"comment":            {": ping\n\n", Ping},
		"no data":            {"event: ping\n\n", Ping},
		"empty data":         {"data:\n\n", Ping},
		"not JSON":           {event(`{"choices":[`), Malformed},
		"HTML":               {event(`<html>busy</html>`), Malformed},
		"a number":           {event(`7`), Malformed},
		"choices no list":    {event(`{"choices":{"index":0}}`), Malformed},
		"choice no object":   {event(`{"choices":[7]}`), Malformed},
		"index of a lie":     {event(`{"choices":[{"index":99999999,"delta":{"content":"x"}}]}`), Malformed},
		"negative index":     {event(`{"choices":[{"index":-1,"delta":{"content":"x"}}]}`), Malformed},
		"error":              {event(`{"error":{"message":"Overloaded","type":"overloaded_error","code":"overloaded"}}`), Failed},
		"error as text":      {event(`{"error":"Overloaded"}`), Failed},
		"error and choices":  {event(`{"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}],"error":{"code":502,"message":"Overloaded"}}`), Failed},
		"error in a choice":  {event(`{"choices":[{"index":0,"delta":{},"error":{"message":"Overloaded"}}]}`), Failed},
		"error by its name":  {"event: error\n" + event(`{"message":"Overloaded"}`), Failed},
		"error, no choices":  {event(`{"message":"Overloaded"}`), Failed},
		"error in a list":    {event(`[{"error":{"message":"Overloaded"}}]`), Failed},
		"finish that is not": {delta(``, `"error"`), Failed},
		"done":               {doneEvent, Done},
		"done with blanks":   {"data:  [DONE] \n\n", Done},
	} {
		t.Run(name, func(t *testing.T) {
			got := play(t, StreamOptions{}, c.event)
			require.Equal(t, map[Step]int{c.want: 1}, got.steps)
			if c.want == Ping || c.want == Malformed || c.want == Failed || c.want == Done {
				require.Empty(t, got.down)
			}
			if c.want == Failed {
				require.Equal(t, Errored, got.ending)
				if name != "finish that is not" {
					require.Equal(t, "Overloaded", got.failure.Message)
				} else {
					require.Equal(t, "error", got.failure.Code)
				}
			}
		})
	}
}

func TestStreamEndings(t *testing.T) {
	for name, c := range map[string]struct {
		stream string
		want   Ending
	}{
		"whole":                    {roleChunk + oneChunk + stopChunk + doneEvent, Whole},
		"no end marker":            {oneChunk + stopChunk, Whole},
		"last event cut short":     {oneChunk + strings.TrimSuffix(stopChunk, "\n\n"), Whole},
		"cut":                      {oneChunk, Cut},
		"end marker alone":         {doneEvent, Cut},
		"end marker, no finish":    {oneChunk + doneEvent, Cut},
		"nothing":                  {"", Cut},
		"one choice is open":       {oneChunk + event(`{"choices":[{"index":1,"delta":{}}]}`) + stopChunk + doneEvent, Cut},
		"empty":                    {roleChunk + stopChunk + usageChunk + doneEvent, Empty},
		"reasoning alone":          {delta(`"reasoning":"hm"`, "null") + stopChunk, Empty},
		"tool calls that are none": {roleChunk + delta(``, `"tool_calls"`), Empty},
		"stopped by its length":    {roleChunk + delta(``, `"length"`), Whole},
		"filtered":                 {roleChunk + delta(``, `"content_filter"`), Whole},
		"refused":                  {delta(`"refusal":"no"`, "null") + stopChunk, Whole},
		"another vocabulary":       {oneChunk + delta(``, `"eos"`), Whole},
		"empty finish reasons":     {delta(`"content":"x"`, `""`) + stopChunk, Whole},
		"error":                    {oneChunk + event(`{"error":{"message":"m"}}`), Errored},
		"nonsense":                 {oneChunk + event(`{"choices":7}`) + stopChunk, Broken},
	} {
		t.Run(name, func(t *testing.T) {
			got := play(t, StreamOptions{}, c.stream)
			require.Equal(t, c.want, got.ending)
			require.Equal(t, c.want == Whole || c.want == Empty, strings.HasSuffix(got.down, doneEvent))
			require.NotContains(t, got.down, `"eos"`)
		})
	}
}

func TestStreamOneUsageChunk(t *testing.T) {
	usage := `{"prompt_tokens":7,"completion_tokens":2,"total_tokens":9}`
	with := func(members, finish, usage string) string {
		return event(`{"id":"cA","created":1,"model":"ma","choices":[{"index":0,"delta":{` + members + `},"finish_reason":` + finish + `}],"usage":` + usage + `}`)
	}
	without := func(members, finish string) string {
		return event(`{"id":"cA","created":1,"model":"ma","choices":[{"index":0,"delta":{` + members + `},"finish_reason":` + finish + `}]}`)
	}
	plain := without(`"content":"one "`, "null") + without("", `"stop"`)
	own := event(`{"id":"cA","object":"chat.completion.chunk","created":1,"model":"ma","choices":[],"usage":` + usage + `}`)
	for name, c := range map[string]struct{ stream, want, usage string }{
		"its own chunk":            {plain + usageChunk, plain, usageChunk},
		"on the finish chunk":      {without(`"content":"one "`, "null") + with("", `"stop"`, usage), plain, own},
		"on both":                  {without(`"content":"one "`, "null") + with("", `"stop"`, usage) + usageChunk, plain, usageChunk},
		"on every chunk":           {with(`"content":"one "`, "null", `{"prompt_tokens":7,"completion_tokens":1,"total_tokens":8}`) + with("", `"stop"`, usage), plain, own},
		"null until the end":       {with(`"content":"one "`, "null", "null") + with("", `"stop"`, "null") + usageChunk, plain, usageChunk},
		"several of its own":       {plain + strings.Replace(usageChunk, ":2,", ":1,", 1) + usageChunk, plain, usageChunk},
		"no choices member at all": {plain + event(`{"id":"cA","object":"chat.completion.chunk","created":1,"model":"ma","usage":`+usage+`}`), plain, event(`{"choices":[],"id":"cA","object":"chat.completion.chunk","created":1,"model":"ma","usage":` + usage + `}`)},
		"first member":             {event(`{"usage":` + usage + ` , "model":"ma","id":"cA","created":1,"choices":[{"index":0,"delta":{"content":"x"},"finish_reason":"stop"}]}`), event(`{"model":"ma","id":"cA","created":1,"choices":[{"index":0,"delta":{"content":"x"},"finish_reason":"stop"}]}`), own},
	} {
		t.Run(name, func(t *testing.T) {
			for _, end := range []string{"", doneEvent} {
				got := play(t, StreamOptions{}, c.stream+end)
				require.Equal(t, c.want+doneEvent, got.down)
				require.Equal(t, Usage{Input: 7, Output: 2}, got.usage)
				require.True(t, got.hasUsage)
				got = play(t, StreamOptions{IncludeUsage: true}, c.stream+end)
				if name == "null until the end" { // what the caller asked for passes as it is
					require.Equal(t, c.stream+doneEvent, got.down)
					continue
				}
				require.Equal(t, c.want+c.usage+doneEvent, got.down)
			}
		})
	}
}

func TestStreamUsageArithmetic(t *testing.T) {
	for in, want := range map[string]Usage{
		`{"prompt_tokens":10,"completion_tokens":5,"total_tokens":15,"prompt_tokens_details":{"cached_tokens":4},"completion_tokens_details":{"reasoning_tokens":3}}`: {10, 5, 4, 3, 0},
		// Reasoning beside the completion: the total tells.
		`{"prompt_tokens":10,"completion_tokens":5,"total_tokens":18,"completion_tokens_details":{"reasoning_tokens":3}}`:   {10, 8, 0, 3, 0},
		`{"prompt_tokens":10,"prompt_cache_hit_tokens":6,"completion_tokens":5}`:                                            {10, 5, 6, 0, 0},
		`{"prompt_tokens":10,"num_cached_tokens":6,"completion_tokens":5,"prompt_tokens_details":{"cache_write_tokens":2}}`: {10, 5, 6, 0, 2},
		`{"prompt_tokens":-1,"completion_tokens":"x","total_tokens":3}`:                                                     {},
	} {
		got := play(t, StreamOptions{IncludeUsage: true}, oneChunk+stopChunk+event(`{"id":"cA","choices":[],"usage":`+in+`}`))
		require.Equal(t, want, got.usage, in)
		data := dataOf(t, got.down)
		var c chatChunk
		if want != (Usage{}) {
			require.NoError(t, json.Unmarshal([]byte(data[len(data)-2]), &c))
			require.Equal(t, want.Output, c.Usage.Completion)
		}
		// The same on the finish chunk, where the usage chunk is of our own making.
		got = play(t, StreamOptions{IncludeUsage: true}, oneChunk+event(`{"id":"cA","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":`+in+`}`))
		require.Equal(t, want, got.usage, in)
		data = dataOf(t, got.down)
		if want != (Usage{}) {
			require.NoError(t, json.Unmarshal([]byte(data[len(data)-2]), &c))
			require.Equal(t, want.Output, c.Usage.Completion)
		}
	}
}

func TestStreamModelAndDisclosure(t *testing.T) {
	o := StreamOptions{Model: "the/\"model\"", Disclosure: []byte(`{"cause":"model_substitution"}`)}
	got := play(t, o, event(`{"choices":[{"index":0,"delta":{"content":"x"}}]}`)+
		event(`{"model":"","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`))
	require.Equal(t, event(`{"model":"the/\"model\"","interlock":{"cause":"model_substitution"},"choices":[{"index":0,"delta":{"content":"x"}}]}`)+
		event(`{"model":"the/\"model\"","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`)+doneEvent, got.down)
	require.Empty(t, got.model)
	o.Disclosure = []byte("{\n\"cause\":\"model_substitution\"}") // on one line whatever it was
	dataOf(t, play(t, o, roleChunk+stopChunk).down)
	o.Disclosure = []byte(`{"cause":"model_substitution"}`)
	got = play(t, o, roleChunk+oneChunk+stopChunk)
	require.Equal(t, 1, strings.Count(got.down, `"interlock"`))
	require.True(t, strings.HasPrefix(got.down, `data: {"interlock":{"cause":"model_substitution"},"id":"cA"`))
	require.Equal(t, "ma", got.model)
	responses := replayCuts(t, new(Stream), Responses, o, []byte(event(`{"type":"response.created","sequence_number":0,"response":{"id":"r"}}`)), nil)
	require.Equal(t, event(`{"interlock":{"cause":"model_substitution"},"type":"response.created","sequence_number":0,"response":{"model":"the/\"model\"","id":"r"}}`), responses.down)
}

func TestStreamRendersOddFramingAnew(t *testing.T) {
	odd := strings.ReplaceAll(oneChunk, "\n\n", "\r\n\r\n") + "data: {\ndata: " + twoChunk[len("data: {"):] + strings.TrimSuffix(stopChunk, "\n\n")
	got := play(t, StreamOptions{}, odd)
	require.Equal(t, oneChunk+strings.Replace(twoChunk, "{", "{ ", 1)+stopChunk+doneEvent, got.down)
	dataOf(t, got.down)
}

func TestStreamToolCalls(t *testing.T) {
	type call struct {
		index          int
		id, name, args string
	}
	piece := func(pieces string) string { return delta(`"tool_calls":[`+pieces+`]`, "null") }
	for name, c := range map[string]struct {
		stream string
		want   []call
	}{
		"as OpenAI sends them": {
			piece(`{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":""}}`) + piece(`{"index":0,"function":{"arguments":"{\"x\":"}}`) +
				piece(`{"index":0,"function":{"arguments":"1}"}}`) + piece(`{"index":1,"id":"b","type":"function","function":{"name":"g","arguments":"{}"}}`),
			[]call{{0, "a", "f", `{"x":1}`}, {1, "b", "g", "{}"}},
		},
		"no index, no type": {
			piece(`{"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}},{"id":"b","function":{"name":"g","arguments":"{}"}}`),
			[]call{{0, "a", "f", `{"x":1}`}, {1, "b", "g", "{}"}},
		},
		"no index, in pieces": {
			piece(`{"id":"a","type":null,"function":{"name":"f","arguments":""}}`) + piece(`{"function":{"arguments":"{}"}}`) + piece(`{"id":"b","function":{"name":"g"}}`) + piece(`{"id":"b","function":{"arguments":"{}"}}`),
			[]call{{0, "a", "f", "{}"}, {1, "b", "g", "{}"}},
		},
		"several IDs under one index": {
			piece(`{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}`) + piece(`{"index":0,"id":"b","function":{"name":"g","arguments":"{"}}`) +
				piece(`{"index":0,"function":{"arguments":"}"}}`) + piece(`{"index":1,"id":"c","function":{"name":"h","arguments":"{}"}}`),
			[]call{{0, "a", "f", "{}"}, {1, "b", "g", "{}"}, {2, "c", "h", "{}"}},
		},
		"a new ID for every piece": {
			piece(`{"index":0,"id":"a1","type":"function","function":{"name":"f","arguments":"{"}}`) + piece(`{"index":0,"id":"a2","type":"function","function":{"arguments":"}"}}`),
			[]call{{0, "a1", "f", "{}"}},
		},
		"the ID in every piece": {
			piece(`{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":"{"}}`) + piece(`{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":"}"}}`),
			[]call{{0, "a", "f", "{}"}},
		},
		"no IDs, one index": {
			piece(`{"index":0,"type":"function","function":{"name":"f","arguments":"{}"}}`) + piece(`{"index":0,"type":"function","function":{"name":"g","arguments":"{}"}}`),
			[]call{{0, "", "f", "{}"}, {1, "", "g", "{}"}},
		},
		"an index that is no number": {
			piece(`{"index":null,"id":"a","type":"","function":{"name":"f","arguments":"{}"}},{"index":-5,"id":"b","function":{"name":"g","arguments":"{}"}}`),
			[]call{{0, "a", "f", "{}"}, {1, "b", "g", "{}"}},
		},
		"an empty element": {
			piece(`{}`) + piece(`{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}`),
			[]call{{0, "a", "f", "{}"}},
		},
		"the index stands behind": {
			piece(`{"function":{"arguments":"{}","name":"f"},"type":"function","id":"a","index":3}`),
			[]call{{3, "a", "f", "{}"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := play(t, StreamOptions{}, c.stream+delta("", `"tool_calls"`))
			require.Equal(t, Whole, got.ending)
			var seen []call
			for _, k := range got.calls {
				seen = append(seen, call{k.Index, k.ID, k.Name, string(k.Arguments)})
			}
			require.Equal(t, c.want, seen)
			// And a caller that joins by index reads the same.
			joined := map[int]*call{}
			for _, d := range dataOf(t, got.down) {
				var ch chatChunk
				if d == "[DONE]" {
					continue
				}
				require.NoError(t, json.Unmarshal([]byte(d), &ch))
				for _, p := range ch.Choices[0].Delta.ToolCalls {
					require.NotNil(t, p.Index, d)
					k := joined[*p.Index]
					if k == nil {
						k = &call{index: *p.Index, id: p.ID}
						joined[*p.Index] = k
						require.NotNil(t, p.Type, d)
						require.Equal(t, "function", *p.Type)
					}
					if k.name == "" {
						k.name = p.Function.Name
					}
					if k.id == "" {
						k.id = p.ID
					}
					k.args += p.Function.Arguments
				}
			}
			require.Len(t, joined, len(c.want))
			for _, k := range c.want {
				require.Equal(t, k, *joined[k.index])
			}
		})
	}
	same := delta(`"tool_calls":[{"index":0,"id":"a","type":"custom","custom":{"name":"c","input":"not {JSON"}}]`, "null")
	got := play(t, StreamOptions{}, same+delta("", `"tool_calls"`))
	require.True(t, strings.HasPrefix(got.down, same))
	require.Equal(t, []ToolCall{{ID: "a", Name: "c", Arguments: []byte("not {JSON"), Custom: true}}, got.calls)
	require.Contains(t, play(t, StreamOptions{}, strings.Replace(same, `"type":"custom",`, "", 1)).down, `"type":"custom"`)
	got = play(t, StreamOptions{}, delta(`"function_call":{"name":"f","arguments":"{"}`, "null")+delta(`"function_call":{"arguments":"}"}`, `"function_call"`))
	require.Equal(t, []ToolCall{{Name: "f", Arguments: []byte("{}")}}, got.calls)
	require.Equal(t, Whole, got.ending)
}

func TestStreamListContent(t *testing.T) {
	got := play(t, StreamOptions{KeepText: true}, delta(`"role":"assistant","content":[{"type":"thinking","thinking":[{"type":"text","text":"h\"m"},{"type":"text","text":"m"}]},{"type":"text","text":"one\n"},{"type":"reference","reference_ids":[1]},"two"]`, `"stop"`))
	require.Equal(t, delta(`"reasoning_content":"h\"mm","role":"assistant","content":"one\ntwo"`, `"stop"`)+doneEvent, got.down)
	require.Equal(t, "one\ntwo", got.text)
	require.Equal(t, Content|Reasoning, got.products)
}

func TestStreamReadsAnyOrderOfMembers(t *testing.T) {
	stream := event(`{"choices":[{"finish_reason":null,"delta":{"content":"b"},"index":1},{"finish_reason":"stop","delta":{"content":"a"},"index":0}],"model":"m"}`) +
		event(`{"choices":[{"finish_reason":"eos","delta":{},"index":1}],"model":"m"}`)
	got := play(t, StreamOptions{KeepText: true}, stream)
	require.Equal(t, "a", got.text)
	require.Equal(t, Whole, got.ending)
	require.Equal(t, strings.Replace(stream, `"eos"`, `"stop"`, 1)+doneEvent, got.down)
}

func TestStreamOpen(t *testing.T) {
	var s Stream
	s.Reset(ChatCompletions, StreamOptions{})
	feed(&s, roleChunk+oneChunk)
	require.False(t, s.Open())
	feed(&s, delta(`"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{}"}}]`, "null"))
	require.True(t, s.Open())
	feed(&s, delta("", `"tool_calls"`))
	require.False(t, s.Open())
	s.Reset(ChatCompletions, StreamOptions{Structured: true})
	feed(&s, roleChunk)
	require.False(t, s.Open())
	feed(&s, oneChunk)
	require.True(t, s.Open())
	feed(&s, stopChunk)
	require.False(t, s.Open())
	s.Reset(Responses, StreamOptions{})
	feed(&s, event(`{"type":"response.output_text.delta","output_index":0,"delta":"x"}`))
	require.False(t, s.Open())
	feed(&s, event(`{"type":"response.output_item.added","output_index":1,"item":{"type":"function_call","name":"f","call_id":"c"}}`))
	require.True(t, s.Open())
	feed(&s, event(`{"type":"response.output_item.done","output_index":1,"item":{"type":"function_call","name":"f","call_id":"c","arguments":"{}"}}`))
	require.False(t, s.Open())
}

func TestMalformedEventLeavesNoTrace(t *testing.T) {
	broken := event(`{"id":"x","model":"y","choices":[{"index":0,"delta":{"content":"lost","tool_calls":[{"id":"z"}]},"finish_reason":"stop"`)
	with := play(t, StreamOptions{KeepText: true}, oneChunk+broken+twoChunk+stopChunk)
	without := play(t, StreamOptions{KeepText: true}, oneChunk+twoChunk+stopChunk)
	require.Equal(t, 1, with.steps[Malformed])
	delete(with.steps, Malformed)
	require.Equal(t, without, with)
}
