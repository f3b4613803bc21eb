package interlock_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/sdk/abi/vectors"
	interlock "github.com/interlock-gateway/interlock/sdk/go"
	"github.com/interlock-gateway/interlock/sdk/guests/go/echo"
)

func input(parts ...any) []byte {
	var c, w interlock.Writer
	c.U32(1)
	c.U64(42)
	c.Str("chat_completions")
	c.Str("model")
	c.Str("request")
	w.Bytes(c)
	for _, p := range parts {
		switch p := p.(type) {
		case string:
			w.Str(p)
		case int:
			w.U32(uint32(p))
		}
	}
	return w
}

func guest(t *testing.T, p interlock.Plugin) *interlock.Guest {
	g := interlock.NewGuest("{}", func([]byte) (interlock.Plugin, error) { return p, nil })
	out, failed := g.Call(interlock.OpConfigure, input("{}"), nil)
	require.False(t, failed, "%q", out)
	return g
}

func failure(t *testing.T, out []byte) (code, message, param string, status uint32) {
	r := interlock.NewReader(out)
	code, message, param, status = r.Str(), r.Str(), r.Str(), r.U32()
	require.True(t, r.OK())
	return code, message, param, status
}

func TestErrors(t *testing.T) {
	g := interlock.NewGuest("{}", func(config []byte) (interlock.Plugin, error) {
		if string(config) != "{}" {
			return interlock.Plugin{}, errors.New("bad")
		}
		return interlock.Plugin{
			Request: func(c *interlock.Call, _ []byte, _ *interlock.Request) error {
				require.Equal(t, "model", c.Model)
				require.True(t, c.Stream)
				require.Equal(t, uint64(42), c.Now)
				return &interlock.Error{Code: "bad_request", Message: "m", Param: "p", Status: 422}
			},
			Classify: func(*interlock.Call, *interlock.Answer) interlock.Failure { return interlock.Failure{} },
		}, nil
	})
	call := func(op uint32, in []byte) (code, param string, status uint32) {
		out, failed := g.Call(op, in, []byte("before"))
		require.True(t, failed)
		require.Equal(t, "before", string(out[:6]))
		code, _, param, status = failure(t, out[6:])
		return code, param, status
	}
	code, _, _ := call(interlock.OpRequest, input("{}"))
	require.Equal(t, "internal", code, "nothing before configure")
	out, failed := g.Call(interlock.OpDescribe, input(), nil)
	require.False(t, failed, "describe needs no configuration")
	require.Equal(t, "\x02\x00\x00\x00{}", string(out))
	code, _, _ = call(interlock.OpConfigure, input("[]"))
	require.Equal(t, "config", code, "an error of the maker's is one of the configuration")
	code, _, _ = call(interlock.OpRequest, input("{}"))
	require.Equal(t, "internal", code)
	_, failed = g.Call(interlock.OpConfigure, input(""), nil)
	require.False(t, failed, "no configuration is an empty one")

	code, param, status := call(interlock.OpRequest, input("{}"))
	require.Equal(t, []any{"bad_request", "p", uint32(422)}, []any{code, param, status})
	for _, op := range []uint32{interlock.OpResponse, 9, 1 << 31} {
		code, _, _ = call(op, input("", 200, 0, ""))
		require.Equal(t, "unsupported", code)
	}
	for _, op := range []uint32{interlock.OpGuardRequest, interlock.OpGuardResponse} {
		code, _, _ = call(op, input("\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00", ""))
		require.Equal(t, "unsupported", code)
	}
	code, _, _ = call(interlock.OpEvents, input("", 0, 0))
	require.Equal(t, "unsupported", code)
	code, _, _ = call(interlock.OpGuardEvents, input("\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00", "", 0, 0))
	require.Equal(t, "unsupported", code)
}

func TestEventsFailWhatWasNotWhole(t *testing.T) {
	var result error
	g := guest(t, interlock.Plugin{Events: func(_ *interlock.Call, _ []interlock.Frame, ended bool, out *interlock.Events) error {
		out.Emit([]byte("{}"))
		out.EmitFunc(func(dst []byte) []byte { return append(dst, "[]"...) })
		out.Close(append(out.Open("name"), "1"...))
		out.Done = ended
		return result
	}})
	for _, c := range []struct {
		err   error
		ended int
		flags uint32
		class string
		fails string
	}{
		{nil, 0, 0, "", ""},
		{nil, 1, 1, "", ""},
		{&interlock.Failure{Class: "overloaded"}, 1, 2, "overloaded", ""},
		{interlock.Malformed("m"), 0, 2, "malformed_answer", ""},
		{interlock.Internal("i"), 0, 0, "", "internal"},
		{errors.New("e"), 0, 0, "", "internal"},
	} {
		result = c.err
		out, failed := g.Call(interlock.OpEvents, input("state", c.ended, 0), nil)
		if c.fails != "" {
			require.True(t, failed)
			code, _, _, _ := failure(t, out)
			require.Equal(t, c.fails, code)
			continue
		}
		require.False(t, failed)
		r := interlock.NewReader(out)
		require.Equal(t, c.flags, r.U32())
		require.Equal(t, "state", r.Str(), "a state that is not touched stays")
		require.Equal(t, 3, r.Count(8))
		require.Equal(t, []string{"", "{}", "", "[]", "name", "1"}, []string{r.Str(), r.Str(), r.Str(), r.Str(), r.Str(), r.Str()})
		if c.flags == 2 {
			require.Equal(t, c.class, r.Str())
		}
		require.True(t, r.OK())
	}
}

// Nothing that one call leaves may show in the next.
func TestNoCallSeesTheOneBefore(t *testing.T) {
	first := true
	g := guest(t, interlock.Plugin{
		Request: func(_ *interlock.Call, _ []byte, out *interlock.Request) error {
			if first {
				out.Path, out.Method, out.ContentType, out.Framing = "/a", "GET", "x", interlock.SSE
				out.Set("a", "b")
				out.State, out.Body = append(out.State, "s"...), append(out.Body, "b"...)
			}
			return nil
		},
		GuardRequest: func(_ *interlock.Call, s *interlock.Subject, _ []byte, out *interlock.Verdict) error {
			require.Equal(t, "k", s.Key)
			if first {
				out.Action, out.Reason, out.Message, out.Body = interlock.Refuse, "r", "m", append(out.Body, "b"...)
			}
			return nil
		},
	})
	subject := "\x01\x00\x00\x00k\x00\x00\x00\x00\x00\x00\x00\x00"
	full, _ := g.Call(interlock.OpRequest, input("{}"), nil)
	refused, _ := g.Call(interlock.OpGuardRequest, input(subject, "{}"), nil)
	require.Len(t, refused, 4+5+5+5)
	first = false
	empty, failed := g.Call(interlock.OpRequest, input("{}"), nil)
	require.False(t, failed)
	require.NotEqual(t, full, empty)
	r := interlock.NewReader(empty)
	require.Equal(t, []any{uint32(0), "POST", "", uint32(0), "application/json", uint32(0), "", ""},
		[]any{r.U32(), r.Str(), r.Str(), r.U32(), r.Str(), r.U32(), r.Str(), r.Str()})
	passed, _ := g.Call(interlock.OpGuardRequest, input(subject, "{}"), nil)
	require.Equal(t, make([]byte, 16), passed)
}

// A plugin may return its input, or what is its own, as it is: neither is written to later.
func TestReturnedMemoryIsLeftAlone(t *testing.T) {
	own := []byte("own memory")
	header := []interlock.Field{{Name: "a", Value: "b"}, {Name: "c", Value: "d"}}
	asIs := true
	g := guest(t, interlock.Plugin{
		Request: func(_ *interlock.Call, body []byte, out *interlock.Request) error {
			if asIs {
				out.Body, out.State, out.Header = body, own, header[:1]
				return nil
			}
			out.Set("x", "y")
			out.State, out.Body = append(out.State, "state"...), append(out.Body, "body"...)
			return nil
		},
		Response: func(_ *interlock.Call, in *interlock.Answer, dst []byte) ([]byte, error) {
			if asIs {
				return in.Body, nil
			}
			return append(dst, "answer"...), nil
		},
		Events: func(c *interlock.Call, _ []interlock.Frame, _ bool, out *interlock.Events) error {
			if asIs {
				out.State = c.State
				return nil
			}
			out.State = append(out.State[:0], "another"...)
			return nil
		},
	})
	inputs := map[uint32][]byte{
		interlock.OpRequest: input("the caller's body"), interlock.OpResponse: input("", 200, 0, "the provider's answer"),
		interlock.OpEvents: input("the state before", 0, 0),
	}
	for op, in := range inputs {
		before := string(in)
		for _, asIs = range []bool{true, false, true} {
			out, failed := g.Call(op, in, nil)
			require.False(t, failed)
			require.Equal(t, asIs, strings.Contains(string(out), "the "), "%q", out)
			require.Equal(t, before, string(in))
		}
	}
	require.Equal(t, "own memory", string(own))
	require.Equal(t, []interlock.Field{{Name: "a", Value: "b"}, {Name: "c", Value: "d"}}, header)
}

// Every input of the vectors, cut at every byte, is answered: with an error or with a result.
func TestInputCutShort(t *testing.T) {
	all, err := vectors.All()
	require.NoError(t, err)
	g := interlock.NewGuest(echo.Manifest, echo.New)
	_, failed := g.Call(interlock.OpConfigure, input("{}"), nil)
	require.False(t, failed)
	for i := range all {
		if all[i].Op == interlock.OpConfigure {
			continue
		}
		for cut := range all[i].In {
			_, _ = g.Call(all[i].Op, all[i].In[:cut:cut], nil)
		}
	}
}

func FuzzGuest(f *testing.F) {
	all, err := vectors.All()
	require.NoError(f, err)
	for i := range all {
		f.Add(all[i].Op, all[i].In)
	}
	g := interlock.NewGuest(echo.Manifest, echo.New)
	f.Fuzz(func(t *testing.T, op uint32, in []byte) {
		_, _ = g.Call(interlock.OpConfigure, input("{}"), nil)
		before := string(in)
		out, failed := g.Call(op, in, nil)
		again, failedAgain := g.Call(op, in, nil)
		require.Equal(t, failed, failedAgain)
		require.Equal(t, string(out), string(again), "not a pure function")
		require.Equal(t, before, string(in), "the input was written to")
	})
}

func TestEventsAllocateNothing(t *testing.T) {
	g := interlock.NewGuest(echo.Manifest, echo.New)
	_, failed := g.Call(interlock.OpConfigure, input("{}"), nil)
	require.False(t, failed)
	start, failed := g.Call(interlock.OpEvents, input("", 0, 1, "", `{"t":"start","id":"e1"}`), nil)
	require.False(t, failed)
	r := interlock.NewReader(start)
	r.U32()
	state := r.Str()
	for name, in := range map[string][]byte{
		"text":      input(state, 0, 2, "", `{"t":"say","text":"hello, \"you\""}`, "", `{"t":"say","text":"é"}`),
		"a call":    input(state, 0, 2, "", `{"t":"call","id":"c1","name":"f"}`, "", `{"t":"with","part":"{\"a\":"}`),
		"the end":   input(state, 0, 1, "", `{"t":"end","end":"done","in":3,"out":4}`),
		"body ends": input(state, 1, 0),
	} {
		var out []byte
		require.Zero(t, testing.AllocsPerRun(100, func() { out, _ = g.Call(interlock.OpEvents, in, out[:0]) }), name)
		require.NotEmpty(t, out)
	}
}

func TestRetryAfter(t *testing.T) {
	const now = 784111777000 // Sun, 06 Nov 1994 08:49:37 GMT
	for _, c := range []struct {
		after, ms, date string
		want            uint64
		ok              bool
	}{
		{"7", "", "", 7000, true},
		{"0.25", "", "", 250, true},
		{"1.23456", "", "", 1234, true},
		{"7", "1500", "", 1500, true},
		{"7", "1500.7", "", 1500, true},
		{"7", "soon", "", 7000, true},
		{"Sun, 06 Nov 1994 08:50:37 GMT", "", "", 60_000, true},
		{"Sun, 06 Nov 1994 08:50:37 GMT", "", "Sun, 06 Nov 1994 08:50:36 GMT", 1000, true},
		{"Sun, 06 Nov 1994 08:00:00 GMT", "", "", 0, true},
		{"Thu, 29 Feb 1996 00:00:00 GMT", "", "Wed, 28 Feb 1996 23:59:59 GMT", 1000, true},
		{"Fri, 01 Mar 1996 00:00:00 GMT", "", "Thu, 29 Feb 1996 23:59:59 GMT", 1000, true},
		{"Sat, 01 Jan 2000 00:00:00 GMT", "", "Fri, 31 Dec 1999 23:59:59 GMT", 1000, true},
		{"", "", "", 0, false},
		{"-1", "", "", 0, false},
		{"1.", "", "", 0, false},
		{".5", "", "", 0, false},
		{"1.2.3", "", "", 0, false},
		{"99999999999999999999", "", "", 0, false},
		{"Sun, 06 Xxx 1994 08:49:37 GMT", "", "", 0, false},
		{"Sun, 06 Nov 1994 25:49:37 GMT", "", "", 0, false},
		{"Sun, 06 Nov 1994 08:49:37 CET", "", "", 0, false},
	} {
		a := interlock.Answer{Header: []interlock.Field{{Name: "retry-after", Value: c.after}, {Name: "retry-after-ms", Value: c.ms}, {Name: "date", Value: c.date}}}
		ms, ok := a.RetryAfter(now)
		require.Equal(t, c.ok, ok, c.after)
		require.Equal(t, c.want, ms, c.after)
	}
}

// A guest links neither fmt nor encoding/json nor reflect, nothing of the gateway, and stays
// small.
func TestWhatAGuestLinks(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a module")
	}
	const main = "github.com/interlock-gateway/interlock/sdk/guests/go/echo/wasm"
	out, err := wasip1("list", "-deps", main)
	require.NoError(t, err, "%s", out)
	for _, pkg := range strings.Fields(string(out)) {
		switch {
		case pkg == "fmt", pkg == "reflect", pkg == "embed", strings.HasPrefix(pkg, "encoding"), strings.HasPrefix(pkg, "net"), pkg == "os",
			strings.HasPrefix(pkg, "github.com/") && !strings.HasPrefix(pkg, "github.com/interlock-gateway/interlock/sdk/"):
			t.Errorf("a guest links %s", pkg)
		}
	}
	module := filepath.Join(t.TempDir(), "echo.wasm")
	out, err = wasip1("build", "-buildmode=c-shared", "-o", module, main)
	require.NoError(t, err, "%s", out)
	info, err := os.Stat(module)
	require.NoError(t, err)
	require.Less(t, info.Size(), int64(2_600_000))
	binary, err := os.ReadFile(module)
	require.NoError(t, err)
	require.NotContains(t, string(binary), "interlock\x03log", "an import that nobody calls")
}

func wasip1(args ...string) ([]byte, error) {
	cmd := exec.Command("go", args...)
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOFLAGS=")
	return cmd.CombinedOutput()
}
