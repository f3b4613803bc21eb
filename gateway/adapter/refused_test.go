package adapter

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/gateway/openai"
	"github.com/interlock-gateway/interlock/gateway/wasm"
	interlock "github.com/interlock-gateway/interlock/sdk/go"
)

// counting is a runner that counts as *wasm.Plugin does.
type counting struct {
	Runner
	refused []string
}

func (c *counting) Refused(reason string) { c.refused = append(c.refused, reason) }

// Each result of a plugin that is not taken is counted once, by what is wrong with it.
func TestWhatIsRefusedIsCounted(t *testing.T) {
	text := func(into *[]byte, s string) { *into = append((*into)[:0], s...) }
	requests := map[string]func(*interlock.Request){
		"method": func(r *interlock.Request) { r.Method = "CONNECT" },
		"path":   func(r *interlock.Request) { r.Path = "/../x" },
		"header": func(r *interlock.Request) { r.Set("t-other", "x") },
		"body":   func(r *interlock.Request) { text(&r.Body, "no JSON") },
		"state":  func(r *interlock.Request) { r.State = make([]byte, 65<<10) },
		"result": func(r *interlock.Request) { r.Framing = 9 },
	}
	count := func(p interlock.Plugin, do func(*Guest, *Call)) []string {
		g := guest(t, p)
		run := &counting{Runner: g.run}
		g.run = run
		do(g, call(t, `{}`))
		return run.refused
	}
	for reason, shape := range requests {
		got := count(interlock.Plugin{Request: func(_ *interlock.Call, _ []byte, out *interlock.Request) error {
			out.Path, out.Body = "/ok", append(out.Body, "{}"...)
			shape(out)
			return nil
		}}, func(g *Guest, c *Call) {
			_, err := g.Request(nil, c)
			require.Error(t, err)
		})
		require.Equal(t, []string{reason}, got)
	}
	got := count(interlock.Plugin{Response: func(_ *interlock.Call, _ *interlock.Answer, dst []byte) ([]byte, error) {
		return append(dst, "no JSON"...), nil
	}}, func(g *Guest, c *Call) {
		_, err := g.Response(nil, c, head{":status": "200"}, []byte("{}"))
		require.Error(t, err)
	})
	require.Equal(t, []string{"body"}, got)
	got = count(interlock.Plugin{Events: func(_ *interlock.Call, _ []interlock.Frame, _ bool, out *interlock.Events) error {
		out.Emit([]byte("a\nb"))
		return nil
	}}, func(g *Guest, c *Call) {
		e := g.Events(c)
		defer e.Release()
		e.Feed([]byte("data: x\n\n"))
		_, err := e.Next(new(openai.Event))
		require.Error(t, err)
	})
	require.Equal(t, []string{"event"}, got)
	got = count(interlock.Plugin{Request: func(_ *interlock.Call, _ []byte, out *interlock.Request) error {
		out.Path, out.Body = "/ok", append(out.Body, "{}"...)
		return nil
	}}, func(g *Guest, c *Call) {
		_, err := g.Request(nil, c)
		require.NoError(t, err)
	})
	require.Empty(t, got)
}

// A panic of a native plugin may quote a prompt: its words stay out of the error.
func TestTheWordsOfANativePanic(t *testing.T) {
	const canary = "canary-1234567"
	panics := func(how func()) error {
		g := guest(t, interlock.Plugin{Request: func(*interlock.Call, []byte, *interlock.Request) error {
			how()
			return nil
		}})
		_, err := g.Request(nil, call(t, `{}`))
		f := new(wasm.Failure)
		require.ErrorAs(t, err, &f)
		require.Equal(t, wasm.Trapped, f.Reason)
		return err
	}
	require.NotContains(t, panics(func() { panic(canary) }).Error(), canary)
	require.ErrorContains(t, panics(func() { _ = slices.Clone([]int{1})[len(canary)] }), "index out of range")
}
