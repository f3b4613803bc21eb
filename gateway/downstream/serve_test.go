package downstream

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/gateway/flow"
	"github.com/interlock-gateway/interlock/gateway/openai"
)

func TestPaths(t *testing.T) {
	s := open(t, newDouble(), Options{OpenAPI: []byte(`{"openapi":"3.1.0"}`)})
	for _, c := range []struct{ method, path, body string }{
		{"GET", "/v1/models", `{"object":"list"}`},
		{"GET", "/v1/models/gpt-5-mini", `{"id":"gpt-5-mini"}`},
		{"GET", "/v1/models/org%2Fmodel", `{"id":"org/model"}`},
		{"GET", "/v1/models/org/model", `{"id":"org/model"}`},
		{"GET", "/v1/models/gpt%20x?a=b", `{"id":"gpt x"}`},
		{"GET", "/interlock/v1/requests/req_1", `{"request":"req_1"}`},
		{"GET", "/openapi.json", `{"openapi":"3.1.0"}`},
		{"HEAD", "/v1/models", ""},
	} {
		t.Run(c.method+" "+c.path, func(t *testing.T) {
			conn := s.dial(t)
			r := bufio.NewReader(conn)
			for range 2 { // on one connection
				_, err := io.WriteString(conn, strings.Replace(get(c.path), "GET", c.method, 1))
				require.NoError(t, err)
				resp, err := http.ReadResponse(r, &http.Request{Method: c.method})
				require.NoError(t, err)
				body, err := io.ReadAll(resp.Body)
				require.NoError(t, err)
				require.Equal(t, 200, resp.StatusCode)
				require.Equal(t, c.body, string(body))
				require.NotEmpty(t, resp.Header.Get("X-Request-Id"))
				require.Equal(t, "application/json", resp.Header.Get("Content-Type"))
				require.Empty(t, resp.Header.Get("Server"))
			}
		})
	}
	for _, e := range openai.Endpoints() {
		conn := s.dial(t)
		resp, body := say(t, conn, bufio.NewReader(conn), post(e.Path(), "ab"))
		require.Equal(t, 200, resp.StatusCode, body)
	}
}

func TestUnknownPaths(t *testing.T) {
	s := open(t, newDouble(), Options{})
	conn := s.dial(t)
	r := bufio.NewReader(conn)
	for _, path := range []string{
		"/", "/v1", "/v1/", "/v1/models/", "/v1/chat", "/v1/chat/completions/", "/v1//chat/completions", "/v1/models/%zz",
		"/interlock/v1/requests/", "/interlock/v1/requests/a/b", "/openapi.json", "/V1/models",
	} {
		resp, body := say(t, conn, r, get(path))
		refusedWith(t, resp, body, 404, "not_found")
		require.False(t, resp.Close, "the connection can go on")
	}
	resp, body := say(t, conn, r, get("/v1/models/nobody"))
	refusedWith(t, resp, body, 404, "model_not_found")
	resp, body = say(t, conn, r, get("/interlock/v1/requests/nobody"))
	refusedWith(t, resp, body, 404, "not_found")
	resp, body = say(t, conn, r, post("/v1/messages", "{}"))
	refusedWith(t, resp, body, 404, "not_found")
	require.True(t, resp.Close, "a body is left")
}

func TestMethods(t *testing.T) {
	s := open(t, newDouble(), Options{OpenAPI: []byte("{}")})
	for path, allow := range map[string]string{
		chat: "POST", "/v1/models": "GET, HEAD", "/v1/models/x": "GET, HEAD", "/interlock/v1/requests/x": "GET, HEAD",
		"/openapi.json": "GET, HEAD",
	} {
		for _, method := range []string{"PUT", "DELETE", "OPTIONS", "TRACE", "PATCH", "BREW"} {
			conn := s.dial(t)
			resp, body := say(t, conn, bufio.NewReader(conn), strings.Replace(get(path), "GET", method, 1))
			refusedWith(t, resp, body, 405, "invalid_request")
			require.Equal(t, allow, resp.Header.Get("Allow"))
		}
	}
}

// TestExchange: what the flow gets and what the caller gets.
func TestExchange(t *testing.T) {
	d := newDouble()
	d.run = func(x *script) *flow.Reply {
		require.Equal(t, openai.Embeddings, x.endpoint)
		require.Equal(t, `{"a":1}`, string(x.body))
		require.Equal(t, "42", string(x.head.Peek("interlock-deadline")))
		require.Nil(t, x.head.Peek("x-nothing"))
		require.WithinDuration(t, time.Now(), x.received, soon)
		r := jsonReply(`{"ok":true}`)
		r.Status = 429
		r.Header = append(r.Header, flow.Field{Name: "retry-after", Value: "7"}, flow.Field{Name: "interlock-route", Value: "a/b\r\nx-evil: 1"})
		return r
	}
	s := open(t, d, Options{})
	conn := s.dial(t)
	resp, body := say(t, conn, bufio.NewReader(conn), post("/v1/embeddings", `{"a":1}`, "Interlock-Deadline: 42"))
	require.Equal(t, 429, resp.StatusCode)
	require.Equal(t, `{"ok":true}`, body)
	require.Equal(t, "7", resp.Header.Get("Retry-After"))
	require.Equal(t, "req_of_the_double", resp.Header.Get("X-Request-Id"))
	require.Empty(t, resp.Header.Get("X-Evil"), "a value cannot start a header")
	require.EqualValues(t, len(body), resp.ContentLength)
}

// TestKeepAlive: requests of all sizes follow each other on one connection.
func TestKeepAlive(t *testing.T) {
	s := open(t, newDouble(), Options{})
	conn := s.dial(t)
	r := bufio.NewReader(conn)
	for _, n := range []int{0, 1, 2, 100, 9000, 70_000, 1 << 20, 3 << 20, 5, 0, 8192, 8193} {
		want := strings.Repeat("x", n)
		resp, body := say(t, conn, r, post(chat, want))
		require.Equal(t, 200, resp.StatusCode)
		require.Equal(t, `{"echo":"`+want+`"}`, body)
	}
}

// TestPipelining: answers come in order, and an answer does not wait for the next request.
func TestPipelining(t *testing.T) {
	d := newDouble()
	release := make(chan struct{})
	d.run = func(x *script) *flow.Reply {
		if string(x.body) == "second" {
			<-release
		}
		return jsonReply(string(x.body))
	}
	s := open(t, d, Options{})
	conn := s.dial(t)
	r := bufio.NewReader(conn)
	resp, body := say(t, conn, r, post(chat, "first")+post(chat, "second")+get("/v1/models"))
	require.Equal(t, 200, resp.StatusCode)
	require.Equal(t, "first", body)
	close(release)
	_, body = hear(t, r)
	require.Equal(t, "second", body)
	_, body = hear(t, r)
	require.Equal(t, `{"object":"list"}`, body)
}

// TestStream: each write of the flow is one flushed chunk, and the end is clean.
func TestStream(t *testing.T) {
	d := newDouble()
	step := make(chan string)
	d.run = streamReply
	d.pump = func(x *script, w io.Writer) error {
		for event := range step {
			if _, err := io.WriteString(w, event); err != nil {
				return err
			}
		}
		return nil
	}
	s := open(t, d, Options{})
	conn := s.dial(t)
	r := bufio.NewReader(conn)
	_, err := io.WriteString(conn, post(chat, "{}"))
	require.NoError(t, err)
	step <- "data: 1\n\n"
	resp, err := http.ReadResponse(r, nil)
	require.NoError(t, err)
	require.Equal(t, 200, resp.StatusCode)
	require.Equal(t, "text/event-stream", resp.Header.Get("Content-Type"))
	require.Equal(t, "no-cache", resp.Header.Get("Cache-Control"))
	require.Equal(t, "no", resp.Header.Get("X-Accel-Buffering"))
	require.Equal(t, []string{"chunked"}, resp.TransferEncoding)
	events := bufio.NewReader(resp.Body)
	for i := 1; i < 5; i++ {
		line, err := events.ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, fmt.Sprintf("data: %d\n", i), line)
		_, err = events.ReadString('\n')
		require.NoError(t, err)
		step <- fmt.Sprintf("data: %d\n\n", i+1)
	}
	close(step)
	rest, err := io.ReadAll(events)
	require.NoError(t, err)
	require.Equal(t, "data: 5\n\n", string(rest))
	resp2, body := say(t, conn, r, get("/v1/models"))
	require.Equal(t, 200, resp2.StatusCode, body)
}

// TestAbortedStream: an error of the flow ends the connection without the end of the body.
func TestAbortedStream(t *testing.T) {
	for name, end := range map[string]func() error{
		"error": func() error { return errors.New("cut") },
		"panic": func() error { panic("in the pump") },
	} {
		t.Run(name, func(t *testing.T) {
			d := newDouble()
			d.run = streamReply
			d.pump = func(x *script, w io.Writer) error {
				_, _ = io.WriteString(w, "data: 1\n\n")
				return end()
			}
			s := open(t, d, Options{})
			conn := s.dial(t)
			_, err := io.WriteString(conn, post(chat, "{}"))
			require.NoError(t, err)
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			require.NoError(t, err)
			body, err := io.ReadAll(resp.Body)
			require.Equal(t, "data: 1\n\n", string(body))
			require.ErrorIs(t, err, io.ErrUnexpectedEOF)
			require.Eventually(t, func() bool { return d.ended.Load() == 1 }, soon, time.Millisecond)
		})
	}
}

// TestHTTP10 : a caller that knows no chunks gets the bytes as they are, to the end of the
// connection, with the same headers.
func TestHTTP10(t *testing.T) {
	old := func(text, more string) string {
		return strings.Replace(strings.Replace(text, "HTTP/1.1", "HTTP/1.0", 1), "host:", more+"host:", 1)
	}
	t.Run("stream", func(t *testing.T) {
		d := newDouble()
		d.run = func(x *script) *flow.Reply {
			r := streamReply(x)
			r.Header = append(r.Header, flow.Field{Name: "interlock-route", Value: "a/b\r\nx-evil: 1"})
			return r
		}
		d.pump = func(x *script, w io.Writer) error {
			_, err := io.WriteString(w, "data: 1\n\n")
			_, err2 := io.WriteString(w, "data: "+string(x.body)+"\n\n")
			return errors.Join(err, err2)
		}
		s := open(t, d, Options{})
		for _, more := range []string{"", "connection: keep-alive\r\n"} {
			conn := s.dial(t)
			_, err := io.WriteString(conn, old(post(chat, "[body]"), more))
			require.NoError(t, err)
			all, err := io.ReadAll(conn)
			require.NoError(t, err)
			head, body, ok := strings.Cut(string(all), "\r\n\r\n")
			require.True(t, ok)
			require.Equal(t, "data: 1\n\ndata: [body]\n\n", body)
			require.Regexp(t, `(?s)^HTTP/1.1 200 OK\r\ndate: .* GMT\r\ncontent-type: text/event-stream\r\nx-request-id: req_of_the_double`+
				`\r\ninterlock-attempts: 1\r\ninterlock-route: a/b  x-evil: 1\r\ncache-control: no-cache\r\nx-accel-buffering: no\r\nconnection: close$`, head)
		}
	})
	t.Run("broken stream", func(t *testing.T) {
		d := newDouble()
		d.run = streamReply
		d.pump = func(x *script, w io.Writer) error { panic("in the pump") }
		s := open(t, d, Options{})
		conn := s.dial(t)
		_, err := io.WriteString(conn, old(post(chat, "[body]"), ""))
		require.NoError(t, err)
		_, err = io.ReadAll(conn)
		require.Error(t, err, "a reset tells it from a whole stream")
	})
	t.Run("whole", func(t *testing.T) {
		s := open(t, newDouble(), Options{})
		conn := s.dial(t)
		r := bufio.NewReader(conn)
		resp, body := say(t, conn, r, old(post(chat, "ab"), ""))
		require.Equal(t, 200, resp.StatusCode)
		require.Equal(t, `{"echo":"ab"}`, body)
		require.Empty(t, resp.TransferEncoding)
		closedNow(t, conn, r)
	})
	t.Run("whole, kept alive", func(t *testing.T) {
		s := open(t, newDouble(), Options{})
		conn := s.dial(t)
		r := bufio.NewReader(conn)
		for range 2 {
			resp, _ := say(t, conn, r, old(post(chat, "ab"), "connection: keep-alive\r\n"))
			require.Equal(t, 200, resp.StatusCode)
		}
	})
}

// TestCorrelation: a refusal, too, gives back the caller's own ID.
func TestCorrelation(t *testing.T) {
	s := open(t, newDouble(), Options{})
	conn := s.dial(t)
	r := bufio.NewReader(conn)
	for theirs, back := range map[string]string{"abc-1": "abc-1", "caf\xe9": "", strings.Repeat("x", 129): "", "": ""} {
		resp, _ := say(t, conn, r, get("/nothing", "x-request-id: "+theirs))
		require.Equal(t, 404, resp.StatusCode)
		require.Equal(t, back, resp.Header.Get("Interlock-Correlation-Id"))
	}
}

// TestPanics: a fault anywhere in the flow is one 500, and nothing of it reaches the caller.
func TestPanics(t *testing.T) {
	var hit func(where string)
	d := newDouble()
	d.run = func(x *script) *flow.Reply { hit("run"); return jsonReply("{}") }
	d.close = func(*script) { hit("close") }
	s := open(t, d, Options{})
	for _, where := range []string{"run", "close"} {
		hit = func(here string) {
			if here == where {
				var list []int
				list[len(here)] = 1
			}
		}
		conn := s.dial(t)
		r := bufio.NewReader(conn)
		resp, body := say(t, conn, r, post(chat, "{}"))
		if where == "run" {
			refusedWith(t, resp, body, 500, "internal_error")
			require.NotContains(t, body, "index out of range")
		} else {
			require.Equal(t, 200, resp.StatusCode, "the answer was whole")
		}
		require.Eventually(t, func() bool { return strings.Contains(s.log.String(), `"msg":"panic"`) }, soon, time.Millisecond)
		require.Contains(t, s.log.String(), "index out of range")
		require.Contains(t, s.log.String(), "serve_test.go", "with a stack")
	}
	hit = func(string) { panic("text of a caller") }
	conn := s.dial(t)
	resp, body := say(t, conn, bufio.NewReader(conn), post(chat, "{}"))
	refusedWith(t, resp, body, 500, "internal_error")
	require.NotContains(t, s.log.String(), "text of a caller")
	hit = func(string) {}
	conn = s.dial(t)
	resp, _ = say(t, conn, bufio.NewReader(conn), post(chat, "{}"))
	require.Equal(t, 200, resp.StatusCode, "the process lives")
}

// TestPanicInAuthentication: the hooks that the library calls are covered too.
func TestPanicInAuthentication(t *testing.T) {
	d := newDouble()
	d.keys = func(flow.Head) { panic("in authentication") }
	s := open(t, d, Options{})
	for _, request := range []string{post(chat, "{}"), post(chat, "{}", "expect: 100-continue"), get("/v1/models")} {
		conn := s.dial(t)
		resp, body := say(t, conn, bufio.NewReader(conn), request)
		refusedWith(t, resp, body, 500, "internal_error")
	}
}
