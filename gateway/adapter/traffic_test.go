package adapter_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/gateway/adapter"
	"github.com/interlock-gateway/interlock/gateway/openai"
	"github.com/interlock-gateway/interlock/gateway/wasm"
	"github.com/interlock-gateway/interlock/plugins"
	"github.com/interlock-gateway/interlock/plugins/plugintest"
	interlock "github.com/interlock-gateway/interlock/sdk/go"
	"github.com/interlock-gateway/interlock/sdk/guests/go/echo"
)

// traffic is what passes through one adapter: the same bytes for its native build and its module.
type traffic struct {
	plugin string
	// chat is a request of about n bytes.
	chat func(n int) string
	// whole is an answer of about a kilobyte.
	whole string
	// head begins a stream, delta is an event of text.
	head, delta string
}

var anthropicTraffic = traffic{
	plugin: "anthropic",
	chat: func(n int) string {
		return chatOf(n, `{"model":"m","max_tokens":256,"temperature":0.5,`)
	},
	whole: `{"id":"msg_01XFDUDYJgAACzvnptvVoYEL","type":"message","role":"assistant","model":"claude-sonnet-4-5","content":[{"type":"text","text":"` +
		strings.Repeat("A sentence of the model's, with \\\"quotes\\\" in it. ", 16) +
		`"},{"type":"tool_use","id":"toolu_01A09q90qw90lq917835lq9","name":"get_weather","input":{"city":"Paris"}}],` +
		`"stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":1012,"cache_creation_input_tokens":0,"cache_read_input_tokens":900,"output_tokens":231}}`,
	head: "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\"content\":[],\"usage\":{\"input_tokens\":12,\"output_tokens\":1}}}\n\n" +
		"event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n",
	delta: "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\" some words\"}}\n\n",
}

// echoTraffic is that of the reference guests, which are the same in Go and in C.
func echoTraffic(language string) traffic {
	return traffic{
		plugin: "echo-" + language,
		chat: func(n int) string {
			return chatOf(n, `{"model":"m","max_tokens":256,`)
		},
		whole: `{"id":"e1","at":1700000000,"say":"` + strings.Repeat("A sentence of the model's, with \\\"quotes\\\" in it. ", 16) + `","end":"done","in":9,"out":4,"known":2}`,
		head:  "data: {\"t\":\"start\",\"id\":\"e1\",\"at\":1700000000}\n\n",
		delta: "data: {\"t\":\"say\",\"text\":\" some words\"}\n\n",
	}
}

// chatOf is a chat of about n bytes: turns of a conversation and a tool, behind what begins it.
func chatOf(n int, begin string) string {
	const tool = `{"type":"function","function":{"name":"get_weather","description":"The weather of a city.","parameters":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}}}`
	turn := `{"role":"user","content":"Some text of a caller, with \"quotes\" in it."},{"role":"assistant","content":"And what the model said to that."},`
	head, tail := begin+`"tools":[`+tool+`],"messages":[`, `{"role":"user","content":"And now?"}]}`
	return head + strings.Repeat(turn, max(0, n-len(head)-len(tail))/len(turn)) + tail
}

// imageOf is a chat with an image of n bytes of base64.
func imageOf(n int) string {
	return `{"model":"m","max_tokens":256,"messages":[{"role":"user","content":[{"type":"text","text":"What is this?"},` +
		`{"type":"image_url","image_url":{"url":"data:image/png;base64,` + strings.Repeat("QUJD", n/4) + `"}}]}]}`
}

func callOf(body string, stream bool) *adapter.Call {
	return &adapter.Call{
		Request: &openai.Request{Endpoint: openai.ChatCompletions, Stream: stream}, Body: []byte(body),
		Model: "claude-sonnet-4-5", ID: "req_01-1", Now: time.UnixMilli(1_800_000_000_000),
	}
}

// okay is the head of an answer that went well.
type okay struct{}

func (okay) Status() int { return 200 }
func (okay) Header(name string) []byte {
	if name == "content-type" {
		return []byte("application/json")
	}
	return nil
}

// counted is a runner that adds up the work of a module's calls.
type counted struct {
	*wasm.Plugin
	units  int64
	calls  int
	memory int64 // of the largest instance, in bytes
}

func (c *counted) Call(wait wasm.Wait, op wasm.Op, in, dst []byte) ([]byte, error) {
	out, m, err := c.CallMeasured(wait, op, in, dst)
	c.units += m.Units
	c.calls++
	c.memory = max(c.memory, m.Memory)
	return out, err
}

// builds are an adapter's native build and its module.
type builds struct {
	traffic
	native, module *adapter.Guest
	work           *counted
}

func buildsOf(t testing.TB, of traffic) *builds {
	t.Helper()
	manifest, maker, module := sourceOf(t, of.plugin)
	m, err := wasm.ParseManifest([]byte(manifest))
	require.NoError(t, err)
	native, err := adapter.NewNative(of.plugin, manifest, maker, nil)
	require.NoError(t, err)
	loaded, err := wasm.Load(context.Background(), wasm.Options{Name: of.plugin, Module: module})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, loaded.Close(context.Background())) })
	b := &builds{traffic: of, native: adapter.NewGuest("native:"+of.plugin, native, m, 0), work: &counted{Plugin: loaded}}
	b.module = adapter.NewGuest("plugin:"+of.plugin, b.work, loaded.Manifest(), 0)
	return b
}

func sourceOf(t testing.TB, name string) (manifest string, maker interlock.Maker, module []byte) {
	t.Helper()
	if language, ok := strings.CutPrefix(name, "echo-"); ok {
		return echo.Manifest, echo.New, echoModule(t, language)
	}
	src, ok := plugins.Native(name)
	require.True(t, ok)
	return src.Manifest, src.New, plugintest.Module(t, name)
}

var echoes sync.Map // language → module

// echoModule builds the reference guest in a language, or skips where nothing can.
func echoModule(t testing.TB, language string) []byte {
	t.Helper()
	if testing.Short() {
		t.Skip("it builds a module")
	}
	if module, ok := echoes.Load(language); ok {
		return module.([]byte)
	}
	dir := t.TempDir()
	said, err := exec.Command("../../sdk/guests/build.sh", dir, language).CombinedOutput()
	require.NoError(t, err, "%s", said)
	module, err := os.ReadFile(filepath.Join(dir, "echo-"+language+".wasm"))
	if errors.Is(err, os.ErrNotExist) {
		t.Skipf("%s", said)
	}
	require.NoError(t, err)
	module, err = wasm.WriteManifest(module, []byte(echo.Manifest))
	require.NoError(t, err)
	echoes.Store(language, module)
	return module
}

// exchange is one call as the gateway makes it that is answered whole: the request's operation and
// the response's.
func (b *builds) exchange(t testing.TB, body string) func(*adapter.Guest) {
	var shaped, answered []byte
	whole := []byte(b.whole)
	return func(g *adapter.Guest) {
		c := callOf(body, false)
		defer c.Release()
		s, err := g.Request(shaped[:0], c)
		if err != nil {
			t.Fatal(err)
		}
		shaped = s.Body
		if answered, err = g.Response(answered[:0], c, okay{}, whole); err != nil {
			t.Fatal(err)
		}
	}
}

// request is the request's operation alone.
func (b *builds) request(t testing.TB, body string) func(*adapter.Guest) {
	shaped := make([]byte, 0, 2*len(body))
	return func(g *adapter.Guest) {
		c := callOf(body, false)
		defer c.Release()
		if _, err := g.Request(shaped, c); err != nil {
			t.Fatal(err)
		}
	}
}

// stream is a stream in the middle of its text, in each build; what it returns feeds n more events
// to one of them.
func (b *builds) stream(t testing.TB, n int) func(*adapter.Guest) {
	batch := []byte(strings.Repeat(b.delta, n))
	streams := map[*adapter.Guest]adapter.Events{}
	var ev openai.Event
	feed := func(g *adapter.Guest, what []byte) (heard int) {
		events := streams[g]
		events.Feed(what)
		for {
			ok, err := events.Next(&ev)
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				return heard
			}
			heard++
		}
	}
	for _, g := range []*adapter.Guest{b.native, b.module} {
		c := callOf(b.chat(200), true)
		_, err := g.Request(nil, c)
		require.NoError(t, err)
		streams[g] = g.Events(c)
		t.Cleanup(func() { streams[g].Release(); c.Release() })
		feed(g, []byte(b.head+b.delta))
	}
	return func(g *adapter.Guest) {
		if heard := feed(g, batch); heard != n {
			t.Fatal(heard, "events")
		}
	}
}
