package adapter

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/gateway/failure"
	"github.com/interlock-gateway/interlock/gateway/openai"
	"github.com/interlock-gateway/interlock/gateway/wasm"
	interlock "github.com/interlock-gateway/interlock/sdk/go"
)

const guestManifest = `{"name":"t","version":"1.0.0","abi":"1.0","kind":"adapter","operations":["request","response","events","classify"],
	"endpoints":["chat_completions"],"content_types":{"events":["text/event-stream"],"whole":["application/json"]},
	"request_headers":["t-version"],"response_headers":["t-kind"],"auth":["bearer"]}`

// guest makes an adapter of a plugin's functions, as their native build.
func guest(t *testing.T, p interlock.Plugin) *Guest {
	t.Helper()
	m, err := wasm.ParseManifest([]byte(guestManifest))
	require.NoError(t, err)
	run, err := NewNative("t", guestManifest, func([]byte) (interlock.Plugin, error) { return p, nil }, nil)
	require.NoError(t, err)
	return NewGuest("plugin:t", run, m, 1<<20)
}

func call(t *testing.T, body string) *Call {
	t.Helper()
	c := &Call{Request: &openai.Request{Endpoint: openai.ChatCompletions}, Body: []byte(body), Model: "up", ID: "req_1-1", Now: time.UnixMilli(1700000000123)}
	t.Cleanup(c.Release)
	return c
}

type head map[string]string

func (h head) Status() int { var n int; _, _ = fmt.Sscan(h[":status"], &n); return n }
func (h head) Header(name string) []byte {
	if v, ok := h[name]; ok {
		return []byte(v)
	}
	return nil
}

func TestGuestRequest(t *testing.T) {
	var seen interlock.Call
	g := guest(t, interlock.Plugin{Request: func(c *interlock.Call, body []byte, out *interlock.Request) error {
		seen = *c
		seen.Model, seen.Endpoint, seen.RequestID = strings.Clone(c.Model), strings.Clone(c.Endpoint), strings.Clone(c.RequestID)
		out.Path = "/v2/chat?x=1"
		out.Set("t-version", "7")
		out.State = append(out.State, "kept"...)
		out.Body = append(out.Body, body...)
		return nil
	}})
	image := strings.Repeat("QUJD", 20_000)
	c := call(t, `{"image":"data:image/png;base64,`+image+`"}`)
	s, err := g.Request([]byte{}, c)
	require.NoError(t, err)
	require.Equal(t, string(c.Body), string(s.Body))
	require.Equal(t, "/v2/chat?x=1", s.Path)
	require.Equal(t, []Field{{"t-version", "7"}}, s.Header)
	require.Equal(t, "application/json", s.ContentType)
	require.Equal(t, "kept", string(c.session.state))
	require.Equal(t, interlock.Call{Now: 1700000000123, Endpoint: "chat_completions", Model: "up", RequestID: "req_1-1"}, seen)
}

// What a plugin must not do to a request ends the call, names the part and shows no value.
func TestGuestRequestIsChecked(t *testing.T) {
	for name, at := range map[string]struct {
		shape func(*interlock.Request)
		says  string
	}{
		"a scheme":          {func(r *interlock.Request) { r.Path = "https://evil.example/secret" }, "does not begin with a slash"},
		"a host":            {func(r *interlock.Request) { r.Path = "//evil.example/secret" }, "another host"},
		"a step up":         {func(r *interlock.Request) { r.Path = "/a/../../secret" }, "step upwards"},
		"a step with more":  {func(r *interlock.Request) { r.Path = "/a/..;x=1/secret" }, "step upwards"},
		"an empty step":     {func(r *interlock.Request) { r.Path = "/a//secret" }, "empty step"},
		"an escaped NUL":    {func(r *interlock.Request) { r.Path = "/a/%00secret" }, "control character"},
		"an escaped step":   {func(r *interlock.Request) { r.Path = "/a/%2E%2e/secret" }, "step upwards"},
		"a line in a path":  {func(r *interlock.Request) { r.Path = "/a\r\nhost: secret" }, "must be escaped"},
		"a strange header":  {func(r *interlock.Request) { r.Set("t-other", "secret") }, "does not declare"},
		"a credential":      {func(r *interlock.Request) { r.Set("authorization", "secret") }, "does not declare"},
		"a line in a value": {func(r *interlock.Request) { r.Set("t-version", "1\r\nsecret: 1") }, "control character"},
		"no JSON":           {func(r *interlock.Request) { r.Body = append(r.Body[:0], "secret"...) }, "not JSON"},
		"a method":          {func(r *interlock.Request) { r.Method = "CONNECT secret" }, "method"},
		"a large state":     {func(r *interlock.Request) { r.State = append(r.State, make([]byte, 65<<10)...) }, "state of"},
		"a framing":         {func(r *interlock.Request) { r.Framing = 9 }, "framing 9"},
	} {
		t.Run(name, func(t *testing.T) {
			g := guest(t, interlock.Plugin{Request: func(_ *interlock.Call, _ []byte, out *interlock.Request) error {
				out.Path, out.Body = "/ok", append(out.Body, "{}"...)
				at.shape(out)
				return nil
			}})
			_, err := g.Request(nil, call(t, `{}`))
			broken, ok := errors.AsType[*Broken](err)
			require.True(t, ok, "%v", err)
			require.ErrorContains(t, broken, at.says)
			require.NotContains(t, broken.Error(), "secret")
		})
	}
}

func TestGuestRefuses(t *testing.T) {
	g := guest(t, interlock.Plugin{Request: func(*interlock.Call, []byte, *interlock.Request) error {
		return interlock.Unsupported("logit_bias", "not here")
	}})
	_, err := g.Request(nil, call(t, `{}`))
	require.Equal(t, &Refusal{Code: "unsupported_parameter", Message: "not here", Param: "logit_bias"}, err)

	g = guest(t, interlock.Plugin{Request: func(*interlock.Call, []byte, *interlock.Request) error {
		return &interlock.Error{Code: "bad_request", Message: "too many pages", Status: 413}
	}})
	_, err = g.Request(nil, call(t, `{}`))
	require.Equal(t, &Refusal{Code: "bad_request", Message: "too many pages", Status: 413}, err)

	g = guest(t, interlock.Plugin{Request: func(*interlock.Call, []byte, *interlock.Request) error { panic("secret") }})
	_, err = g.Request(nil, call(t, `{}`))
	f, ok := errors.AsType[*wasm.Failure](err)
	require.True(t, ok)
	require.Equal(t, wasm.Trapped, f.Reason)
}

func TestGuestAnswers(t *testing.T) {
	var seen []interlock.Field
	g := guest(t, interlock.Plugin{
		Response: func(_ *interlock.Call, in *interlock.Answer, dst []byte) ([]byte, error) {
			for _, f := range in.Header {
				seen = append(seen, interlock.Field{Name: strings.Clone(f.Name), Value: strings.Clone(f.Value)})
			}
			switch string(in.Body) {
			case "fail":
				return nil, &interlock.Failure{Class: "overloaded", Code: "c", Message: "m", Status: 529, RetryAfter: 1500, HasRetryAfter: true}
			case "odd":
				return nil, interlock.Malformed("no")
			}
			return append(dst, in.Body...), nil
		},
		Classify: func(_ *interlock.Call, in *interlock.Answer) interlock.Failure {
			return interlock.Failure{Class: interlock.RateLimited, Message: string(in.Body)}
		},
	})
	c := call(t, `{}`)
	h := head{":status": "200", "content-type": "application/json", "t-kind": "k", "set-cookie": "secret", "authorization": "secret"}
	got, err := g.Response([]byte("x"), c, h, []byte(`{"a":1}`))
	require.NoError(t, err)
	require.Equal(t, `x{"a":1}`, string(got))
	require.Equal(t, []interlock.Field{{Name: "content-type", Value: "application/json"}, {Name: "t-kind", Value: "k"}}, seen)

	_, err = g.Response(nil, c, h, []byte("fail"))
	failed, ok := errors.AsType[*Failed](err)
	require.True(t, ok)
	require.Equal(t, failure.Overloaded, failed.Class)
	require.Equal(t, 529, failed.Failure.Error.Status)
	require.Equal(t, 1500*time.Millisecond, failed.RetryAfter)

	_, err = g.Response(nil, c, h, []byte("odd"))
	require.ErrorIs(t, err, errUpstream)
	_, err = g.Response(nil, c, h, []byte("not json"))
	_, ok = errors.AsType[*Broken](err)
	require.True(t, ok)

	f := g.Classify(c, head{":status": "429"}, []byte("slow down"))
	require.Equal(t, failure.RateLimited, f.Class)
	require.Equal(t, "slow down", f.Error.Message)
}

// collect reads a stream that comes in pieces of n bytes.
func collect(g *Guest, c *Call, body string, n int) (events []string, err error) {
	d := g.Events(c)
	defer d.Release()
	var ev openai.Event
	for len(body) > 0 {
		k := min(n, len(body))
		d.Feed([]byte(body[:k]))
		body = body[k:]
		for {
			ok, err := d.Next(&ev)
			if err != nil {
				return events, err
			}
			if !ok {
				break
			}
			events = append(events, string(ev.Data))
		}
	}
	for {
		ok, err := d.Flush(&ev)
		if err != nil || !ok {
			return events, err
		}
		events = append(events, string(ev.Data))
	}
}

func TestGuestEvents(t *testing.T) {
	g := guest(t, interlock.Plugin{Events: func(c *interlock.Call, in []interlock.Frame, ended bool, out *interlock.Events) error {
		n := len(c.State)
		for _, f := range in {
			n++
			switch string(f.Data) {
			case "done":
				out.Done = true
			case "fail":
				out.Fail(interlock.Failure{Class: "rate_limited", Message: "later"})
			case "lines":
				out.Emit([]byte("a\nb"))
			case "odd":
				return interlock.Malformed("no")
			case "state":
				n = 70 << 10
			default:
				out.Emit(fmt.Appendf(nil, `{"n":%d,"d":%q}`, n, f.Data))
			}
		}
		if ended {
			out.Emit([]byte(`{"end":true}`))
		}
		out.State = append(out.State[:0], bytes.Repeat([]byte{1}, n)...)
		return nil
	}})
	run := func(body string, n int) ([]string, error) {
		c := call(t, `{}`)
		c.Request.Stream = true
		c.begin()
		return collect(g, c, body, n)
	}
	body := func(data ...string) string { return "data: " + strings.Join(data, "\n\ndata: ") + "\n\n" }
	one, two := `{"n":1,"d":"x"}`, `{"n":2,"d":"y"}`
	for n := range 40 {
		got, err := run(body("x", "y", "done"), n+1)
		require.NoError(t, err)
		require.Equal(t, []string{one, two, "[DONE]"}, got)

		got, err = run(body("x", "y"), n+1)
		require.NoError(t, err)
		require.Equal(t, []string{one, two, `{"end":true}`}, got)

		got, err = run(body("x", "fail", "y"), n+1)
		failed, ok := errors.AsType[*Failed](err)
		require.True(t, ok)
		require.Equal(t, failure.RateLimited, failed.Class)
		require.Equal(t, one, got[0])

		got, err = run(body("x", "odd"), n+1)
		failed, ok = errors.AsType[*Failed](err)
		require.True(t, ok, "%v", err)
		require.Equal(t, failure.MalformedAnswer, failed.Class)
		require.Equal(t, []string{one}, got)

		for _, bad := range []string{"lines", "state"} {
			_, err = run(body("x", bad), n+1)
			_, ok = errors.AsType[*Broken](err)
			require.True(t, ok, "%s: %v", bad, err)
		}
	}
}

func TestGuestEventsAllocateNothing(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector allocates on its own")
	}
	g := guest(t, interlock.Plugin{Events: func(c *interlock.Call, in []interlock.Frame, _ bool, out *interlock.Events) error {
		for _, f := range in {
			out.Emit(f.Data)
		}
		out.State = append(out.State[:0], c.State...)
		return nil
	}})
	c := call(t, `{}`)
	c.begin()
	d := g.Events(c)
	defer d.Release()
	piece := []byte("data: {\"a\":1}\n\ndata: {\"a\":2}\n\n")
	var ev openai.Event
	got := testing.AllocsPerRun(200, func() {
		d.Feed(piece)
		for range 3 {
			_, _ = d.Next(&ev)
		}
	})
	require.Zero(t, got)
}
