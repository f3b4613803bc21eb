package chat_test

import (
	stdjson "encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	interlock "github.com/interlock-gateway/interlock/sdk/go"
	"github.com/interlock-gateway/interlock/sdk/go/chat"
	"github.com/interlock-gateway/interlock/sdk/go/json"
)

func read(t *testing.T, body string) *chat.Request {
	r, err := chat.Read([]byte(body))
	require.NoError(t, err, body)
	return r
}

func v(s string) json.Value { return json.Value(s) }

func TestReadEveryParameter(t *testing.T) {
	r := read(t, `{"model":"m","messages":[{"role":"user","content":"hi"}],"stream":true,"stream_options":{"include_usage":true},
		"tools":[{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object"},"strict":true}},{"type":"function","function":{"name":"g","x":1},"cache_control":{"type":"ephemeral"}}],
		"tool_choice":{"type":"function","function":{"name":"f"}},"parallel_tool_calls":false,
		"response_format":{"type":"json_schema","json_schema":{"name":"n","description":"d","schema":{},"strict":true}},
		"n":2,"max_tokens":5,"max_completion_tokens":6,"stop":["a","b"],"temperature":0.5,"top_p":1,"presence_penalty":-1,
		"frequency_penalty":2e-1,"seed":-7,"logprobs":true,"top_logprobs":3,"logit_bias":{"1":2},"reasoning_effort":"low","user":"u",
		"service_tier":"flex","verbosity":"high","prompt_cache_key":"k","safety_identifier":"s","metadata":{"a":"b"},
		"modalities":["text","audio"],"audio":{"voice":"v"},"prediction":{"type":"content"},"web_search_options":{},"store":true,
		"anthropic":{"x":1},"nothing":null}`)
	require.Equal(t, &chat.Request{
		Model: v(`"m"`), Stream: true, IncludeUsage: true,
		Messages: []chat.Message{{Role: chat.User, Parts: []chat.Part{{Kind: chat.Text, Text: v(`"hi"`)}}}},
		Tools: []chat.Tool{
			{Name: v(`"f"`), Description: v(`"d"`), Parameters: v(`{"type":"object"}`), Strict: true},
			{Name: v(`"g"`), Others: []chat.Member{{Key: "cache_control", Value: v(`{"type":"ephemeral"}`)}, {Key: "x", Value: v("1")}}},
		},
		Choice:            chat.ToolChoice{Mode: chat.ToolsNamed, Name: v(`"f"`)},
		ParallelToolCalls: chat.Off,
		Format:            chat.Format{Kind: chat.SchemaFormat, Name: v(`"n"`), Description: v(`"d"`), Schema: v(`{}`), Strict: true},
		N:                 2, MaxTokens: v("6"), Stop: []json.Value{v(`"a"`), v(`"b"`)}, Temperature: v("0.5"), TopP: v("1"),
		PresencePenalty: v("-1"), FrequencyPenalty: v("2e-1"), Seed: v("-7"), Logprobs: true, TopLogprobs: v("3"),
		LogitBias: v(`{"1":2}`), ReasoningEffort: v(`"low"`), User: v(`"u"`), ServiceTier: v(`"flex"`), Verbosity: v(`"high"`),
		PromptCacheKey: v(`"k"`), SafetyIdentifier: v(`"s"`), Metadata: v(`{"a":"b"}`), Modalities: v(`["text","audio"]`),
		Audio: v(`{"voice":"v"}`), Prediction: v(`{"type":"content"}`), WebSearchOptions: v(`{}`), Store: true,
		Others: []chat.Member{{Key: "anthropic", Value: v(`{"x":1}`)}},
	}, r)
	require.Equal(t, v(`{"x":1}`), r.Other("anthropic"))
	require.Nil(t, r.Other("nothing"))
}

func TestReadNullsAreAbsent(t *testing.T) {
	var b strings.Builder
	for _, key := range []string{
		"model", "stream", "stream_options", "tools", "tool_choice", "parallel_tool_calls", "response_format", "n", "max_tokens",
		"max_completion_tokens", "stop", "temperature", "top_p", "presence_penalty", "frequency_penalty", "seed", "logprobs", "top_logprobs",
		"logit_bias", "reasoning_effort", "user", "service_tier", "verbosity", "prompt_cache_key", "safety_identifier", "metadata", "modalities",
		"audio", "prediction", "web_search_options", "store", "whatever",
	} {
		b.WriteString(`,"` + key + `":null`)
	}
	r := read(t, `{"messages":[{"role":"user","content":"hi","name":null}]`+b.String()+`}`)
	require.Equal(t, &chat.Request{N: 1, Messages: []chat.Message{{Role: chat.User, Parts: []chat.Part{{Kind: chat.Text, Text: v(`"hi"`)}}}}}, r)
	require.NoError(t, r.Supports())
}

func TestReadEveryMessage(t *testing.T) {
	r := read(t, `{"messages":[
		{"role":"system","content":"s","name":"n"},
		{"role":"developer","content":[{"type":"text","text":"a","cache_control":{"type":"ephemeral"}},{"type":"text","text":""}]},
		{"role":"user","content":[
			{"type":"image_url","image_url":{"url":"https://example.com/a.png","detail":"low"}},
			{"type":"image_url","image_url":{"url":"data:image/PNG;charset=x;base64,AA\/="}},
			{"type":"image_url","image_url":"DATA:image\/jpeg;base64,interlock:blob:0123"},
			{"type":"file","file":{"file_data":"data:application/pdf;base64,BB","filename":"a.txt"}},
			{"type":"file","file":{"file_data":"interlock:blob:4567","filename":"a.PDF"}},
			{"type":"file","file":{"file_id":"file-1"}},
			{"type":"input_audio","input_audio":{"data":"CC","format":"mp3"}},
			{"type":"input_audio","input_audio":{"data":"CC","format":"WAV"}}]},
		{"role":"assistant","content":null,"refusal":"no","reasoning_content":"r","provider_data":[{"provider":"p"}],"tool_calls":[
			{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}},{"id":"c2","function":{"name":"g"}}]},
		{"role":"assistant","content":[{"type":"text","text":"t"},{"type":"refusal","refusal":"never"}]},
		{"role":"assistant"},
		{"role":"tool","tool_call_id":"c1","content":[{"type":"text","text":"r"}]},
		{"\u0072ole":"tool","tool_call_id":"c2","content":"","refusal":"x","reasoning_content":"y"}]}`)
	text := func(s string) chat.Part { return chat.Part{Kind: chat.Text, Text: v(s)} }
	cached := text(`"a"`)
	cached.Others = []chat.Member{{Key: "cache_control", Value: v(`{"type":"ephemeral"}`)}}
	require.Equal(t, []chat.Message{
		{Role: chat.System, Parts: []chat.Part{text(`"s"`)}, Name: v(`"n"`)},
		{Role: chat.Developer, Parts: []chat.Part{cached, text(`""`)}},
		{Role: chat.User, Parts: []chat.Part{
			{Kind: chat.Image, URL: v(`"https://example.com/a.png"`), Detail: v(`"low"`)},
			{Kind: chat.Image, MediaType: "image/png", Data: v(`"AA\/="`)},
			{Kind: chat.Image, MediaType: "image/jpeg", Data: v(`"interlock:blob:0123"`)},
			{Kind: chat.File, MediaType: "application/pdf", Data: v(`"BB"`), FileName: v(`"a.txt"`)},
			{Kind: chat.File, MediaType: "application/pdf", Data: v(`"interlock:blob:4567"`), FileName: v(`"a.PDF"`)},
			{Kind: chat.File, FileID: v(`"file-1"`)},
			{Kind: chat.Audio, MediaType: "audio/mpeg", Data: v(`"CC"`), Format: v(`"mp3"`)},
			{Kind: chat.Audio, MediaType: "audio/wav", Data: v(`"CC"`), Format: v(`"WAV"`)},
		}},
		{
			Role: chat.Assistant, Refusal: v(`"no"`), Reasoning: v(`"r"`), ProviderData: []json.Value{v(`{"provider":"p"}`)},
			ToolCalls: []chat.ToolCall{
				{ID: v(`"c1"`), Name: v(`"f"`), Arguments: v(`"{\"a\":1}"`)}, {ID: v(`"c2"`), Name: v(`"g"`), Arguments: v(`""`)},
			},
		},
		{Role: chat.Assistant, Parts: []chat.Part{text(`"t"`), text(`"never"`)}},
		{Role: chat.Assistant},
		{Role: chat.ToolRole, ToolCallID: v(`"c1"`), Parts: []chat.Part{text(`"r"`)}},
		{Role: chat.ToolRole, ToolCallID: v(`"c2"`), Parts: []chat.Part{text(`""`)}},
	}, r.Messages)
	calls := r.Messages[3].ToolCalls
	object, ok := calls[0].ArgumentsJSON()
	require.True(t, ok)
	require.Equal(t, `{"a":1}`, string(object))
	object, ok = calls[1].ArgumentsJSON()
	require.True(t, ok)
	require.Equal(t, `{}`, string(object))
	for _, s := range []string{`"[]"`, `"{"`, `"null"`} {
		_, ok = (&chat.ToolCall{Arguments: v(s)}).ArgumentsJSON()
		require.False(t, ok, s)
	}
}

func TestReadNamesWhatIsWrong(t *testing.T) {
	user := func(part string) string {
		return `{"messages":[{"role":"user","content":"a"},{"role":"user","content":[{"type":"text","text":"a"},` + part + `]}]}`
	}
	with := func(member string) string { return `{"messages":[{"role":"user","content":"a"}],` + member + `}` }
	message := func(m string) string { return `{"messages":[` + m + `]}` }
	const part = "messages[1].content[1]"
	for _, c := range []struct{ body, code, param string }{
		{``, "bad_request", ""},
		{`[]`, "bad_request", ""},
		{`{"messages":[]}`, "bad_request", "messages"},
		{`{"messages":{}}`, "bad_request", "messages"},
		{`{}`, "bad_request", "messages"},
		{message(`1`), "bad_request", "messages[0]"},
		{message(`{}`), "bad_request", "messages[0].role"},
		{message(`{"role":1}`), "bad_request", "messages[0].role"},
		{message(`{"role":"friend","content":"a"}`), "bad_request", "messages[0].role"},
		{message(`{"role":"function","content":"a"}`), "unsupported_parameter", "messages[0].role"},
		{message(`{"role":"assistant","function_call":{}}`), "unsupported_parameter", "messages[0].function_call"},
		{message(`{"role":"user"}`), "bad_request", "messages[0].content"},
		{message(`{"role":"user","content":null}`), "bad_request", "messages[0].content"},
		{message(`{"role":"user","content":1}`), "bad_request", "messages[0].content"},
		{message(`{"role":"user","content":"a","name":1}`), "bad_request", "messages[0].name"},
		{message(`{"role":"tool","content":"a"}`), "bad_request", "messages[0].tool_call_id"},
		{message(`{"role":"tool","content":"a","tool_call_id":""}`), "bad_request", "messages[0].tool_call_id"},
		{message(`{"role":"assistant","tool_calls":{}}`), "bad_request", "messages[0].tool_calls"},
		{message(`{"role":"assistant","tool_calls":[1]}`), "bad_request", "messages[0].tool_calls[0]"},
		{message(`{"role":"assistant","tool_calls":[{"type":"custom"}]}`), "unsupported_parameter", "messages[0].tool_calls[0].type"},
		{message(`{"role":"assistant","tool_calls":[{"id":"a"}]}`), "bad_request", "messages[0].tool_calls[0].function"},
		{message(`{"role":"assistant","tool_calls":[{"function":{"name":"f"}}]}`), "bad_request", "messages[0].tool_calls[0].id"},
		{message(`{"role":"assistant","tool_calls":[{"id":"a","function":{"name":""}}]}`), "bad_request", "messages[0].tool_calls[0].function.name"},
		{message(`{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"f","arguments":{}}}]}`), "bad_request", "messages[0].tool_calls[0].function.arguments"},
		{message(`{"role":"assistant","reasoning_content":1}`), "bad_request", "messages[0].reasoning_content"},
		{message(`{"role":"assistant","refusal":1}`), "bad_request", "messages[0].refusal"},
		{message(`{"role":"assistant","provider_data":{}}`), "bad_request", "messages[0].provider_data"},
		{message(`{"role":"assistant","provider_data":[null]}`), "bad_request", "messages[0].provider_data"},
		{message(`{"role":"system","content":[{"type":"image_url","image_url":{"url":"u"}}]}`), "bad_request", "messages[0].content[0].type"},
		{message(`{"role":"user","content":[{"type":"refusal","refusal":"u"}]}`), "bad_request", "messages[0].content[0].type"},
		{user(`1`), "bad_request", part},
		{user(`{}`), "bad_request", part + ".type"},
		{user(`{"type":"video"}`), "bad_request", part + ".type"},
		{user(`{"type":"text"}`), "bad_request", part + ".text"},
		{user(`{"type":"text","text":[]}`), "bad_request", part + ".text"},
		{user(`{"type":"image_url"}`), "bad_request", part + ".image_url"},
		{user(`{"type":"image_url","image_url":{}}`), "bad_request", part + ".image_url.url"},
		{user(`{"type":"image_url","image_url":{"url":""}}`), "bad_request", part + ".image_url.url"},
		{user(`{"type":"image_url","image_url":{"url":"u","detail":1}}`), "bad_request", part + ".image_url.detail"},
		{user(`{"type":"image_url","image_url":{"url":"data:image/png"}}`), "bad_request", part + ".image_url.url"},
		{user(`{"type":"image_url","image_url":{"url":"data:image/png,AA"}}`), "bad_request", part + ".image_url.url"},
		{user(`{"type":"image_url","image_url":{"url":"data:image/png;base64,"}}`), "bad_request", part + ".image_url.url"},
		{user(`{"type":"file","file":{}}`), "bad_request", part + ".file"},
		{user(`{"type":"file"}`), "bad_request", part + ".file"},
		{user(`{"type":"input_audio","input_audio":{"data":"a"}}`), "bad_request", part + ".input_audio.format"},
		{user(`{"type":"input_audio","input_audio":{"format":"wav"}}`), "bad_request", part + ".input_audio.data"},
		{with(`"model":1`), "bad_request", "model"},
		{with(`"stream":"yes"`), "bad_request", "stream"},
		{with(`"stream_options":1`), "bad_request", "stream_options"},
		{with(`"n":0`), "bad_request", "n"},
		{with(`"n":1.5`), "bad_request", "n"},
		{with(`"max_tokens":0`), "bad_request", "max_tokens"},
		{with(`"max_completion_tokens":"5"`), "bad_request", "max_completion_tokens"},
		{with(`"top_logprobs":-1`), "bad_request", "top_logprobs"},
		{with(`"seed":0.5`), "bad_request", "seed"},
		{with(`"temperature":"hot"`), "bad_request", "temperature"},
		{with(`"stop":1`), "bad_request", "stop"},
		{with(`"stop":["a",1]`), "bad_request", "stop[1]"},
		{with(`"logit_bias":[]`), "bad_request", "logit_bias"},
		{with(`"parallel_tool_calls":1`), "bad_request", "parallel_tool_calls"},
		{with(`"tools":{}`), "bad_request", "tools"},
		{with(`"tools":[1]`), "bad_request", "tools[0]"},
		{with(`"tools":[null]`), "bad_request", "tools[0]"},
		{with(`"tools":[{"type":"custom"}]`), "unsupported_parameter", "tools[0].type"},
		{with(`"tools":[{"type":"function"}]`), "bad_request", "tools[0].function"},
		{with(`"tools":[{"function":{}}]`), "bad_request", "tools[0].function.name"},
		{with(`"tools":[{"function":{"name":1}}]`), "bad_request", "tools[0].function.name"},
		{with(`"tools":[{"function":{"name":"f","parameters":[]}}]`), "bad_request", "tools[0].function.parameters"},
		{with(`"tool_choice":"some"`), "bad_request", "tool_choice"},
		{with(`"tool_choice":1`), "bad_request", "tool_choice"},
		{with(`"tool_choice":{"type":"allowed_tools"}`), "unsupported_parameter", "tool_choice.type"},
		{with(`"tool_choice":{"type":"function"}`), "bad_request", "tool_choice.function"},
		{with(`"tool_choice":{"function":{}}`), "bad_request", "tool_choice.function.name"},
		{with(`"response_format":"json"`), "bad_request", "response_format"},
		{with(`"response_format":{}`), "bad_request", "response_format.type"},
		{with(`"response_format":{"type":"grammar"}`), "bad_request", "response_format.type"},
		{with(`"response_format":{"type":"json_schema"}`), "bad_request", "response_format.json_schema"},
		{with(`"response_format":{"type":"json_schema","json_schema":{"schema":{}}}`), "bad_request", "response_format.json_schema.name"},
		{with(`"response_format":{"type":"json_schema","json_schema":{"name":"n","schema":1}}`), "bad_request", "response_format.json_schema.schema"},
	} {
		_, err := chat.Read([]byte(c.body))
		var e *interlock.Error
		require.True(t, errors.As(err, &e), c.body)
		require.Equal(t, []string{c.code, c.param}, []string{e.Code, e.Param}, c.body)
		require.NotEmpty(t, e.Message)
	}
}

func TestSupports(t *testing.T) {
	// Each member with a value that changes the answer, and one that does not.
	for name, values := range map[string][2]string{
		"tools":              {`[{"function":{"name":"f"}}]`, `[]`},
		"tool_choice":        {`"required"`, `"auto"`},
		"response_format":    {`{"type":"json_object"}`, `{"type":"text"}`},
		"n":                  {`2`, `1`},
		"max_tokens":         {`1`, `null`},
		"stop":               {`"a"`, `[]`},
		"temperature":        {`1`, `null`},
		"top_p":              {`1`, `null`},
		"presence_penalty":   {`1`, `0.0`},
		"frequency_penalty":  {`-1`, `0`},
		"seed":               {`1`, `null`},
		"logprobs":           {`true`, `false`},
		"top_logprobs":       {`1`, `0`},
		"logit_bias":         {`{"1":1}`, `{ }`},
		"reasoning_effort":   {`"low"`, `null`},
		"service_tier":       {`"flex"`, `"auto"`},
		"verbosity":          {`"low"`, `"medium"`},
		"modalities":         {`["text","audio"]`, `["text"]`},
		"audio":              {`{}`, `null`},
		"prediction":         {`{}`, `null`},
		"web_search_options": {`{}`, `null`},
		"store":              {`true`, `false`},
		"top_k":              {`5`, `null`},
	} {
		body := func(value string) string {
			return `{"messages":[{"role":"user","content":"a"}],"` + name + `":` + value + `}`
		}
		changes, same := read(t, body(values[0])), read(t, body(values[1]))
		require.NoError(t, same.Supports(), name)
		require.NoError(t, same.Refuse(name), name)
		require.NoError(t, changes.Supports(name), name)
		for _, err := range []error{changes.Supports("other"), changes.Refuse("other", name)} {
			var e *interlock.Error
			require.True(t, errors.As(err, &e), name)
			require.Equal(t, []string{"unsupported_parameter", name}, []string{e.Code, e.Param})
		}
	}
	const tools = `"tools":[{"function":{"name":"f"}}]`
	const hi = `{"messages":[{"role":"user","content":"a"}],`
	require.Error(t, read(t, hi+tools+`,"parallel_tool_calls":false}`).Supports("tools"))
	require.NoError(t, read(t, hi+tools+`,"parallel_tool_calls":true}`).Supports("tools"))
	require.NoError(t, read(t, hi+`"parallel_tool_calls":false}`).Supports())
	require.NoError(t, read(t, hi+`"max_completion_tokens":5}`).Supports("max_tokens"))
	require.NoError(t, read(t, hi+`"user":"u","metadata":{},"prompt_cache_key":"k","safety_identifier":"s","stream":true,"stream_options":{}}`).Supports())
}

func TestOwnProviderData(t *testing.T) {
	m := read(t, `{"messages":[{"role":"assistant","content":"x","reasoning_content":"h\u00e9llo w\u00f6rld","provider_data":[
		{"provider":"a","n":1,"reasoning_bytes":6},{"provider":"b","reasoning_bytes":1},{"provider":"a","n":2},{"provider":"a","n":3,"reasoning_bytes":6},
		{"provider":"a","n":4,"reasoning_bytes":1}]}]}`).Messages[0]
	var got []string
	for item, text := range m.Own("a") {
		got = append(got, string(item.Get("n"))+string(text))
	}
	require.Equal(t, []string{"1héllo", "2", "3wörld"}, got)
	for range m.Own("c") {
		t.Fatal("another provider's")
	}
	// A length that would cut a character belongs to another text.
	m = read(t, `{"messages":[{"role":"assistant","reasoning_content":"é","provider_data":[{"provider":"a","reasoning_bytes":1},{"provider":"a","reasoning_bytes":-1}]}]}`).Messages[0]
	n := 0
	for item, text := range m.Own("a") {
		require.Contains(t, string(item), "-1")
		require.Empty(t, text)
		n++
	}
	require.Equal(t, 1, n)
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AA"}}]}],"tools":[{"function":{"name":"f"}}]}`))
	f.Add([]byte(`{"messages":[{"role":"assistant","reasoning_content":"ab","provider_data":[{"provider":"a","reasoning_bytes":1}],"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}]}],"stop":"x","n":3}`))
	f.Add([]byte(`{"messages":[{"role":"tool","tool_call_id":"a","content":"b"}],"response_format":{"type":"json_schema","json_schema":{"name":"n"}}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		before := string(body)
		r, err := chat.Read(body)
		require.Equal(t, before, string(body), "the body was written to")
		if err != nil {
			var e *interlock.Error
			require.True(t, errors.As(err, &e))
			return
		}
		_ = r.Supports()
		require.NotEmpty(t, r.Messages)
		for i := range r.Messages {
			m := &r.Messages[i]
			require.NotZero(t, m.Role)
			for _, p := range m.Parts {
				require.NotZero(t, p.Kind)
				for _, s := range []json.Value{p.Text, p.URL, p.Data, p.Format, p.FileName, p.FileID, p.Detail} {
					require.True(t, s == nil || s.IsString() && stdjson.Valid(s), "%q", s)
				}
			}
			for _, c := range m.ToolCalls {
				c.ArgumentsJSON()
			}
			for range m.Own("a") {
			}
		}
	})
}

// What is wrong with the JSON goes before what is wrong with a part of it, wherever each is.
func TestReadWantsAWholeDocument(t *testing.T) {
	for _, body := range []string{
		"", " ", "[]", `"messages"`, `{"messages":[{"role":"nobody"}]`, `{"messages":[{"role":"nobody"}],}`, `{"n":0,"messages":[]`,
		`{"messages":[{"role":"user","content":"a"}]} x`, `{"tools":[1],"messages":[{"role":"user","content":"a"`, `{"messages":{"a":1}`,
	} {
		_, err := chat.Read([]byte(body))
		require.Equal(t, interlock.BadRequest("the body is not a JSON object"), err, body)
	}
}
