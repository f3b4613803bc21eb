package fault

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// streamOf is the text of a stream's body.
func streamOf(t testing.TB, p *Provider, path, body string) string {
	t.Helper()
	return unchunk(t, bodyOf(ask(t, p, path, body)))
}

// jsonOf is the JSON of an answer.
func jsonOf(t testing.TB, answer string) map[string]any {
	t.Helper()
	var v map[string]any
	require.NoError(t, json.Unmarshal([]byte(bodyOf(answer)), &v), "%s", answer)
	return v
}

// TestChatBytes pins the bytes of every kind of chat event.
func TestChatBytes(t *testing.T) {
	p := script(t, `
id "c"
created 1
on chat
  role
  text "a\"\n\x01é"
  reasoning "r"
  refusal "no"
  tool f {"x": 1.50} id "t" pieces 2
  tool g "{" choice 1
  finish tool_calls
  usage 7 2 cached 3 reasoning 1
  done
`)
	chunk := func(rest string) string {
		return `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[` + rest + "\n\n"
	}
	delta := func(index int, d string) string {
		return chunk(fmt.Sprintf(`{"index":%d,"delta":%s,"finish_reason":null}]}`, index, d))
	}
	require.Equal(t, strings.Join([]string{
		delta(0, `{"role":"assistant","content":""}`),
		delta(0, `{"content":"a\"\n\u0001é"}`),
		delta(0, `{"reasoning_content":"r"}`),
		delta(0, `{"refusal":"no"}`),
		delta(0, `{"tool_calls":[{"index":0,"id":"t","type":"function","function":{"name":"f","arguments":""}}]}`),
		delta(0, `{"tool_calls":[{"index":0,"function":{"arguments":"{\"x\":"}}]}`),
		delta(0, `{"tool_calls":[{"index":0,"function":{"arguments":"1.50}"}}]}`),
		delta(1, `{"tool_calls":[{"index":0,"id":"call_c_0","type":"function","function":{"name":"g","arguments":""}}]}`),
		delta(1, `{"tool_calls":[{"index":0,"function":{"arguments":"{"}}]}`),
		chunk(`{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`),
		chunk(`],"usage":{"prompt_tokens":7,"completion_tokens":2,"total_tokens":9,"prompt_tokens_details":{"cached_tokens":3},"completion_tokens_details":{"reasoning_tokens":1}}}`),
		"data: [DONE]\n\n",
	}, ""), streamOf(t, p, chatPath, streamBody))

	require.Equal(t, `{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[`+
		`{"index":0,"message":{"role":"assistant","content":"a\"\n\u0001é","reasoning_content":"r","refusal":"no","tool_calls":[{"id":"t","type":"function","function":{"name":"f","arguments":"{\"x\":1.50}"}}]},"finish_reason":"tool_calls"},`+
		`{"index":1,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"call_c_0","type":"function","function":{"name":"g","arguments":"{"}}]},"finish_reason":null}`+
		`],"usage":{"prompt_tokens":7,"completion_tokens":2,"total_tokens":9,"prompt_tokens_details":{"cached_tokens":3},"completion_tokens_details":{"reasoning_tokens":1}}}`,
		bodyOf(ask(t, p, chatPath, chatBody)))
}

func TestEventForms(t *testing.T) {
	p := script(t, `
id "c"
created 1
model ""
on chat stream
  crlf
  comment ""
  delta {} split
  event "x" tight named e
  event {"call": "${call}"} open
  error "plain"
  error {"message": "m"} bare
`)
	require.Equal(t, ":\r\n\r\n"+
		"data: {\r\ndata: \"id\":\"c\",\"object\":\"chat.completion.chunk\",\"created\":1,\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":null}]}\r\n\r\n"+
		"event:e\r\ndata:x\r\n\r\n"+
		"data: {\"call\":\"1\"}\r\n"+
		"data: {\"error\":\"plain\"}\r\n\r\n"+
		"data: {\"error\":{\"message\":\"m\"}}",
		streamOf(t, p, chatPath, streamBody))
}

func TestErrorUnder200(t *testing.T) {
	p := script(t, "on chat completions\n  error {\"message\": \"m\"}\n")
	for _, path := range []string{chatPath, "/v1/completions"} {
		answer := ask(t, p, path, chatBody)
		require.Equal(t, []string{"200", `{"error":{"message":"m"}}`}, []string{statusOf(answer), bodyOf(answer)})
	}
}

func TestStatusBodies(t *testing.T) {
	p := script(t, `
on chat model none
  status 204
on chat model moved
  status 307
  header Location "http://127.0.0.1:9/"
on chat model odd
  status 529 reason "Busy"
on chat model told
  status 400 code c message "for ${model}" param p type t
on chat model html
  status 502
  html "<html>${call}</html>"
on chat model stream
  status 500
  as stream
  role
`)
	get := func(model string) string { return ask(t, p, chatPath, `{"model":"`+model+`"}`) }
	require.Equal(t, "HTTP/1.1 204 No Content\r\n\r\n", get("none"))
	require.Equal(t, "HTTP/1.1 307 Temporary Redirect\r\nContent-Length: 0\r\nLocation: http://127.0.0.1:9/\r\n\r\n", get("moved"))
	odd := get("odd")
	require.True(t, strings.HasPrefix(odd, "HTTP/1.1 529 Busy\r\n"))
	require.Equal(t, `{"error":{"message":"Site Overloaded (529)","type":"overloaded_error","param":null,"code":"overloaded"}}`, bodyOf(odd))
	require.Equal(t, `{"error":{"message":"for told","type":"t","param":"p","code":"c"}}`, bodyOf(get("told")))
	require.Equal(t, "<html>5</html>", bodyOf(get("html")))
	require.Contains(t, get("stream"), "Content-Type: text/event-stream\r\n")
}

func TestStreamAndJSONAgainstTheAsking(t *testing.T) {
	p := script(t, "on chat stream\n  as json\n  answer \"x\"\non chat\n  as stream\n  answer \"x\"\n")
	require.Equal(t, "chat.completion", jsonOf(t, ask(t, p, chatPath, streamBody))["object"])
	require.True(t, strings.HasSuffix(streamOf(t, p, chatPath, chatBody), "data: [DONE]\n\n"))
}

func TestUsageOnlyWhereAsked(t *testing.T) {
	p := script(t, "healthy \"a b\" usage 5 2\n")
	require.NotContains(t, streamOf(t, p, chatPath, streamBody), "usage")
	with := `{"model":"m","stream":true,"stream_options":{"include_usage":true}}`
	require.Contains(t, streamOf(t, p, chatPath, with), `"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7}}`)
	require.Contains(t, streamOf(t, p, "/v1/completions", with), `"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7}}`)
	require.Contains(t, ask(t, p, chatPath, chatBody), `"usage":{"prompt_tokens":5`)
}

func TestChoices(t *testing.T) {
	p := script(t, "healthy \"a b\" usage 5 2\n")
	got := jsonOf(t, ask(t, p, chatPath, `{"model":"m","n":3}`))["choices"].([]any)
	require.Len(t, got, 3)
	for i, c := range got {
		require.InDelta(t, i, c.(map[string]any)["index"], 0)
		require.Equal(t, "a b", c.(map[string]any)["message"].(map[string]any)["content"])
	}
	require.Equal(t, 2, strings.Count(streamOf(t, p, chatPath, `{"stream":true,"n":2}`), `"finish_reason":"stop"`))
	require.Len(t, jsonOf(t, ask(t, p, "/v1/completions", `{"n":2}`))["choices"], 2)
}

func TestCompletions(t *testing.T) {
	p := script(t, "id \"c\"\ncreated 1\non completions\n  answer \"a b\" usage 5 2 finish length\n")
	chunk := func(rest string) string {
		return `data: {"id":"c","object":"text_completion","created":1,"model":"m","choices":[` + rest + "]}\n\n"
	}
	require.Equal(t, chunk(`{"text":"a","index":0,"logprobs":null,"finish_reason":null}`)+
		chunk(`{"text":" b","index":0,"logprobs":null,"finish_reason":null}`)+
		chunk(`{"text":"","index":0,"logprobs":null,"finish_reason":"length"}`)+"data: [DONE]\n\n",
		streamOf(t, p, "/v1/completions", streamBody))
	require.Equal(t, `{"id":"c","object":"text_completion","created":1,"model":"m","choices":[{"text":"a b","index":0,"logprobs":null,"finish_reason":"length"}],"usage":{"prompt_tokens":5,"completion_tokens":2,"total_tokens":7}}`,
		bodyOf(ask(t, p, "/v1/completions", chatBody)))
}

// TestResponses holds a responses stream to its own rules: numbered without a
// gap, named as typed, each item and part opened and closed once, and the sum
// of the deltas in the terminal event and in the JSON answer alike.
func TestResponses(t *testing.T) {
	p := script(t, `
id "r"
on responses
  answer reasoning "I think." "one two" tool f {"a": 1} id "t" refusal "no" usage 5 2 cached 1
`)
	stream := streamOf(t, p, "/v1/responses", streamBody)
	var kinds []string
	text := map[string]string{}
	var last map[string]any
	for i, e := range strings.Split(strings.TrimSuffix(stream, "\n\n"), "\n\n") {
		name, data, found := strings.Cut(e, "\n")
		require.True(t, found)
		var v map[string]any
		require.NoError(t, json.Unmarshal([]byte(strings.TrimPrefix(data, "data: ")), &v), "%s", data)
		require.Equal(t, "event: "+v["type"].(string), name)
		require.InDelta(t, i, v["sequence_number"], 0)
		kinds = append(kinds, v["type"].(string))
		if d, ok := v["delta"].(string); ok {
			text[v["type"].(string)] += d
		}
		last = v
	}
	require.Equal(t, "response.created", kinds[0])
	require.Equal(t, "response.completed", kinds[len(kinds)-1])
	require.Equal(t, strings.Count(stream, "event: response.output_item.added"), strings.Count(stream, "event: response.output_item.done"))
	require.Equal(t, strings.Count(stream, "event: response.content_part.added"), strings.Count(stream, "event: response.content_part.done"))
	require.Equal(t, map[string]string{
		"response.reasoning_summary_text.delta":  "I think.",
		"response.output_text.delta":             "one two",
		"response.function_call_arguments.delta": `{"a":1}`,
		"response.refusal.delta":                 "no",
	}, text)
	response := last["response"].(map[string]any)
	output := response["output"].([]any)
	require.Len(t, output, 4)
	require.Equal(t, "t", output[2].(map[string]any)["call_id"])
	require.InDelta(t, 7, response["usage"].(map[string]any)["total_tokens"], 0)

	whole := jsonOf(t, ask(t, p, "/v1/responses", chatBody))
	require.Equal(t, output, whole["output"])
	require.Equal(t, response["usage"], whole["usage"])
	require.Equal(t, "completed", whole["status"])
}

func TestResponsesEndings(t *testing.T) {
	p := script(t, `
on responses model length
  role
  text "a"
  finish length
  usage 1 1
  done
on responses model failed
  role
  text "a"
  finish failed
  done
on responses model error
  role
  error {"code": "server_error", "message": "m", "type": "x"}
on responses model nodone
  no-done
  answer "a"
`)
	get := func(model string) string {
		return streamOf(t, p, "/v1/responses", `{"stream":true,"model":"`+model+`"}`)
	}
	require.Contains(t, get("length"), `event: response.incomplete`+"\n")
	require.Contains(t, get("length"), `"status":"incomplete","error":null,"incomplete_details":{"reason":"max_output_tokens"}`)
	require.Contains(t, get("failed"), "event: response.failed\n")
	require.Contains(t, get("error"), "event: error\n"+`data: {"type":"error","sequence_number":2,"code":"server_error","message":"m","param":null,"error":{"code":"server_error","message":"m","type":"x"}}`)
	require.NotContains(t, get("nodone"), "response.completed")
	require.Contains(t, ask(t, p, "/v1/responses", `{"model":"failed"}`), `"status":"failed","error":{"code":"server_error"`)
}

func TestEmbeddings(t *testing.T) {
	p := script(t, "dimensions 16\n")
	get := func(body string) []any {
		v := jsonOf(t, ask(t, p, "/v1/embeddings", body))
		require.Equal(t, []any{"list", "m"}, []any{v["object"], v["model"]})
		return v["data"].([]any)
	}
	floats := func(v any) []float32 {
		var out []float32
		for _, f := range v.(map[string]any)["embedding"].([]any) {
			out = append(out, float32(f.(float64)))
		}
		return out
	}
	two := get(`{"model":"m","input":["a","b"]}`)
	require.Len(t, two, 2)
	a, b := floats(two[0]), floats(two[1])
	require.Len(t, a, 16)
	require.NotEqual(t, a, b)
	norm := 0.0
	for _, f := range a {
		norm += float64(f) * float64(f)
	}
	require.InDelta(t, 1, norm, 1e-5)
	require.Equal(t, a, floats(get(`{"model":"m","input":"a"}`)[0]))
	require.Len(t, floats(get(`{"model":"m","input":"a","dimensions":3}`)[0]), 3)
	require.Len(t, get(`{"model":"m","input":[1,2,3]}`), 1)
	require.Len(t, get(`{"model":"m","input":[[1,2],[3]]}`), 2)

	raw, err := base64.StdEncoding.DecodeString(get(`{"model":"m","input":"a","encoding_format":"base64"}`)[0].(map[string]any)["embedding"].(string))
	require.NoError(t, err)
	var coded []float32
	for i := 0; i < len(raw); i += 4 {
		coded = append(coded, math.Float32frombits(binary.LittleEndian.Uint32(raw[i:])))
	}
	require.Equal(t, a, coded)
}

func TestModerations(t *testing.T) {
	p := script(t, "")
	require.Len(t, jsonOf(t, ask(t, p, "/v1/moderations", `{"input":["a","b"]}`))["results"], 2)
}

func TestModelsAndKey(t *testing.T) {
	p := script(t, "models gpt-5 \"a/b\"\nkey \"sk-1\"\non any\n  once\n  status 500\n")
	get := func(path, key string) string {
		number := p.Count() + 1
		c := dial(t, p)
		c.send("GET " + path + " HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + key + "\r\n\r\n")
		return c.answered(p, number)
	}
	wrong := get("/v1/models", "sk-2")
	require.Equal(t, "401", statusOf(wrong))
	require.NotContains(t, wrong, "sk-")
	require.Equal(t, "404", statusOf(ask(t, p, chatPath, chatBody, "api-key: sk-1")))
	require.Equal(t, "500", statusOf(get("/v1/models", "sk-1")), "refusals leave budgets alone")
	require.Equal(t, `{"object":"list","data":[{"id":"gpt-5","object":"model","created":1700000000,"owned_by":"p"},{"id":"a/b","object":"model","created":1700000000,"owned_by":"p"}]}`, bodyOf(get("/v1/models", "sk-1")))
	require.Equal(t, `{"id":"a/b","object":"model","created":1700000000,"owned_by":"p"}`, bodyOf(get("/v1/models/a/b", "sk-1")))
	require.Equal(t, "404", statusOf(get("/v1/models/gpt-4", "sk-1")))
	require.Equal(t, "404", statusOf(get("/v2/other", "sk-1")))
	require.Equal(t, "405", statusOf(get(chatPath, "sk-1")))
	require.Equal(t, "200", statusOf(ask(t, p, chatPath, `{"model":"gpt-5"}`, "x-api-key: sk-1")))
}

func TestIdentity(t *testing.T) {
	p := script(t, "healthy \"hi\"\non chat\n  once\n  id \"x-${call}-${name}\"\n  model \"other-${model}\"\n  created 5\n  answer \"${id} ${created} ${conn} $${x}\" whole\n")
	first := jsonOf(t, ask(t, p, chatPath, chatBody))
	require.Equal(t, []any{"x-1-p", "other-m", 5.0}, []any{first["id"], first["model"], first["created"]})
	require.Equal(t, "x-1-p 5 1 ${x}", first["choices"].([]any)[0].(map[string]any)["message"].(map[string]any)["content"])
	second := jsonOf(t, ask(t, p, chatPath, chatBody))
	require.Equal(t, []any{"chatcmpl-p-2", "m", 1700000002.0}, []any{second["id"], second["model"], second["created"]})
}

// TestTemplatesInJSON: what fills a place in JSON is escaped there.
func TestTemplatesInJSON(t *testing.T) {
	p := script(t, "let q = \"say \\\"no\\\"\"\non chat\n  json {\"m\": \"${model}\", \"q\": \"${q}\"}\n")
	require.Equal(t, map[string]any{"m": `a"b`, "q": `say "no"`}, jsonOf(t, ask(t, p, chatPath, `{"model":"a\"b"}`)))
}

func TestNumberWords(t *testing.T) {
	require.Equal(t, "one two three", strings.Join(numberWords(1, 3), ""))
	require.Equal(t, " twenty twenty-one", strings.Join(numberWords(20, 21), ""))
	require.Equal(t, " one-hundred-five", strings.Join(numberWords(105, 105), ""))
	require.Equal(t, " ninety-nine-thousand-nine-hundred-ninety-nine one-hundred-thousand", strings.Join(numberWords(99_999, 100_000), ""))
	require.Equal(t, strings.Join(numberWords(1, 60), ""), strings.Join(append(numberWords(1, 40), numberWords(41, 60)...), ""))
}

// TestTextSurvives: however a text is cut, streamed or quoted, its parts
// joined are the text.
func TestTextSurvives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text")
		require.Equal(t, text, strings.Join(splitWords(text), ""))
		n := rapid.IntRange(-1, 20).Draw(t, "n")
		parts := pieces(text, n)
		require.Equal(t, text, strings.Join(parts, ""))
		require.LessOrEqual(t, len(parts), max(n, 1))
		for _, part := range parts {
			require.True(t, utf8.ValidString(part))
		}
		var back string
		require.NoError(t, json.Unmarshal(appendQuoted(nil, text), &back))
		require.Equal(t, text, back)
	})
}

// TestSampleIsValid: the sample of a schema obeys it.
func TestSampleIsValid(t *testing.T) {
	for _, schema := range []string{
		`{"type":"object","properties":{"city":{"type":"string","minLength":9},"n":{"type":"integer","minimum":3},"on":{"type":"boolean"},"no":{"type":"null"}},"required":["city","n","on","no"],"additionalProperties":false}`,
		`{"type":"object","properties":{"kind":{"enum":["a","b"]},"one":{"const":1},"list":{"type":"array","items":{"type":["number","null"]},"minItems":2},"any":{"anyOf":[{"type":"string"},{"type":"null"}]}},"required":["kind","one","list","any"]}`,
		`{"$defs":{"node":{"type":"object","properties":{"name":{"type":"string","format":"uuid"},"next":{"anyOf":[{"type":"null"},{"$ref":"#/$defs/node"}]}},"required":["name","next"]}},"$ref":"#/$defs/node"}`,
		`{"type":"object","properties":{"children":{"type":"array","items":{"$ref":"#"}}}}`,
		`{"type":"string","format":"date-time"}`,
	} {
		doc, err := jsonschema.UnmarshalJSON(strings.NewReader(schema))
		require.NoError(t, err)
		c := jsonschema.NewCompiler()
		require.NoError(t, c.AddResource("s.json", doc))
		compiled, err := c.Compile("s.json")
		require.NoError(t, err)
		instance, err := jsonschema.UnmarshalJSON(bytes.NewReader([]byte(sample(json.RawMessage(schema)))))
		require.NoError(t, err)
		require.NoError(t, compiled.Validate(instance), "%s: %v", schema, instance)
	}
	// A schema that branches without end is cut short.
	wide := `{"type":"object","properties":{"a":{"$ref":"#"},"b":{"$ref":"#"},"c":{"$ref":"#"},"d":{"$ref":"#"}},"required":["a","b","c","d"]}`
	require.True(t, json.Valid([]byte(sample(json.RawMessage(wide)))))

	p := script(t, "")
	answer := jsonOf(t, ask(t, p, chatPath, `{"response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}}}}`))
	require.Equal(t, `{"a":0}`, answer["choices"].([]any)[0].(map[string]any)["message"].(map[string]any)["content"])
}
