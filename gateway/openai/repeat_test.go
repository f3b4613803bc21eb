package openai

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Events that are known by their bytes come out as events that are read, and leave the same
// facts behind.
func TestRepeatedEventsAreAsIfRead(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		endpoint := rapid.SampledFrom([]Endpoint{ChatCompletions, Completions}).Draw(t, "endpoint")
		o := StreamOptions{
			IncludeUsage: rapid.Bool().Draw(t, "include"), KeepText: rapid.Bool().Draw(t, "keep"),
			Model: rapid.SampledFrom([]string{"", "up"}).Draw(t, "model"),
		}
		if rapid.Bool().Draw(t, "disclose") {
			o.Disclosure = []byte(`{"cause":"model_substitution"}`)
		}
		shape := rapid.SampledFrom([]string{
			`{"id":"c","created":5,"model":"m","choices":[{"index":0,%s"finish_reason":null}]}`,
			`{"id":"c","created":5,"choices":[{%s"finish_reason":null,"index":1}],"usage":null,"obfuscation":"%[2]s"}`,
			`{"obfuscation":"%[2]s","id":"c","choices":[{"index":0,%[1]s"finish_reason":""}],"usage":null}`,
			`{"id":"c","model":"m","usage":null,"choices":[{"index":0,%s"logprobs":null}],"obfuscation":"%s","usage":null,"n":1}`,
			`{"id":"c","choices":[{"index":0,%s"x":0},{"index":1,%[1]s"x":0}]}`,
			`{"id":"c","model":"m","choices":[{"index":0,%s"finish_reason":"eos"}],"error":null}`,
		}).Draw(t, "shape")
		text := `"delta":{%s"content":"%s"},`
		if endpoint == Completions {
			text = `%s"text":"%s",`
		}
		var plain, read Stream
		plain.Reset(endpoint, o)
		read.Reset(endpoint, o)
		for range rapid.IntRange(1, 12).Draw(t, "events") {
			piece := rapid.SampledFrom([]string{"a", "bc", `\"`, `é\u00e9 \ud83d`, "", "\x01", `\x`, `"},"finish_reason":null}]}`, `","content":"`}).Draw(t, "text")
			also := rapid.SampledFrom([]string{"", "", "", `"role":"assistant",`, `"reasoning":"r",`}).Draw(t, "also")
			if endpoint == Completions {
				also = ""
			}
			data := fmt.Sprintf(shape, fmt.Sprintf(text, also, piece), rapid.SampledFrom([]string{"", "x1", "yz", `\n`}).Draw(t, "pad"))
			if i := strings.Index(data, "%!"); i >= 0 {
				data = data[:i]
			}
			block := rapid.SampledFrom([]string{"data: ", "data: ", "data:", "id: 1\ndata: ", "event: e\ndata: "}).Draw(t, "field") + data + "\n\n"
			var ev Event
			split := func() *Event {
				var s Splitter
				s.Feed([]byte(block))
				ok, err := s.Next(&ev)
				require.True(t, ok)
				require.NoError(t, err)
				return &ev
			}
			down, step := plain.Event(nil, split())
			read.repeat.reset()
			want, wanted := read.Event(nil, split())
			require.Equal(t, string(want), string(down), "%q", block)
			require.Equal(t, wanted, step, "%q", block)
		}
		plain.repeat, read.repeat = repeat{}, repeat{}
		require.Equal(t, read.record, plain.record)
		require.Equal(t, read.broken, plain.broken)
	})
}

// The streams of common providers are known by their bytes from the third piece of text on.
func TestCommonStreamsRepeat(t *testing.T) {
	for name, shape := range map[string]string{
		"plain":             `{"id":"c","object":"chat.completion.chunk","created":5,"model":"m","choices":[{"index":0,"delta":{"content":"%d"},"finish_reason":null}]}`,
		"usage and padding": `{"id":"c","object":"chat.completion.chunk","created":5,"model":"m","choices":[{"index":0,"delta":{"content":"%d"},"logprobs":null,"finish_reason":null}],"usage":null,"obfuscation":"x%[1]d"}`,
	} {
		var s Stream
		s.Reset(ChatCompletions, StreamOptions{})
		for i := range 5 {
			var ev Event
			var split Splitter
			split.Feed([]byte(event(fmt.Sprintf(shape, i))))
			_, err := split.Next(&ev)
			require.NoError(t, err)
			_, _, known := s.repeat.again(nil, &ev)
			require.Equal(t, i > 1, known, "%s: event %d", name, i)
			_, step := s.Event(nil, &ev)
			require.Equal(t, Output, step)
		}
	}
}

func BenchmarkEventsOfText(b *testing.B) {
	const n = 20
	var body strings.Builder
	for i := range n {
		body.WriteString(event(fmt.Sprintf(`{"id":"chatcmpl-123","object":"chat.completion.chunk","created":1700000000,"model":"bench-model","choices":[{"index":0,"delta":{"content":" token%d"},"finish_reason":null}]}`, i)))
	}
	bytes := []byte(body.String())
	for _, known := range []bool{false, true} {
		b.Run(map[bool]string{false: "read", true: "known"}[known], func(b *testing.B) {
			var s Stream
			var split Splitter
			var ev Event
			var dst []byte
			b.ReportAllocs()
			b.SetBytes(int64(len(bytes)))
			for b.Loop() {
				s.Reset(ChatCompletions, StreamOptions{})
				split.Reset()
				split.Feed(bytes)
				dst = dst[:0]
				for {
					if ok, _ := split.Next(&ev); !ok {
						break
					}
					if !known {
						s.repeat.reset()
					}
					dst, _ = s.Event(dst, &ev)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/event")
		})
	}
}
