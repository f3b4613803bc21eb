package openai

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const chatAnswer = `{"id":"cB","object":"chat.completion","created":1,"model":"mb","choices":[{"index":0,"message":{"role":"assistant","content":"from B"},"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":7,"completion_tokens":2,"total_tokens":9},"seed":9007199254740993}`

func TestAnswerPassesWhatNeedsNoChange(t *testing.T) {
	var a Answer
	require.Equal(t, Whole, a.Scan(ChatCompletions, []byte(chatAnswer)))
	require.Equal(t, chatAnswer, string(a.AppendBody(nil, []byte(chatAnswer), AnswerOptions{Model: "other", Base64: true})))
	require.Equal(t, "mb", a.Model())
	require.Equal(t, "cB", a.ID())
	require.Equal(t, "from B", string(a.Text(0)))
	require.Equal(t, finishStop, a.Finish(0))
	require.Empty(t, a.Finish(1)+string(a.Text(1)))
	u, ok := a.Usage()
	require.True(t, ok)
	require.Equal(t, Usage{Input: 7, Output: 2}, u)
	require.Equal(t, Content, a.Products())
	require.Nil(t, a.ToolCalls())
}

func TestAnswerEndings(t *testing.T) {
	chat := func(message, finish string) string {
		return `{"id":"c","model":"m","choices":[{"index":0,"message":` + message + `,"finish_reason":` + finish + `}]}`
	}
	for name, c := range map[string]struct {
		e    Endpoint
		body string
		want Ending
	}{
		"not JSON":               {ChatCompletions, `<html>busy</html>`, Broken},
		"half":                   {ChatCompletions, chatAnswer[:100], Broken},
		"nothing":                {ChatCompletions, ``, Broken},
		"a list":                 {ChatCompletions, `[]`, Broken},
		"no choices":             {ChatCompletions, `{"id":"x"}`, Broken},
		"empty choices":          {ChatCompletions, `{"choices":[]}`, Broken},
		"choices null":           {ChatCompletions, `{"choices":null}`, Broken},
		"error inside":           {ChatCompletions, `{"id":"g","choices":[],"error":{"code":502,"message":"Provider returned error"}}`, Errored},
		"error beside":           {ChatCompletions, strings.Replace(chatAnswer, `"seed"`, `"error":"m","seed"`, 1), Errored},
		"error in a choice":      {ChatCompletions, `{"choices":[{"index":0,"message":{"content":"x"},"finish_reason":"stop","error":{"message":"m"}}]}`, Errored},
		"error in a list":        {ChatCompletions, `[{"error":{"message":"m"}}]`, Errored},
		"flat error":             {ChatCompletions, `{"detail":"m"}`, Errored},
		"finish that is none":    {ChatCompletions, chat(`{"content":"x"}`, `"error"`), Errored},
		"null error":             {ChatCompletions, strings.Replace(chatAnswer, `"seed"`, `"error":null,"seed"`, 1), Whole},
		"no finish reason":       {ChatCompletions, chat(`{"content":"x"}`, `null`), Cut},
		"empty":                  {ChatCompletions, chat(`{"content":""}`, `"stop"`), Empty},
		"empty, null":            {ChatCompletions, chat(`{"content":null,"tool_calls":[]}`, `"stop"`), Empty},
		"reasoning alone":        {ChatCompletions, chat(`{"content":"","reasoning_content":"hm"}`, `"stop"`), Empty},
		"length":                 {ChatCompletions, chat(`{"content":""}`, `"length"`), Whole},
		"refusal":                {ChatCompletions, chat(`{"content":null,"refusal":"no"}`, `"stop"`), Whole},
		"audio":                  {ChatCompletions, chat(`{"content":null,"audio":{"data":"AA"}}`, `"stop"`), Whole},
		"completion":             {Completions, `{"choices":[{"text":"x","finish_reason":"stop"}]}`, Whole},
		"empty completion":       {Completions, `{"choices":[{"text":"","finish_reason":"stop"}]}`, Empty},
		"embeddings":             {Embeddings, `{"data":[{"embedding":[0.5]}]}`, Whole},
		"no embeddings":          {Embeddings, `{"data":[]}`, Broken},
		"no data":                {Embeddings, `{"object":"list"}`, Broken},
		"error for embeddings":   {Embeddings, `{"error":{"message":"m"}}`, Errored},
		"moderations":            {Moderations, `{"results":[{"flagged":false}]}`, Whole},
		"no moderations":         {Moderations, `{"results":[]}`, Broken},
		"response":               {Responses, `{"id":"r","status":"completed","error":null,"output":[{"type":"message","content":[{"type":"output_text","text":"x"}]}]}`, Whole},
		"response, no status":    {Responses, `{"id":"r","output":[{"type":"message","content":[{"type":"output_text","text":"x"}]}]}`, Whole},
		"response, empty":        {Responses, `{"id":"r","status":"completed","output":[{"type":"message","content":[]}]}`, Empty},
		"response, failed":       {Responses, `{"id":"r","status":"failed","error":{"code":"server_error","message":"m"},"output":[]}`, Errored},
		"response, background":   {Responses, `{"id":"r","status":"queued","output":[]}`, Whole},
		"response, no output":    {Responses, `{"id":"r","status":"completed"}`, Broken},
		"response, other error":  {Responses, `{"detail":"m"}`, Errored},
		"response, incomplete":   {Responses, `{"id":"r","status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output":[]}`, Whole},
		"choices where no place": {Embeddings, chatAnswer, Broken},
	} {
		t.Run(name, func(t *testing.T) {
			var a Answer
			require.Equal(t, c.want, a.Scan(c.e, []byte(c.body)))
			if c.want == Errored && name != "finish that is none" {
				require.Contains(t, []string{"m", "Provider returned error"}, a.Failure().Message)
			}
		})
	}
}

func TestAnswerEdits(t *testing.T) {
	for name, c := range map[string]struct {
		e          Endpoint
		o          AnswerOptions
		body, want string
	}{
		"model and disclosure": {
			ChatCompletions,
			AnswerOptions{Model: "m/\"", Disclosure: []byte(`{"cause":"model_substitution"}`)},
			`{"choices":[{"message":{"content":"x"},"finish_reason":"stop"}]}`,
			`{"model":"m/\"","interlock":{"cause":"model_substitution"},"choices":[{"message":{"content":"x"},"finish_reason":"stop"}]}`,
		},
		"null model": {
			Responses,
			AnswerOptions{Model: "m"},
			`{"model":null,"status":"queued"}`, `{"model":"m","status":"queued"}`,
		},
		"tool call without a type, another finish reason": {
			ChatCompletions,
			AnswerOptions{},
			`{"choices":[{"finish_reason":"tool_use","message":{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}},{"id":"b","type":null,"function":{"name":"g","arguments":""}}]}}]}`,
			`{"choices":[{"finish_reason":"tool_calls","message":{"tool_calls":[{"type":"function","id":"a","function":{"name":"f","arguments":"{}"}},{"id":"b","type":"function","function":{"name":"g","arguments":""}}]}}]}`,
		},
		"list content": {
			ChatCompletions,
			AnswerOptions{},
			`{"choices":[{"message":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]},{"type":"text","text":"o\"ne"}]},"finish_reason":"stop"}]}`,
			`{"choices":[{"message":{"reasoning_content":"hm","content":"o\"ne"},"finish_reason":"stop"}]}`,
		},
		"reasoning beside the completion": {
			ChatCompletions,
			AnswerOptions{},
			`{"choices":[{"message":{"content":"x"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":6,"completion_tokens_details":{"reasoning_tokens":3}}}`,
			`{"choices":[{"message":{"content":"x"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":5,"total_tokens":6,"completion_tokens_details":{"reasoning_tokens":3}}}`,
		},
		"floats asked for in base64": {
			Embeddings,
			AnswerOptions{Base64: true},
			`{"data":[{"embedding":[1,-0.5],"index":0},{"embedding":"AACAPw==","index":1}]}`,
			`{"data":[{"embedding":"AACAPwAAAL8=","index":0},{"embedding":"AACAPw==","index":1}]}`,
		},
		"floats not asked for in base64": {
			Embeddings, AnswerOptions{}, `{"data":[{"embedding":[1,-0.5]}]}`, `{"data":[{"embedding":[1,-0.5]}]}`,
		},
		"a vector of something else": {
			Embeddings, AnswerOptions{Base64: true}, `{"data":[{"embedding":[1,"x"]}]}`, `{"data":[{"embedding":[1,"x"]}]}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var a Answer
			require.Equal(t, Whole, a.Scan(c.e, []byte(c.body)))
			require.Equal(t, c.want, string(a.AppendBody(nil, []byte(c.body), c.o)))
			require.Equal(t, c.want, string(a.AppendBody(nil, []byte(c.body), c.o)), "asked again")
		})
	}
}

func TestAnswerFindsCallsOfEveryChoice(t *testing.T) {
	body := []byte(`{"choices":[{"message":{"content":"b","tool_calls":[{"id":"z","type":"function","function":{"name":"h","arguments":"{}"}}]},"finish_reason":"tool_calls","index":1},
		{"index":0,"message":{"content":"a","tool_calls":[{"index":5,"id":"x","type":"function","function":{"name":"f","arguments":"{\"k\":\"\\u00e9\"}"}},{"id":"y","type":"custom","custom":{"name":"g","input":"text"}}]},"finish_reason":"tool_calls"}]}`)
	var a Answer
	require.Equal(t, Whole, a.Scan(ChatCompletions, body))
	require.Equal(t, []ToolCall{
		{Choice: 0, Index: 0, ID: "x", Name: "f", Arguments: []byte(`{"k":"\u00e9"}`)},
		{Choice: 0, Index: 1, ID: "y", Name: "g", Arguments: []byte("text"), Custom: true},
		{Choice: 1, Index: 0, ID: "z", Name: "h", Arguments: []byte("{}")},
	}, a.ToolCalls())
	require.Equal(t, "b", string(a.Text(1)))
}

func TestHashArguments(t *testing.T) {
	same := []string{`{"a":1,"b":"é"}`, ` { "b" : "\u00e9" , "a" : 1 } `}
	require.Equal(t, HashArguments([]byte(same[0])), HashArguments([]byte(same[1])))
	require.Equal(t, HashArguments(nil), HashArguments([]byte("{}")))
	for _, other := range []string{`{"a":1.0,"b":"é"}`, `{"a":9007199254740993}`, `{"a":9007199254740992}`, `not JSON`, ``} {
		require.NotEqual(t, HashArguments([]byte(same[0])), HashArguments([]byte(other)))
	}
	require.NotEqual(t, HashArguments([]byte(`{"a":9007199254740993}`)), HashArguments([]byte(`{"a":9007199254740992}`)))
	require.Equal(t, HashArguments([]byte(same[0])), ToolCall{Arguments: []byte(same[1])}.Hash())
}

func FuzzAnswer(f *testing.F) {
	f.Add(uint8(ChatCompletions), []byte(chatAnswer))
	f.Add(uint8(ChatCompletions), []byte(`{"choices":[{"message":{"content":[{"type":"thinking","thinking":"x"}],"tool_calls":[{},{"type":null}]},"finish_reason":"eos"}],"usage":{"completion_tokens":1,"prompt_tokens":1,"total_tokens":3,"completion_tokens_details":{"reasoning_tokens":1}}}`))
	f.Add(uint8(Embeddings), []byte(`{"data":[{"embedding":[1e40,0.1]}]}`))
	f.Add(uint8(Responses), []byte(`{"status":"incomplete","output":[{"type":"message","content":[{"type":"refusal","refusal":"x"}]}]}`))
	f.Fuzz(func(t *testing.T, e uint8, body []byte) {
		var a Answer
		endpoint := Endpoint(e % uint8(endpoints))
		ending := a.Scan(endpoint, body)
		if ending == Broken {
			return
		}
		down := a.AppendBody(nil, body, AnswerOptions{Model: "m", Disclosure: []byte(`{}`), Base64: true})
		if !json.Valid(down) {
			t.Fatalf("%q became %q", body, down)
		}
		if ending != Whole {
			return
		}
		var again Answer
		if got := again.Scan(endpoint, down); got != Whole || string(again.Text(0)) != string(a.Text(0)) || again.Finish(0) != a.Finish(0) {
			t.Fatalf("%v of %q, which came of %q", got, down, body)
		}
	})
}

func TestBase64VectorIsWhatSDKsDecode(t *testing.T) {
	body := []byte(`[0.1, -2.5e-3, 3e38, 0, 1e-60]`)
	text, ok := base64Vector(body, Span{0, len(body)})
	require.True(t, ok)
	var s string
	require.NoError(t, json.Unmarshal(text, &s))
	raw, err := base64.StdEncoding.DecodeString(s)
	require.NoError(t, err)
	var want []float32
	require.NoError(t, json.Unmarshal(body, &want))
	require.Len(t, raw, 4*len(want))
	for i, f := range want {
		require.Equal(t, f, math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:])))
	}
	_, ok = base64Vector([]byte(`[1e99]`), Span{0, 6})
	require.False(t, ok)
}

func TestAnswerAllocations(t *testing.T) {
	var a Answer
	body := []byte(chatAnswer)
	dst := make([]byte, 0, 4096)
	run := func() {
		if a.Scan(ChatCompletions, body) != Whole {
			t.Fatal("not whole")
		}
		dst = a.AppendBody(dst[:0], body, AnswerOptions{Model: "m"})
	}
	run()
	// The ID and the model are kept as strings.
	require.LessOrEqual(t, testing.AllocsPerRun(100, run), 2.0)
}

func BenchmarkAnswer(b *testing.B) {
	var a Answer
	body := []byte(chatAnswer)
	dst := make([]byte, 0, 4096)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		a.Scan(ChatCompletions, body)
		dst = a.AppendBody(dst[:0], body, AnswerOptions{Model: "m"})
	}
}
