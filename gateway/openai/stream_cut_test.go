package openai

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// drawChat makes a stream of a chat with the habits of several providers.
func drawChat(t *rapid.T) (string, StreamOptions) {
	crlf := rapid.Bool().Draw(t, "crlf")
	usageEvery := rapid.Bool().Draw(t, "usage on chunks")
	pieces := rapid.SliceOfN(rapid.SampledFrom([]string{
		`"content":"héllo \ud83d\ude00"`, `"content":""`, `"reasoning":"hm"`, `"refusal":"no"`, `"content":[{"type":"text","text":"l"},{"type":"thinking","thinking":"t"}]`,
		`"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{\"k\":"}}]`, `"tool_calls":[{"index":0,"function":{"arguments":"1}"}}]`,
		`"tool_calls":[{"index":0,"id":"b","type":"function","function":{"name":"g","arguments":"{}"}}]`, `"role":"assistant"`,
	}), 0, 8).Draw(t, "pieces")
	var b strings.Builder
	for i, p := range pieces {
		usage := ""
		if usageEvery {
			usage = fmt.Sprintf(`,"usage":{"prompt_tokens":3,"completion_tokens":%d}`, i)
		}
		b.WriteString(rapid.SampledFrom([]string{"", ": ping\n\n", "event: chunk\n"}).Draw(t, "before"))
		b.WriteString(event(fmt.Sprintf(`{"id":"c","created":5,"choices":[{"index":%d,"delta":{%s},"finish_reason":null}]%s,"n":9007199254740993}`, i%2, p, usage)))
	}
	b.WriteString(rapid.SampledFrom([]string{"", "data: {broken\n\n", event(`{"error":{"message":"m"}}`)}).Draw(t, "middle"))
	for i := range rapid.IntRange(0, 2).Draw(t, "finished") {
		b.WriteString(event(fmt.Sprintf(`{"model":"m","choices":[{"index":%d,"delta":{},"finish_reason":"%s"}]}`, i, rapid.SampledFrom([]string{"stop", "eos", "tool_calls"}).Draw(t, "finish"))))
	}
	b.WriteString(rapid.SampledFrom([]string{"", usageChunk}).Draw(t, "usage"))
	b.WriteString(rapid.SampledFrom([]string{"", doneEvent, "data: [DONE]"}).Draw(t, "end"))
	stream := b.String()
	if crlf {
		stream = strings.ReplaceAll(stream, "\n", "\r\n")
	}
	o := StreamOptions{IncludeUsage: rapid.Bool().Draw(t, "include"), KeepText: true, Structured: rapid.Bool().Draw(t, "structured")}
	if rapid.Bool().Draw(t, "disclose") {
		o.Model, o.Disclosure = "up", []byte(`{"cause":"model_substitution"}`)
	}
	return stream, o
}

func TestCuttingAStreamAnywhereIsTheSame(t *testing.T) {
	var used Stream // its buffers must not carry anything over
	rapid.Check(t, func(t *rapid.T) {
		stream, o := drawChat(t)
		want := play(t, o, stream)
		got := replayCuts(t, &used, ChatCompletions, o, []byte(stream), drawCuts(t, len(stream)))
		require.Equal(t, want, got)
		if want.down == "" {
			return
		}
		usages := 0
		for _, d := range dataOf(t, want.down) {
			if d == "[DONE]" {
				continue
			}
			top := decodeJSON(t, []byte(d))
			if u, there := top["usage"]; there && u != nil {
				require.Empty(t, top["choices"])
				usages++
			}
		}
		require.LessOrEqual(t, usages, 1)
		if !o.IncludeUsage {
			require.Zero(t, usages)
		}
	})
}

func FuzzStream(f *testing.F) {
	for _, s := range []string{
		roleChunk + oneChunk + stopChunk + usageChunk + doneEvent,
		delta(`"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}},{}]`, "null") + event(`{"usage":{"prompt_tokens":1},"choices":[{}]}`),
		event(`{"type":"response.created","response":{"output":[]}}`) + event(`{"type":"response.output_item.added","item":{"type":"message","content":[]}}`) + event(`{"type":"response.output_text.delta","delta":"x\""}`),
		event(`{"choices":[{"delta":{"content":[{"type":"thinking","thinking":[]},{"text":"\u0000"}]},"index":2}],"error":null}`),
		event(`{"usage":{"prompt_tokens":0},"choices":[{}]}`), // an insertion where a member is taken out
	} {
		f.Add([]byte(s), uint8(ChatCompletions), true)
		f.Add([]byte(s), uint8(Responses), false)
	}
	f.Fuzz(func(t *testing.T, stream []byte, e uint8, ask bool) {
		endpoint := []Endpoint{ChatCompletions, Responses, Completions}[e%3]
		o := StreamOptions{IncludeUsage: ask, KeepText: true, Model: "up", Disclosure: []byte(`{"cause":"x"}`)}
		var s Stream
		got := replayCuts(t, &s, endpoint, o, stream, nil)
		if again := replay(t, &s, endpoint, o, stream, 5); again.down != got.down || again.ending != got.ending || again.partial != got.partial {
			t.Fatalf("cut otherwise, %q is %q", got.down, again.down)
		}
		for _, down := range []string{got.down, got.partial} {
			if down == "" {
				continue
			}
			for _, line := range strings.Split(down, "\n") {
				if d, ok := strings.CutPrefix(line, "data:"); ok {
					d = strings.TrimPrefix(d, " ")
					if d != "[DONE]" && !json.Valid([]byte(d)) {
						t.Fatalf("not JSON: %q, of %q", d, stream)
					}
				}
			}
		}
	})
}

func TestStreamingAllocatesNothing(t *testing.T) {
	var split Splitter
	var s Stream
	var ev Event
	dst := make([]byte, 0, 64<<10)
	for name, c := range map[string]struct {
		endpoint Endpoint
		o        StreamOptions
		event    string
	}{
		"untouched":      {ChatCompletions, StreamOptions{Model: "m"}, oneChunk},
		"usage stripped": {ChatCompletions, StreamOptions{}, event(`{"id":"c","model":"m","choices":[{"index":0,"delta":{"content":"x"}}],"usage":null}`)},
		"reasoning":      {ChatCompletions, StreamOptions{KeepText: true}, delta(`"reasoning_content":"hm \" m"`, "null")},
		"tool call":      {ChatCompletions, StreamOptions{}, delta(`"tool_calls":[{"index":0,"function":{"arguments":""}}]`, "null")},
		"responses":      {Responses, StreamOptions{}, "event: response.output_text.delta\n" + event(`{"type":"response.output_text.delta","sequence_number":4,"output_index":0,"delta":"hi"}`)},
	} {
		bytes := []byte(c.event)
		s.Reset(c.endpoint, c.o)
		split.Reset()
		run := func() {
			split.Feed(bytes)
			for {
				if ok, _ := split.Next(&ev); !ok {
					break
				}
				dst, _ = s.Event(dst[:0], &ev)
			}
		}
		run()
		for range 2000 { // let the buffers that keep text grow first
			run()
		}
		require.Zero(t, testing.AllocsPerRun(200, run), name)
	}
}

func BenchmarkStream(b *testing.B) {
	openAI := event(`{"id":"chatcmpl-9hRtYuIoPaSdFgHj","object":"chat.completion.chunk","created":1733000000,"model":"gpt-4o-mini-2024-07-18","service_tier":"default","system_fingerprint":"fp_0123456789","choices":[{"index":0,"delta":{"content":" token"},"logprobs":null,"finish_reason":null}],"usage":null,"obfuscation":"aBcDeF"}`)
	for name, o := range map[string]StreamOptions{"asked": {IncludeUsage: true}, "hidden": {}, "kept": {KeepText: true}} {
		b.Run(name, func(b *testing.B) {
			var split Splitter
			var s Stream
			var ev Event
			stream := []byte(strings.Repeat(openAI, 20))
			dst := make([]byte, 0, len(stream)+1024)
			b.ReportAllocs()
			b.SetBytes(int64(len(stream)))
			for b.Loop() {
				s.Reset(ChatCompletions, o)
				split.Reset()
				split.Feed(stream)
				dst = dst[:0]
				for {
					if ok, _ := split.Next(&ev); !ok {
						break
					}
					dst, _ = s.Event(dst, &ev)
				}
			}
		})
	}
}
