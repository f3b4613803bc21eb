package fault

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestBudgets(t *testing.T) {
	clock := newLeapClock()
	p := start(t, Options{Clock: clock, Script: MustParse("s", `
on models
  for 10s
  status 500
on chat
  until call 2
  status 501
on chat
  after 100s
  until 200s
  status 502
on chat
  every 3
  status 503
on chat
  after call 9
  status 504
`)})
	var seen []string
	one := func(pause time.Duration) {
		clock.leap(pause)
		seen = append(seen, statusOf(ask(t, p, chatPath, chatBody)))
	}
	for range 8 {
		one(0)
	}
	one(100 * time.Second)
	one(99 * time.Second)
	one(time.Second)
	one(0)
	one(0)
	require.Equal(t, strings.Fields("501 501 200 200 503 200 200 503 502 502 504 504 503"), seen)

	get := func() string {
		number := p.Count() + 1
		c := dial(t, p)
		c.send("GET /v1/models HTTP/1.1\r\nHost: x\r\n\r\n")
		return statusOf(c.answered(p, number))
	}
	require.Equal(t, "500", get()) // the ten seconds begin here
	clock.leap(9 * time.Second)
	require.Equal(t, "500", get())
	clock.leap(time.Second)
	require.Equal(t, "200", get())
}

func TestChanceIsSeeded(t *testing.T) {
	draw := func(seed int) string {
		p := start(t, Options{Script: MustParse("s", fmt.Sprintf("seed %d\non chat\n  chance 30%%\n  status 500\n", seed))})
		var b strings.Builder
		c := dial(t, p)
		for n := 1; n <= 200; n++ {
			c.post(chatPath, chatBody)
			b.WriteString(statusOf(c.answered(p, n))[:1])
		}
		return b.String()
	}
	first := draw(1)
	require.Equal(t, first, draw(1))
	require.NotEqual(t, first, draw(2))
	failed := strings.Count(first, "5")
	require.True(t, failed > 30 && failed < 90, "%d of 200", failed)
}

func TestMatching(t *testing.T) {
	p := script(t, `
on chat stream model "gpt-*-mini" header x-tier "gold*"
  status 410
on chat json
  once
  status 411
on chat body contains "needle"
  status 412
on chat asks tools
  status 413
on chat asks schema
  status 414
on chat asks usage
  status 415
on chat asks prefill
  status 416
on any path "/v1/files/*" method GET
  status 417
on embeddings moderations
  status 418
on responses asks schema
  status 420
`)
	for _, c := range []struct{ want, path, body, header string }{
		{"410", chatPath, `{"model":"gpt-5-mini","stream":true}`, "X-Tier: golden"},
		{"200", chatPath, `{"model":"gpt-5-mini","stream":true}`, "X-Tier: silver"},
		{"200", chatPath, `{"model":"gpt-5","stream":true}`, "X-Tier: gold"},
		{"411", chatPath, `{"model":"m"}`, "A: b"},
		{"200", chatPath, `{"model":"m"}`, "A: b"},
		{"412", chatPath, `{"model":"needles"}`, "A: b"},
		{"413", "/openai/deployments/x/chat/completions", `{"tools":[{}]}`, "A: b"},
		{"200", chatPath, `{"tools":[]}`, "A: b"},
		{"414", chatPath, `{"response_format":{"type":"json_schema","json_schema":{"schema":{}}}}`, "A: b"},
		{"415", chatPath, `{"stream_options":{"include_usage":true}}`, "A: b"},
		{"416", chatPath, `{"messages":[{"role":"user"},{"role":"assistant"}]}`, "A: b"},
		{"404", "/v1/files/x", `{}`, "A: b"},
		{"418", "/v1/embeddings", `{}`, "A: b"},
		{"418", "/v1/moderations", `{}`, "A: b"},
		{"420", "/v1/responses", `{"text":{"format":{"type":"json_schema","schema":{}}}}`, "A: b"},
	} {
		require.Equal(t, c.want, statusOf(ask(t, p, c.path, c.body, c.header)), "%+v", c)
	}
	number := p.Count() + 1
	c := dial(t, p)
	c.send("GET /v1/files/x HTTP/1.1\r\nHost: x\r\n\r\n")
	require.Equal(t, "417", statusOf(c.answered(p, number)))
}

func TestWildcard(t *testing.T) {
	for _, c := range []struct {
		pattern, text string
		want          bool
	}{
		{"a", "a", true},
		{"a", "ab", false},
		{"*", "", true},
		{"a*", "a", true},
		{"*a", "ba", true},
		{"a*b*c", "axxbyyc", true},
		{"a*b*c", "acb", false},
		{"ab*ba", "aba", false},
		{"a**c", "abc", true},
	} {
		require.Equal(t, c.want, wildcard(c.pattern, c.text), "%+v", c)
	}
}
