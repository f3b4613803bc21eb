package conformance_test

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/sdk/conformance"
	interlock "github.com/interlock-gateway/interlock/sdk/go"
	"github.com/interlock-gateway/interlock/sdk/guests/go/echo"
)

// spoilt is the reference guest with something done to it.
func spoilt(change func(p *interlock.Plugin)) conformance.Plugin {
	return conformance.Native(echo.Manifest, func(config []byte) (interlock.Plugin, error) {
		p, err := echo.New(config)
		if err == nil {
			change(&p)
		}
		return p, err
	})
}

// requests changes the provider's request behind the plugin's back.
func requests(change func(q *interlock.Request)) conformance.Plugin {
	return spoilt(func(p *interlock.Plugin) {
		request := p.Request
		p.Request = func(c *interlock.Call, body []byte, out *interlock.Request) error {
			err := request(c, body, out)
			change(out)
			return err
		}
	})
}

// answers replaces a text in whole answers.
func answers(old, new string) conformance.Plugin {
	return spoilt(func(p *interlock.Plugin) {
		response := p.Response
		p.Response = func(c *interlock.Call, in *interlock.Answer, dst []byte) ([]byte, error) {
			dst, err := response(c, in, dst)
			return bytes.ReplaceAll(dst, []byte(old), []byte(new)), err
		}
	})
}

// chunks replaces a text in the chunks of streams.
func chunks(old, new string) conformance.Plugin {
	return spoilt(func(p *interlock.Plugin) {
		events := p.Events
		p.Events = func(c *interlock.Call, in []interlock.Frame, ended bool, out *interlock.Events) error {
			var inner interlock.Events
			inner.State = append(inner.State, c.State...)
			err := events(c, in, ended, &inner)
			out.State, out.Done = append(out.State[:0], inner.State...), inner.Done
			for _, data := range emitted(&inner) {
				out.Emit(bytes.ReplaceAll(data, []byte(old), []byte(new)))
			}
			return err
		}
	})
}

// emitted takes the events' data out of what Open would go on with.
func emitted(e *interlock.Events) (list [][]byte) {
	all := e.Open("")
	r := interlock.NewReader(all[:len(all)-8])
	for r.Len() > 0 {
		_ = r.Str()
		list = append(list, r.Bytes())
	}
	return list
}

func TestTheKitCatches(t *testing.T) {
	all := fixtures(t)
	for name, c := range map[string]struct {
		plugin conformance.Plugin
		want   string
	}{
		"another manifest": {conformance.Plugin{
			Manifest: []byte(strings.Replace(echo.Manifest, `"1.0.0"`, `"1.0.1"`, 1)),
			Open:     conformance.Native(echo.Manifest, echo.New).Open,
		}, "describe: is not the manifest"},
		"an operation that is missing": {spoilt(func(p *interlock.Plugin) { p.Classify = nil }), "classify is unsupported"},
		"no configuration refused":     {conformance.Native(echo.Manifest, func([]byte) (interlock.Plugin, error) { return echo.New([]byte("{}")) }), "configure: accepts"},
		"a trap": {spoilt(func(p *interlock.Plugin) {
			p.Classify = func(*interlock.Call, *interlock.Answer) interlock.Failure { panic("no") }
		}), "has no result: panic"},
		"an unknown class": {spoilt(func(p *interlock.Plugin) {
			p.Classify = func(*interlock.Call, *interlock.Answer) interlock.Failure {
				return interlock.Failure{Class: "cosmic_ray"}
			}
		}), `there is no class "cosmic_ray"`},
		"a header not declared":   {requests(func(q *interlock.Request) { q.Set("x-secret", "1") }), "x-secret"},
		"a header with a newline": {requests(func(q *interlock.Request) { q.Set("echo-version", "1\r\nhost: evil") }), "a control character"},
		"a path that is a URL":    {requests(func(q *interlock.Request) { q.Path = "//evil.example/" }), "the path is"},
		"a path that climbs":      {requests(func(q *interlock.Request) { q.Path = "/v1/%2E%2e/keys" }), "leaves its place"},
		"a body that is not JSON": {requests(func(q *interlock.Request) { q.Body = append(q.Body, '}') }), "the body is not JSON"},
		"a large state":           {requests(func(q *interlock.Request) { q.State = make([]byte, 5000) }), "a state of 5000 bytes"},
		"a dropped parameter": {spoilt(func(p *interlock.Plugin) {
			request := p.Request
			p.Request = func(c *interlock.Call, body []byte, out *interlock.Request) error {
				return request(c, bytes.Replace(body, []byte(`,"no_plugin_has_this_parameter":1`), nil, 1), out)
			}
		}), "is dropped"},
		"a memory": {spoilt(func(p *interlock.Plugin) {
			n, request := 0, p.Request
			p.Request = func(c *interlock.Call, body []byte, out *interlock.Request) error {
				err := request(c, body, out)
				if n++; n%2 == 0 {
					out.Body = append(out.Body, ' ')
				}
				return err
			}
		}), "no pure function"},
		"a finish of its own":      {answers(`"stop"`, `"end_turn"`), `"end_turn" is none of OpenAI's`},
		"usage that does not add":  {answers(`"total_tokens":13`, `"total_tokens":14`), "does not add up"},
		"more cached than sent":    {answers(`"cached_tokens":2`, `"cached_tokens":10`), "more tokens cached"},
		"arguments cut":            {answers(`[1,2]}`, `[1,`), "are not JSON"},
		"a call without an ID":     {answers(`"id":"c3"`, `"id":""`), "lacks its id"},
		"another text":             {answers("café", "tea"), "choices[0].message.content"},
		"a line feed":              {chunks(`"choices"`, "\n\"choices\""), "a line feed"},
		"an index that jumps":      {chunks(`"tool_calls":[{"index":1`, `"tool_calls":[{"index":2`), "tool call 2 comes after"},
		"no role":                  {chunks(`"role":"assistant",`, ""), "begins without a role"},
		"usage among the choices":  {chunks(`[],"usage"`, `[{"index":0,"delta":{}}],"usage"`), "usage and choices"},
		"a stream of another text": {chunks("Yes", "No"), "stream against whole"},
		"a stream that goes on": {
			chunks(`"delta":{},"finish_reason":"stop"`, `"delta":{},"finish_reason":"stop"},{"index":0,"delta":{"content":"x"}`),
			"goes on after its finish_reason",
		},
		"a stream without an end": {spoilt(func(p *interlock.Plugin) {
			events := p.Events
			p.Events = func(c *interlock.Call, in []interlock.Frame, ended bool, out *interlock.Events) error {
				err := events(c, in, ended, out)
				out.Done = false
				return err
			}
		}), "not whole at the stream's end"},
		"batches that show": {spoilt(func(p *interlock.Plugin) {
			events := p.Events
			p.Events = func(c *interlock.Call, in []interlock.Frame, ended bool, out *interlock.Events) error {
				if len(in) > 1 {
					in = in[1:]
				}
				return events(c, in, ended, out)
			}
		}), "give another answer"},
		"a state that stays at home": {spoilt(func(p *interlock.Plugin) {
			events := p.Events
			var kept []byte
			p.Events = func(c *interlock.Call, in []interlock.Frame, ended bool, out *interlock.Events) error {
				if len(c.State) == 0 {
					kept = nil
				}
				at := *c
				at.State = kept
				err := events(&at, in, ended, out)
				kept = append([]byte(nil), out.State...)
				return err
			}
		}), ""},
		"half an answer": {spoilt(func(p *interlock.Plugin) {
			response := p.Response
			p.Response = func(c *interlock.Call, in *interlock.Answer, dst []byte) ([]byte, error) {
				at := *in
				if !bytes.HasSuffix(bytes.TrimSpace(in.Body), []byte("}")) {
					at.Body = []byte(`{"end":"done"}`)
				}
				return response(c, &at, dst)
			}
		}), "is taken for"},
		"a reason in prose": {spoilt(func(p *interlock.Plugin) {
			p.GuardRequest = func(_ *interlock.Call, _ *interlock.Subject, _ []byte, out *interlock.Verdict) error {
				out.Action, out.Reason = interlock.Refuse, "Because I say so."
				return nil
			}
		}), "is no code"},
	} {
		t.Run(name, func(t *testing.T) {
			r := conformance.Check(context.Background(), c.plugin, all)
			require.False(t, r.OK())
			require.Contains(t, r.String(), c.want)
		})
	}
}

func TestFixturesAreHeldToTheirFormat(t *testing.T) {
	for text, want := range map[string]string{
		"-- request.json --\n{}\n":                            "expects nothing",
		"-- request.json --\n{\n-- error.json --\n{}\n":       "request.json is not JSON",
		"-- what.json --\n{}\n":                               "no fixture has a part",
		"-- answer.head --\nOK\n-- failure.json --\n{}\n":     "no status",
		"-- answer.head --\n200\nx\n-- failure.json --\n{}\n": "no header",
		"-- stream.frames --\nname\n-- failure.json --\n{}\n": "has a name only",
		"-- context.json --\n[]\n-- failure.json --\n{}\n":    "context.json",
		"-- subject.json --\n\"\"\n-- failure.json --\n{}\n":  "subject.json",
	} {
		_, err := conformance.ParseFixture("x", []byte(text))
		require.ErrorContains(t, err, want, text)
	}
}

func TestACancelledCheckEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	r := conformance.Check(ctx, conformance.Native(echo.Manifest, echo.New), fixtures(t))
	require.Zero(t, r.Calls)
}
