package openai

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/interlock-gateway/interlock/gateway/openai/jsonx"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestEndpoints(t *testing.T) {
	for _, e := range Endpoints() {
		got, ok := ParseEndpoint(e.String())
		require.True(t, ok)
		require.Equal(t, e, got)
		got, ok = EndpointOf([]byte(e.Path()))
		require.True(t, ok)
		require.Equal(t, e, got)
	}
	_, ok := EndpointOf([]byte("/v1/images"))
	require.False(t, ok)
	_, ok = ParseEndpoint("")
	require.False(t, ok)
	require.Empty(t, NoEndpoint.String()+Endpoint(99).String()+Endpoint(99).Path())
}

const hello = `"messages":[{"role":"user","content":"hi"}]`

func mustScan(t require.TestingT, e Endpoint, body string) *Request {
	r := new(Request)
	require.Nil(t, ScanRequest(e, []byte(body), r), body)
	return r
}

func TestScanFindsTheFacts(t *testing.T) {
	body := `{"model":"gpt\u002d4o", "stream":true,"stream_options":{"include_usage":true},
		"messages":[{"role":"user","content":[{"type":"text","text":"look at this: 40 bytes of text, no more!!"},
			{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}},{"type":"input_audio","input_audio":{}},{"type":"file"}]}],
		"tools":[{"type":"function","function":{"name":"f","strict":true,"parameters":{"type":"object"}}},{"type":"web_search"}],
		"parallel_tool_calls":true,"n":3,"max_tokens":10,"max_completion_tokens":20,"user":"u\"1","prompt_cache_key":"k",
		"response_format":{"type":"json_schema","json_schema":{"name":"x","schema":{"type":"object","n":9007199254740993},"strict":true}},"store":true}`
	r := mustScan(t, ChatCompletions, body)
	require.Equal(t, "gpt-4o", string(r.Model))
	require.True(t, r.Stream && r.IncludeUsage && r.Tools && r.HostedTools && r.ParallelToolCalls && r.StrictTools && r.StrictSchema && r.Store)
	require.False(t, r.Background || r.Conversation || r.PreviousResponse || r.Base64)
	require.Equal(t, Text|Image|Audio|File, r.Modalities)
	require.Equal(t, "text,image,audio,file", r.Modalities.String())
	require.Equal(t, JSONSchema, r.Structure)
	require.Equal(t, `{"type":"object","n":9007199254740993}`, string(r.Schema.Of([]byte(body))))
	require.Equal(t, 3, r.Choices)
	require.EqualValues(t, 20, r.MaxOutputTokens)
	require.Equal(t, `"u\"1"`, string(r.User.Of([]byte(body))))
	require.Equal(t, `"k"`, string(r.PromptCacheKey.Of([]byte(body))))
	require.Greater(t, r.InputTokens, int64(10))
	require.Less(t, r.InputTokens, int64(60))
}

func TestScanResponses(t *testing.T) {
	body := `{"model":"m","input":[{"role":"user","content":[{"type":"input_text","text":"hi"},{"type":"input_image","image_url":"x"}]},
		{"type":"function_call_output","call_id":"c","output":"done"}],"text":{"format":{"type":"json_schema","name":"n","schema":{"a":1}}},
		"tools":[{"type":"function","name":"f","parameters":{"b":2}}],"background":true,"conversation":{"id":"c"},"previous_response_id":"r","max_output_tokens":7,"store":false}`
	r := mustScan(t, Responses, body)
	require.True(t, r.Background && r.Conversation && r.PreviousResponse && r.Tools)
	require.False(t, r.Store || r.HostedTools || r.StrictTools || r.StrictSchema || r.Stream)
	require.Equal(t, JSONSchema, r.Structure)
	require.Equal(t, `{"a":1}`, string(r.Schema.Of([]byte(body))))
	require.Equal(t, Text|Image, r.Modalities)
	require.EqualValues(t, 7, r.MaxOutputTokens)
	for _, without := range []string{`"prompt":{"id":"p"}`, `"conversation":"c"`, `"previous_response_id":"r"`} {
		mustScan(t, Responses, `{"model":"m",`+without+`}`)
	}
	r = mustScan(t, Responses, `{"model":"m","input":"x","conversation":null,"previous_response_id":null,"background":null,"tools":[{"type":"mcp"}]}`)
	require.False(t, r.Conversation || r.PreviousResponse || r.Background || r.Tools)
	require.True(t, r.HostedTools)
}

func TestScanOtherEndpoints(t *testing.T) {
	r := mustScan(t, Embeddings, `{"model":"m","input":["abcd","efgh"],"encoding_format":"base64","stream":true}`)
	require.True(t, r.Base64)
	require.False(t, r.Stream)
	require.EqualValues(t, 2, r.InputTokens)
	r = mustScan(t, Embeddings, `{"model":"m","input":[[1,2,3],[4]]}`)
	require.EqualValues(t, 4, r.InputTokens)
	mustScan(t, Moderations, `{"model":"m","input":[{"type":"text","text":"x"}]}`)
	r = mustScan(t, Completions, `{"model":"m","prompt":"once upon","n":2,"stream":true}`)
	require.True(t, r.Stream)
	require.Equal(t, 2, r.Choices)
	r = mustScan(t, ChatCompletions, `{"model":"m",`+hello+`,"web_search_options":{},"functions":[{"name":"f"}],"stream":null,"modalities":["text","audio"],"response_format":{"type":"json_object"}}`)
	require.True(t, r.HostedTools && r.Tools)
	require.False(t, r.Stream)
	require.Equal(t, Text|Audio, r.Modalities)
	require.Equal(t, JSONObject, r.Structure)
	require.Equal(t, "json_object", r.Structure.String())
}

func TestScanRefuses(t *testing.T) {
	for _, c := range []struct {
		e           Endpoint
		body, param string
		message     string
	}{
		{ChatCompletions, ``, "", "an unexpected end at byte 0"},
		{ChatCompletions, `[]`, "", "must be a JSON object"},
		{ChatCompletions, `"x"`, "", "must be a JSON object"},
		{ChatCompletions, `{"model":"m",` + hello + `} x`, "", "something after the end at byte"},
		{ChatCompletions, `{"model":"m",` + hello, "", "an unexpected end"},
		{ChatCompletions, `{"model":"m","messages":[{"content":"` + "\n" + `"}]}`, "", "a control character in a string at byte 37"},
		{ChatCompletions, `{"model":"m","messages":` + strings.Repeat("[", 600) + strings.Repeat("]", 600) + `}`, "", "too deep"},
		{ChatCompletions, `{"model":"m","x":01,` + hello + `}`, "", "not valid JSON"},
		{ChatCompletions, `{` + hello + `}`, "model", "missing"},
		{ChatCompletions, `{"model":null,` + hello + `}`, "model", "must be a string"},
		{ChatCompletions, `{"model":7,` + hello + `}`, "model", "must be a string"},
		{ChatCompletions, `{"model":"",` + hello + `}`, "model", "empty"},
		{ChatCompletions, `{"model":"` + strings.Repeat("m", 513) + `",` + hello + `}`, "model", "longer than"},
		{ChatCompletions, `{"model":"` + strings.Repeat(`\u006d`, 513) + `",` + hello + `}`, "model", "longer than"},
		{ChatCompletions, `{"model":"a","model":"b",` + hello + `}`, "model", "twice"},
		{ChatCompletions, `{"model":"a",` + hello + `,"\u006dodel":"b"}`, "model", "twice"},
		{ChatCompletions, `{"model":"a",` + hello + `,"stream":true,"str\u0065am":false}`, "stream", "twice"},
		{ChatCompletions, `{"model":"a",` + hello + `,` + hello + `}`, "messages", "twice"},
		{ChatCompletions, `{"model":"a"}`, "messages", "missing"},
		{ChatCompletions, `{"model":"a","messages":[]}`, "messages", "empty"},
		{ChatCompletions, `{"model":"a","messages":null}`, "messages", "must be an array"},
		{ChatCompletions, `{"model":"a","messages":{"role":"user"}}`, "messages", "must be an array"},
		{ChatCompletions, `{"model":"a","messages":"hi"}`, "messages", "must be an array"},
		{ChatCompletions, `{"model":"a",` + hello + `,"stream":"true"}`, "stream", "true or false"},
		{ChatCompletions, `{"model":"a",` + hello + `,"stream":1}`, "stream", "true or false"},
		{ChatCompletions, `{"model":"a",` + hello + `,"stream_options":[]}`, "stream_options", "must be an object"},
		{ChatCompletions, `{"model":"a",` + hello + `,"stream_options":{"include_usage":1}}`, "stream_options.include_usage", "true or false"},
		{ChatCompletions, `{"model":"a",` + hello + `,"stream_options":{"include_usage":true,"include_usage":false}}`, "stream_options.include_usage", "twice"},
		{Responses, `{"model":"a"}`, "input", "missing"},
		{Responses, `{"model":"a","input":null}`, "input", "missing"},
		{Responses, `{"model":"a","input":7}`, "input", "text or an array"},
		{Embeddings, `{"model":"a"}`, "input", "missing"},
		{Moderations, `{"model":"a","input":{}}`, "input", "text or an array"},
		{Completions, `{"model":"a"}`, "prompt", "missing"},
		{Completions, `{"model":"a","prompt":{}}`, "prompt", "text or an array"},
	} {
		var r Request
		err := ScanRequest(c.e, []byte(c.body), &r)
		require.NotNil(t, err, c.body)
		require.Equal(t, InvalidRequest, err.Code, c.body)
		require.Equal(t, 400, err.Status)
		require.Equal(t, c.param, err.Param, c.body)
		require.Contains(t, err.Message, c.message, c.body)
	}
}

// What the gateway reads for itself has the type that it must have, or the body is refused: what
// it made of anything else would not be what the provider makes of it.
func TestScanRefusesWrongTypes(t *testing.T) {
	values := map[string]string{
		"boolean": `true`, "number": `7`, "fraction": `1.0`, "text": `"x"`, "array": `[]`, "object": `{}`,
	}
	bodies := map[Endpoint]string{
		ChatCompletions: hello, Responses: `"input":"x"`, Completions: `"prompt":"x"`, Embeddings: `"input":"x"`, Moderations: `"input":"x"`,
	}
	only := func(e ...Endpoint) []Endpoint { return e }
	everywhere := Endpoints()
	for name, c := range map[string]struct {
		allowed string
		on      []Endpoint
	}{
		"stream":                {"boolean", everywhere},
		"stream_options":        {"object", everywhere},
		"tools":                 {"array", everywhere},
		"functions":             {"array", everywhere},
		"web_search_options":    {"object", everywhere},
		"parallel_tool_calls":   {"boolean", everywhere},
		"response_format":       {"object", everywhere},
		"background":            {"boolean", everywhere},
		"conversation":          {"text object", everywhere},
		"store":                 {"boolean", everywhere},
		"previous_response_id":  {"text", everywhere},
		"encoding_format":       {"text", everywhere},
		"n":                     {"number fraction", everywhere},
		"max_tokens":            {"number fraction", everywhere},
		"max_completion_tokens": {"number fraction", everywhere},
		"max_output_tokens":     {"number fraction", everywhere},
		"user":                  {"text", everywhere},
		"prompt_cache_key":      {"text", everywhere},
		"modalities":            {"array", everywhere},
		"instructions":          {"text array", only(Responses)},
		"text":                  {"object", only(Responses)},
		"prompt":                {"object", only(Responses)},
	} {
		for _, e := range everywhere {
			for kind, value := range values {
				if _, own := bodies[e]; !own || e == Completions && name == "prompt" {
					continue
				}
				body := `{"model":"m",` + bodies[e] + `,"` + name + `":` + value + `}`
				var r Request
				err := ScanRequest(e, []byte(body), &r)
				if slices.Contains(strings.Fields(c.allowed), kind) || !slices.Contains(c.on, e) {
					require.Nil(t, err, "%s %s", e, body)
					continue
				}
				require.NotNil(t, err, "%s %s", e, body)
				require.Equal(t, InvalidRequest, err.Code)
				require.Equal(t, 400, err.Status)
				require.Equal(t, name, err.Param)
				require.Contains(t, err.Message, name+" must be ")
			}
			var r Request
			body := `{"model":"m",` + bodies[e] + `,"` + name + `":null}`
			if e != Completions || name != "prompt" {
				require.Nil(t, ScanRequest(e, []byte(body), &r), body)
			}
		}
	}
	// A value that is no JSON at all is said to be that.
	var r Request
	err := ScanRequest(Responses, []byte(`{"model":"m","input":"x","previous_response_id":[}`), &r)
	require.NotNil(t, err)
	require.Contains(t, err.Message, "not valid JSON")
}

func TestOfferedTools(t *testing.T) {
	body := []byte(`{"model":"m",` + hello + `,"tools":[{"type":"function","function":{"name":"a","strict":true,"parameters":{"x":1}}},{"type":"web_search"},
		{"type":"function","name":"b","parameters":null},{"type":"custom","custom":{"name":"c"}},7,{"function":{"name":"d","parameters":{"y":2}}}],"functions":[{"name":"e"}]}`)
	r := mustScan(t, ChatCompletions, string(body))
	got := slices.Collect(r.OfferedTools(body))
	require.Equal(t, []Tool{
		{"a", true, []byte(`{"x":1}`)}, {"b", false, nil}, {"d", false, []byte(`{"y":2}`)}, {"e", false, nil},
	}, got)
	require.Empty(t, slices.Collect(new(Request).OfferedTools(nil)))
}

func TestAppendUpstream(t *testing.T) {
	edit := Edit{Model: "up/\"m\"", AskUsage: true}
	for _, c := range []struct{ body, want string }{
		{`{"model":"m",` + hello + `}`, `{"model":"up/\"m\"",` + hello + `}`},
		{`{"model":"m",` + hello + `,"stream":true }`, `{"model":"up/\"m\"",` + hello + `,"stream":true,"stream_options":{"include_usage":true} }`},
		{`{"stream":true,"stream_options":null,"model":"m",` + hello + `}`, `{"stream":true,"stream_options":{"include_usage":true},"model":"up/\"m\"",` + hello + `}`},
		{`{"stream":true,"stream_options":{},"model":"m",` + hello + `}`, `{"stream":true,"stream_options":{"include_usage":true},"model":"up/\"m\"",` + hello + `}`},
		{`{"stream":true,"model":"m","stream_options":{ "x":1},` + hello + `}`, `{"stream":true,"model":"up/\"m\"","stream_options":{"include_usage":true, "x":1},` + hello + `}`},
		{`{"stream":true,"model":"m","stream_options":{"include_usage": false},` + hello + `}`, `{"stream":true,"model":"up/\"m\"","stream_options":{"include_usage": true},` + hello + `}`},
		{`{"stream":true,"model":"m","stream_options":{"include_usage":true},` + hello + `}`, `{"stream":true,"model":"up/\"m\"","stream_options":{"include_usage":true},` + hello + `}`},
		{`{"seed":9007199254740993,"enable_thinking":false,"model" : "m" ,` + hello + `}`, `{"seed":9007199254740993,"enable_thinking":false,"model" : "up/\"m\"" ,` + hello + `}`},
	} {
		r := mustScan(t, ChatCompletions, c.body)
		require.Equal(t, c.want, string(r.AppendUpstream(nil, []byte(c.body), edit)))
		require.Equal(t, c.body, string(r.AppendUpstream(nil, []byte(c.body), Edit{})))
	}
	body := `{"model":"m","input":"x","stream":true}`
	r := mustScan(t, Responses, body)
	require.Equal(t, "x"+body, string(r.AppendUpstream([]byte("x"), []byte(body), Edit{Model: "m", AskUsage: true})))
	body = `{"model":"m","prompt":"x","stream":true}`
	r = mustScan(t, Completions, body)
	require.Equal(t, `{"model":"m","prompt":"x","stream":true,"stream_options":{"include_usage":true}}`, string(r.AppendUpstream(nil, []byte(body), Edit{AskUsage: true})))
}

// drawBody makes a chat body with its members in any order, blanks, and what the gateway does not know.
func drawBody(t *rapid.T) (body string, stream bool) {
	blank := rapid.SampledFrom([]string{"", " ", "\n", "\t "})
	value := rapid.SampledFrom([]string{`9007199254740993`, `1.50`, `"a\u0062\"c"`, `[1,{"model":"x"}]`, `{"stream":true}`, `null`, `"모델🙂"`})
	members := []string{`"model":` + rapid.SampledFrom([]string{`"m"`, `"a\/b"`, `"\ud83d\ude00"`}).Draw(t, "model"), hello}
	stream = rapid.Bool().Draw(t, "stream")
	if stream {
		members = append(members, `"stream":true`)
	}
	if o := rapid.SampledFrom([]string{"", `null`, `{}`, `{"a":1}`, `{"include_usage":false}`, `{"b":[],"include_usage":true}`}).Draw(t, "options"); o != "" {
		members = append(members, `"stream_options":`+o)
	}
	for i := range rapid.IntRange(0, 4).Draw(t, "more") {
		members = append(members, fmt.Sprintf(`"extra_%d":%s`, i, value.Draw(t, "value")))
	}
	members = rapid.Permutation(members).Draw(t, "order")
	for i, m := range members {
		members[i] = blank.Draw(t, "blank") + m + blank.Draw(t, "blank")
	}
	return blank.Draw(t, "blank") + "{" + strings.Join(members, ",") + "}" + blank.Draw(t, "blank"), stream
}

func decodeJSON(t require.TestingT, b []byte) map[string]any {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v map[string]any
	require.NoError(t, d.Decode(&v), "%s", b)
	return v
}

func TestEditsChangeNothingElse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		body, stream := drawBody(t)
		edit := Edit{Model: rapid.SampledFrom([]string{"", "up", "ü/\"\\"}).Draw(t, "to"), AskUsage: rapid.Bool().Draw(t, "ask")}
		r := mustScan(t, ChatCompletions, body)
		got := r.AppendUpstream(nil, []byte(body), edit)
		want := decodeJSON(t, []byte(body))
		require.Equal(t, want["model"], string(r.Model))
		require.Equal(t, stream, r.Stream)
		if edit.Model != "" {
			want["model"] = edit.Model
		}
		if edit.AskUsage && stream {
			o, _ := want["stream_options"].(map[string]any)
			if o == nil {
				o = map[string]any{}
			}
			o["include_usage"] = true
			want["stream_options"] = o
		}
		require.Equal(t, want, decodeJSON(t, got))
		// Scanning again finds what was asked for, and nothing more to do.
		again := mustScan(t, ChatCompletions, string(got))
		require.Equal(t, want["model"], string(again.Model))
		require.Equal(t, string(got), string(again.AppendUpstream(nil, got, edit)))
	})
}

func FuzzScanRequest(f *testing.F) {
	f.Add(uint8(ChatCompletions), []byte(`{"model":"m",`+hello+`,"stream":true,"stream_options":{"include_usage":null}}`))
	f.Add(uint8(Responses), []byte(`{"model":"m","input":[{"content":[{"type":"input_text","text":"x"}]}],"text":{"format":{"type":"json_schema","schema":{}}}}`))
	f.Add(uint8(Embeddings), []byte(`{"\u006dodel":"m","input":[[1,2],[3]],"tools":[{"function":{"name":"f"}}]}`))
	f.Fuzz(func(t *testing.T, e uint8, body []byte) {
		endpoint := Endpoint(e % uint8(endpoints))
		var r Request
		if err := ScanRequest(endpoint, body, &r); err != nil {
			if !json.Valid(err.AppendJSON(nil)) {
				t.Fatal("the error is not JSON")
			}
			return
		}
		if !json.Valid(body) {
			t.Fatalf("accepted what is not JSON: %q", body)
		}
		var top struct {
			Model *string `json:"model"`
		}
		if json.Unmarshal(body, &top) == nil && top.Model != nil && *top.Model != strings.ToValidUTF8(string([]rune(string(r.Model))), "\ufffd") {
			t.Fatalf("model %q, not %q", r.Model, *top.Model)
		}
		for tool := range r.OfferedTools(body) {
			if tool.Parameters != nil && !jsonx.Valid(tool.Parameters) {
				t.Fatal("parameters are not JSON")
			}
		}
		out := r.AppendUpstream(nil, body, Edit{Model: "other", AskUsage: true})
		var again Request
		if err := ScanRequest(endpoint, out, &again); err != nil || string(again.Model) != "other" {
			t.Fatalf("%v after the edit: %q", err, out)
		}
		if r.Stream && endpoint != Responses && !again.IncludeUsage {
			t.Fatalf("usage was not asked for: %q", out)
		}
	})
}

func benchmarkBodies() map[string][]byte {
	message := func(n int) string {
		return fmt.Sprintf(`{"role":"user","content":%q}`, strings.Repeat("Hello, \"world\"!\nThis is a line of text. ", n))
	}
	return map[string][]byte{
		"300B":  []byte(`{"model":"gpt-4o-mini","messages":[` + message(5) + `],"temperature":0.7,"stream":true}`),
		"4KB":   []byte(`{"model":"gpt-4o-mini","messages":[` + strings.Repeat(message(8)+",", 10) + message(1) + `],"stream":true}`),
		"100KB": []byte(`{"messages":[` + strings.Repeat(message(25)+",", 90) + message(1) + `],"model":"gpt-4o-mini","stream":true}`),
		"1MB":   []byte(`{"model":"gpt-4o","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,` + strings.Repeat("iVBORw0KGgoAAAANSUhEUg", 48000) + `"}}]}],"stream":true}`),
	}
}

func TestScanAllocatesNothing(t *testing.T) {
	var r Request
	bodies := benchmarkBodies()
	bodies["tools"] = []byte(`{"model":"gpt\u002d4o",` + hello + `,"tools":[{"type":"function","function":{"name":"f","strict":true,"parameters":{"type":"object"}}}],"response_format":{"type":"json_schema","json_schema":{"schema":{}}},"stream":true,"stream_options":{}}`)
	dst := make([]byte, 0, 2<<20)
	for name, body := range bodies {
		require.Zero(t, testing.AllocsPerRun(20, func() {
			if ScanRequest(ChatCompletions, body, &r) != nil {
				t.Fatal("refused")
			}
			dst = r.AppendUpstream(dst[:0], body, Edit{Model: "upstream-model", AskUsage: true})
		}), name)
	}
}

func BenchmarkScanRequest(b *testing.B) {
	for name, body := range benchmarkBodies() {
		b.Run(name, func(b *testing.B) {
			var r Request
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				ScanRequest(ChatCompletions, body, &r)
			}
		})
	}
}
