package adapter_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/gateway/adapter"
	"github.com/interlock-gateway/interlock/gateway/openai"
	"github.com/interlock-gateway/interlock/gateway/wasm"
	"github.com/interlock-gateway/interlock/plugins"
	"github.com/interlock-gateway/interlock/plugins/plugintest"
)

// eachBuild runs a benchmark on the native build and on the module of the anthropic adapter: what
// the sandbox costs is the difference.
func eachBuild(b *testing.B, run func(b *testing.B, g *adapter.Guest)) {
	const name = "anthropic"
	src, ok := plugins.Native(name)
	require.True(b, ok)
	m, err := wasm.ParseManifest([]byte(src.Manifest))
	require.NoError(b, err)
	b.Run("native", func(b *testing.B) {
		native, err := adapter.NewNative(name, src.Manifest, src.New, nil)
		require.NoError(b, err)
		run(b, adapter.NewGuest("native:"+name, native, m, 0))
	})
	module := plugintest.Module(b, name)
	b.Run("wasm", func(b *testing.B) {
		loaded, err := wasm.Load(context.Background(), wasm.Options{Name: name, Module: module})
		require.NoError(b, err)
		defer loaded.Close(context.Background())
		run(b, adapter.NewGuest("plugin:"+name, loaded, loaded.Manifest(), 0))
	})
}

// chatOf is a chat of about n bytes: turns of a conversation and two tools.
func chatOf(n int) string {
	const tool = `{"type":"function","function":{"name":"get_weather","description":"The weather of a city.","parameters":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}}}`
	turn := `{"role":"user","content":"Some text of a caller, with \"quotes\" in it."},{"role":"assistant","content":"And what the model said to that."},`
	head, tail := `{"model":"m","max_tokens":256,"temperature":0.5,"tools":[`+tool+`],"messages":[`, `{"role":"user","content":"And now?"}]}`
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

func benchmarkRequest(b *testing.B, body string) {
	eachBuild(b, func(b *testing.B, g *adapter.Guest) {
		dst := make([]byte, 0, 2*len(body))
		b.ReportAllocs()
		b.SetBytes(int64(len(body)))
		for b.Loop() {
			c := callOf(body, false)
			if _, err := g.Request(dst, c); err != nil {
				b.Fatal(err)
			}
			c.Release()
		}
	})
}

func BenchmarkRequest4KiB(b *testing.B)       { benchmarkRequest(b, chatOf(4<<10)) }
func BenchmarkRequest64KiB(b *testing.B)      { benchmarkRequest(b, chatOf(64<<10)) }
func BenchmarkRequestImage20KiB(b *testing.B) { benchmarkRequest(b, imageOf(20<<10)) }
func BenchmarkRequestImage20MiB(b *testing.B) { benchmarkRequest(b, imageOf(20<<20)) }

func BenchmarkEvents1(b *testing.B) { benchmarkEvents(b, 1) }
func BenchmarkEvents8(b *testing.B) { benchmarkEvents(b, 8) }

// benchmarkEvents reads a stream whose text comes n events at a time; ns/event is what one costs.
func benchmarkEvents(b *testing.B, n int) {
	const head = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"msg_1\",\"type\":\"message\",\"role\":\"assistant\",\"content\":[],\"usage\":{\"input_tokens\":12,\"output_tokens\":1}}}\n\n" +
		"event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n"
	const delta = "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\" some words\"}}\n\n"
	batch := []byte(strings.Repeat(delta, n))
	eachBuild(b, func(b *testing.B, g *adapter.Guest) {
		c := callOf(chatOf(200), true)
		defer c.Release()
		_, err := g.Request(nil, c)
		require.NoError(b, err)
		events := g.Events(c)
		defer events.Release()
		var ev openai.Event
		drain := func() (heard int) {
			for {
				ok, err := events.Next(&ev)
				if err != nil {
					b.Fatal(err)
				}
				if !ok {
					return heard
				}
				heard++
			}
		}
		events.Feed([]byte(head))
		drain()
		b.ReportAllocs()
		for b.Loop() {
			events.Feed(batch)
			if heard := drain(); heard != n {
				b.Fatal(fmt.Sprint(heard, " events"))
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/event")
	})
}
