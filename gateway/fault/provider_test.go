package fault

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
)

// ask makes one call on a connection of its own and reads its whole answer.
func ask(t testing.TB, p *Provider, path, body string, headers ...string) string {
	t.Helper()
	number := p.Count() + 1
	c := dial(t, p)
	c.post(path, body, headers...)
	return c.answered(p, number)
}

func statusOf(answer string) string {
	line, _, _ := strings.Cut(answer, "\r\n")
	return strings.Fields(line)[1]
}

func TestKeepAliveAndCalls(t *testing.T) {
	p := script(t, "on chat\n  once\n  answer \"one\"\n")
	c := dial(t, p)
	c.post(chatPath+"?v=1", chatBody, "X-Custom: a", "x-custom: b")
	require.Contains(t, c.answered(p, 1), `"content":"one"`)
	c.post(chatPath, streamBody)
	require.Contains(t, c.answered(p, 2), `"content":"Hello"`)
	require.NoError(t, c.conn.Close())
	call, err := p.WaitClosed(patient(t), 2)
	require.NoError(t, err)
	require.False(t, call.PeerClosed.IsZero())

	calls := p.Calls()
	require.Len(t, calls, 2)
	first := calls[0]
	require.Equal(t, []any{1, 1, 1, "POST", chatPath + "?v=1", "provider"}, []any{first.Number, first.Conn, first.ConnCall, first.Method, first.Path, first.Host})
	require.Equal(t, []string{"a", "b"}, first.Header["X-Custom"])
	require.Equal(t, chatBody, string(first.Body))
	require.Equal(t, int64(len(chatBody)), first.BodyLength)
	require.Equal(t, []any{"m", false, "p.fault:1", EndCompleted, PhaseAnswered}, []any{first.Model, first.Stream, first.Rule, first.End, first.Phase})
	require.Equal(t, []any{1, 2, true, "", false}, []any{call.Conn, call.ConnCall, call.Stream, call.Rule, call.PeerReset})
	open, accepted := p.Connections()
	require.Equal(t, []int{0, 1}, []int{open, accepted})
}

func TestRequestsInOneWrite(t *testing.T) {
	p := script(t, "")
	c := dial(t, p)
	c.send(post(chatPath, chatBody) + post(chatPath, chatBody) + post("/v1/moderations", `{"input":"x"}`))
	for n := 1; n <= 3; n++ {
		require.Equal(t, "200", statusOf(c.answered(p, n)))
	}
}

func TestBodyIsBounded(t *testing.T) {
	p := start(t, Options{MaxBody: 10})
	body := `{"model":"m","messages":[],"pad":"` + strings.Repeat("y", 3<<20) + `"}`
	require.Equal(t, "200", statusOf(ask(t, p, chatPath, body)))
	call := p.Calls()[0]
	require.Equal(t, body[:10], string(call.Body))
	require.Equal(t, int64(len(body)), call.BodyLength)
}

func TestPeerGone(t *testing.T) {
	config, pool, err := Certificate()
	require.NoError(t, err)
	s := MustParse("s", "on chat stream\n  role\n  stall\non chat\n  stall\n")
	for name, o := range map[string]Options{"plain": {Script: s}, "tls": {Script: s, TLS: config}} {
		for _, reset := range []bool{false, true} {
			for body, phase := range map[string]Phase{chatBody: PhaseBeforeHead, streamBody: PhaseInBody} {
				t.Run(fmt.Sprintf("%s/%v/%s", name, reset, phase), func(t *testing.T) {
					p := start(t, o)
					raw, err := net.Dial("tcp", p.Addr())
					require.NoError(t, err)
					conn := raw
					if o.TLS != nil {
						conn = tls.Client(raw, &tls.Config{RootCAs: pool, ServerName: "127.0.0.1"})
					}
					c := newPeer(t, conn)
					c.post(chatPath, body)
					call, err := p.WaitStalled(patient(t), 1)
					require.NoError(t, err)
					require.Equal(t, []any{EndRunning, true, phase}, []any{call.End, call.Stalled, call.Phase})
					c.read(call.Written) // bytes left unread would make a close a reset
					if reset {
						require.NoError(t, raw.(*net.TCPConn).SetLinger(0))
					}
					require.NoError(t, raw.Close())
					call, err = p.WaitClosed(patient(t), 1)
					require.NoError(t, err)
					require.Equal(t, []any{EndPeerClosed, phase, reset}, []any{call.End, call.Phase, call.PeerReset})
					require.False(t, call.PeerClosed.IsZero())
				})
			}
		}
	}
}

// TestPeerGoneBehindUnreadBytes: the peer's end is seen though more of its
// bytes wait than the provider reads.
func TestPeerGoneBehindUnreadBytes(t *testing.T) {
	p := script(t, "on chat\n  read head\n  stall\n")
	c := dial(t, p)
	c.send("POST " + chatPath + " HTTP/1.1\r\nHost: x\r\nContent-Length: 100000000\r\n\r\n" + strings.Repeat("z", readAhead+60<<10))
	_, err := p.WaitStalled(patient(t), 1)
	require.NoError(t, err)
	require.NoError(t, c.conn.Close())
	call, err := p.WaitClosed(patient(t), 1)
	require.NoError(t, err)
	require.Equal(t, EndPeerClosed, call.End)
}

func TestAnswerBeforeTheBody(t *testing.T) {
	p := script(t, "on chat\n  read head\n  status 413\n")
	c := dial(t, p)
	c.send("POST " + chatPath + " HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n")
	require.Equal(t, "413", statusOf(c.answered(p, 1)))
	text, end := c.rest()
	require.Equal(t, []string{"", "fin"}, []string{text, end})
}

func TestPeerGoneWhileSending(t *testing.T) {
	p := script(t, "")
	c := dial(t, p)
	c.send("POST " + chatPath + " HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nhalf")
	require.NoError(t, c.conn.Close())
	calls, err := p.WaitCalls(patient(t), 1)
	require.NoError(t, err)
	require.Equal(t, []any{EndPeerClosed, PhaseReading}, []any{calls[0].End, calls[0].Phase})
}

func TestExpectContinue(t *testing.T) {
	p := script(t, "")
	c := dial(t, p)
	c.send(fmt.Sprintf("POST %s HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: %d\r\n\r\n", chatPath, len(chatBody)))
	const goOn = "HTTP/1.1 100 Continue\r\n\r\n"
	require.Equal(t, goOn, c.read(int64(len(goOn))))
	c.send(chatBody)
	require.Equal(t, "200", statusOf(c.answered(p, 1)))
}

func TestMalformedRequests(t *testing.T) {
	p := script(t, "")
	for i, raw := range []string{"nonsense\r\n\r\n", "GET / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n", "GET / HTTP/1.1\r\nA: " + strings.Repeat("a", maxHead) + "\r\n\r\n"} {
		c := dial(t, p)
		c.send(raw)
		call, err := p.WaitEnd(patient(t), i+1)
		require.NoError(t, err)
		require.Equal(t, EndBadRequest, call.End)
		require.Equal(t, "400", statusOf(c.read(call.Written)))
	}
	c := dial(t, p)
	c.post(chatPath, "{not json")
	require.Equal(t, "400", statusOf(c.answered(p, 4)))
}

func TestTLS(t *testing.T) {
	config, pool, err := Certificate("127.0.0.1", "provider.test")
	require.NoError(t, err)
	p := start(t, Options{TLS: config, Script: MustParse("s", "on chat\n  once\n  answer \"safe\"\non chat\n  cut fin\n")})
	require.True(t, strings.HasPrefix(p.URL(), "https://127.0.0.1:"))
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, ServerName: "provider.test"}}
	defer transport.CloseIdleConnections()
	resp, err := (&http.Client{Transport: transport, Timeout: patience}).Post(p.URL()+chatPath, "application/json", strings.NewReader(chatBody))
	require.NoError(t, err)
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	require.Contains(t, string(body), "safe")

	_, err = tls.Dial("tcp", p.Addr(), &tls.Config{ServerName: "provider.test"}) // no trust
	require.Error(t, err)

	c := dialTLS(t, p, &tls.Config{RootCAs: pool, ServerName: "provider.test"})
	c.post(chatPath, chatBody)
	text, end := c.rest() // close_notify makes a clean end
	require.Equal(t, []string{"", "fin"}, []string{text, end})
}

func TestConnectionRules(t *testing.T) {
	config, pool, err := Certificate()
	require.NoError(t, err)
	p := start(t, Options{TLS: config, Script: MustParse("s", "on connection\n  once\n  cut reset\non connection\n  once\n  wire \"hi\"\n  cut fin\non connection\n  once\n  stall\n")})
	if conn, err := net.Dial("tcp", p.Addr()); err == nil { // the reset may come first
		text, end := newPeer(t, conn).rest()
		require.Equal(t, []string{"", "reset"}, []string{text, end})
	}
	text, end := dial(t, p).rest()
	require.Equal(t, []string{"hi", "fin"}, []string{text, end})

	// The third gets no handshake, until its peer gives up.
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	_, err = (&tls.Dialer{Config: &tls.Config{RootCAs: pool}}).DialContext(ctx, "tcp", p.Addr())
	require.ErrorIs(t, err, context.DeadlineExceeded)

	c := dialTLS(t, p, &tls.Config{RootCAs: pool})
	c.post(chatPath, chatBody)
	require.Equal(t, "200", statusOf(c.answered(p, 1)))
}

func TestCutAndStallAfterBytes(t *testing.T) {
	p := script(t, `
on chat stream model "fin"
  cut fin after 10
on chat model "reset"
  cut reset after 7
  json {"a": "0123456789"}
on chat model "none"
  cut fin after 0
on chat model "stall"
  stall after 5
  html "<html></html>"
on chat model "never"
  cut fin after 1MiB
  html "<html></html>"
`)
	c := dial(t, p)
	c.post(chatPath, `{"model":"fin","stream":true}`)
	text, end := c.rest()
	require.Equal(t, []string{"a\r\ndata: {\"id\r\n", "fin"}, []string{bodyOf(text), end})

	c = dial(t, p)
	c.post(chatPath, `{"model":"reset"}`)
	text, end = c.rest()
	require.Equal(t, []string{`{"a":"0`, "reset"}, []string{bodyOf(text), end})
	require.Contains(t, text, "Content-Length: 18\r\n")

	c = dial(t, p)
	c.post(chatPath, `{"model":"none"}`)
	text, end = c.rest()
	require.True(t, strings.HasSuffix(text, "\r\n\r\n"), text)
	require.Equal(t, "fin", end)

	c = dial(t, p)
	c.post(chatPath, `{"model":"stall"}`)
	call, err := p.WaitStalled(patient(t), 4)
	require.NoError(t, err)
	require.Equal(t, "<html", bodyOf(c.read(call.Written)))

	require.Equal(t, "<html></html>", bodyOf(ask(t, p, chatPath, `{"model":"never"}`)))
}

func TestFraming(t *testing.T) {
	p := script(t, `
on chat model short
  content-length 999
  json {"a": 1}
on chat model long
  content-length 3
  json {"a": 1}
on chat model true
  content-length 7
  json {"a": 1}
on chat model chunked
  chunked
  chunk 3
  json {"a": 1}
on chat model conflict
  header Content-Length 3
  chunked
  json {"a": 1}
on chat model close
  close
  json {"a": 1}
on chat model closing
  header connection close
  json {"a": 1}
on chat model until
  close-delimited
  json {"a": 1}
on chat model twice
  header Content-Type "text/plain"
  header X-A 1
  header X-A "${model}"
  json {"a": 1}
`)
	for model, want := range map[string]string{
		"short":    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 999\r\n\r\n{\"a\":1}fin",
		"long":     "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 3\r\n\r\n{\"a\":1}fin",
		"true":     "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 7\r\n\r\n{\"a\":1}",
		"chunked":  "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n{\"a\r\n3\r\n\":1\r\n1\r\n}\r\n0\r\n\r\n",
		"conflict": "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n7\r\n{\"a\":1}\r\n0\r\n\r\n",
		"close":    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 7\r\nConnection: close\r\n\r\n{\"a\":1}fin",
		"closing":  "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 7\r\nconnection: close\r\n\r\n{\"a\":1}fin",
		"until":    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n{\"a\":1}fin",
		"twice":    "HTTP/1.1 200 OK\r\nContent-Length: 7\r\nContent-Type: text/plain\r\nX-A: 1\r\nX-A: twice\r\n\r\n{\"a\":1}",
	} {
		c := dial(t, p)
		number := p.Count() + 1
		c.post(chatPath, `{"model":"`+model+`"}`)
		got := c.answered(p, number)
		if !p.settles(t, number) {
			more, end := c.rest()
			got += more + end
		}
		require.Equal(t, want, got, model)
	}
}

func TestEncodings(t *testing.T) {
	p := script(t, `
on chat model gzip
  encoding gzip
  answer "one two" usage 1 2
on chat model deflate
  encoding deflate
  answer "one two" usage 1 2
on chat model br
  encoding br
  answer "one two" usage 1 2
on chat model zstd
  encoding zstd
  answer "one two" usage 1 2
`)
	open := map[string]func(io.Reader) (io.Reader, error){
		"gzip":    func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) },
		"deflate": func(r io.Reader) (io.Reader, error) { return zlib.NewReader(r) },
		"br":      func(r io.Reader) (io.Reader, error) { return brotli.NewReader(r), nil },
		"zstd": func(r io.Reader) (io.Reader, error) {
			d, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1))
			return d, err
		},
	}
	for _, name := range codings {
		for _, stream := range []bool{false, true} {
			answer := ask(t, p, chatPath, fmt.Sprintf(`{"model":%q,"stream":%v}`, name, stream))
			require.Contains(t, answer, "Content-Encoding: "+name+"\r\n")
			body := bodyOf(answer)
			want := `"content":"one two"`
			if stream {
				body, want = unchunk(t, body), `{"content":" two"}`
			}
			r, err := open[name](strings.NewReader(body))
			require.NoError(t, err)
			text, err := io.ReadAll(r)
			require.NoError(t, err)
			require.Contains(t, string(text), want)
			if stream {
				require.True(t, bytes.HasSuffix(text, []byte("data: [DONE]\n\n")))
			}
		}
	}
}

func TestWireGarbageAndInterim(t *testing.T) {
	text := `
seed 5
on chat model garbage
  garbage 100
  cut fin
on chat model interim
  wire "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
  answer "late"
on chat model whole
  wire "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
on chat model after
  empty
  end
  wire "junk"
  cut reset
on chat model half
  wire "HTTP/1.1 200 OK\r\nContent-Le"
  cut fin
`
	garbage := map[string]bool{}
	for range 2 {
		p := script(t, text)
		c := dial(t, p)
		c.post(chatPath, `{"model":"garbage"}`)
		got, end := c.rest()
		require.Len(t, got, 100)
		require.Equal(t, "fin", end)
		garbage[got] = true

		got = ask(t, p, chatPath, `{"model":"interim"}`)
		require.True(t, strings.HasPrefix(got, "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\n"), got)

		c = dial(t, p)
		c.post(chatPath, `{"model":"whole"}`)
		require.Equal(t, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", c.answered(p, 3))
		require.True(t, p.settles(t, 3))

		c.post(chatPath, `{"model":"after"}`)
		got, end = c.rest()
		require.Equal(t, []string{"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\njunk", "reset"}, []string{got, end})
		call, err := p.WaitClosed(patient(t), 4)
		require.NoError(t, err)
		require.Equal(t, EndCompleted, call.End)

		c = dial(t, p)
		c.post(chatPath, `{"model":"half"}`)
		got, _ = c.rest()
		require.Equal(t, "HTTP/1.1 200 OK\r\nContent-Le", got)
	}
	require.Len(t, garbage, 1, "the same seed gives the same bytes")
}

func TestEndlessHead(t *testing.T) {
	p := script(t, "on chat\n  head endless\n")
	c := dial(t, p)
	c.post(chatPath, chatBody)
	require.NotContains(t, c.read(1<<20), "\r\n\r\n")
	require.NoError(t, c.conn.Close())
	call, err := p.WaitClosed(patient(t), 1)
	require.NoError(t, err)
	require.Equal(t, EndPeerClosed, call.End)
}

func TestTrickle(t *testing.T) {
	clock := newLeapClock()
	p := start(t, Options{Clock: clock, Script: MustParse("s", "on chat\n  trickle 10 every 1s\n  html \"0123456789\"\n")})
	got := ask(t, p, chatPath, chatBody)
	require.Equal(t, "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 10\r\n\r\n0123456789", got)
	require.Equal(t, time.Duration((len(got)+9)/10)*time.Second, p.Calls()[0].Took)
}

func TestPace(t *testing.T) {
	clock := newLeapClock()
	p := start(t, Options{Clock: clock, Script: MustParse("s", "on chat\n  pace 10ms\n  answer words 8\n")})
	ask(t, p, chatPath, streamBody) // role, 8 words, finish, done: 10 pauses
	ask(t, p, chatPath, chatBody)   // no stream, no pace
	require.Equal(t, []time.Duration{100 * time.Millisecond, 0}, []time.Duration{p.Calls()[0].Took, p.Calls()[1].Took})
}

func TestHugeEvent(t *testing.T) {
	p := script(t, "on chat\n  text fill 32MiB \"x\"\n  finish stop\n  done\n")
	c := dial(t, p)
	c.post(chatPath, streamBody, "Connection: close")
	got, end := c.rest()
	require.Equal(t, "fin", end)
	require.Contains(t, unchunk(t, bodyOf(got)), `"content":"`+strings.Repeat("x", 32<<20)+`"`)
}

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

func TestSetScript(t *testing.T) {
	p := script(t, "on chat stream\n  role\n  stall\non chat\n  once\n  status 500\n")
	running := dial(t, p)
	running.post(chatPath, streamBody)
	_, err := p.WaitStalled(patient(t), 1)
	require.NoError(t, err)
	idle := dial(t, p)
	idle.post(chatPath, chatBody)
	require.Equal(t, "500", statusOf(idle.answered(p, 2)))

	p.SetScript(MustParse("next", "on chat\n  until call 1\n  status 501\n"))
	idle.post(chatPath, chatBody) // also on a connection from before
	require.Equal(t, "501", statusOf(idle.answered(p, 3)))
	p.SetScript(nil)
	idle.post(chatPath, chatBody)
	require.Equal(t, "200", statusOf(idle.answered(p, 4)))
	require.Equal(t, EndRunning, p.Calls()[0].End)
	require.Equal(t, "next:1", p.Calls()[2].Rule)
}

func TestIdle(t *testing.T) {
	p := script(t, "idle 20ms\n")
	c := dial(t, p)
	c.post(chatPath, chatBody)
	answer := c.answered(p, 1)
	require.Equal(t, "200", statusOf(answer))
	text, end := c.rest()
	require.Equal(t, []string{"", "fin"}, []string{text, end})
}

func TestWaitsEnd(t *testing.T) {
	p, err := Start(Options{Script: MustParse("s", "on chat\n  delay 20s\n")})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = p.WaitCalls(ctx, 1)
	require.ErrorIs(t, err, context.Canceled)
	_, err = p.WaitEnd(ctx, 1)
	require.ErrorIs(t, err, context.Canceled)

	c := dial(t, p)
	c.post(chatPath, chatBody)
	_, err = p.WaitCalls(patient(t), 1)
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() {
		call, err := p.WaitClosed(context.Background(), 1)
		if err == nil && call.End != EndProviderClosed {
			err = fmt.Errorf("ended %s", call.End)
		}
		ended <- err
	}()
	never := make(chan error, 1)
	go func() {
		_, err := p.WaitCalls(context.Background(), 2)
		never <- err
	}()
	began := time.Now()
	require.NoError(t, p.Close())
	require.Less(t, time.Since(began), 10*time.Second)
	require.NoError(t, <-ended)
	require.ErrorIs(t, <-never, ErrClosed)
	require.NoError(t, p.Close(), "twice is fine")
	_, err = net.DialTimeout("tcp", p.Addr(), time.Second)
	require.Error(t, err)
}

// TestCloseEndsEverything closes a provider whose connections are in every
// state there is.
func TestCloseEndsEverything(t *testing.T) {
	p, err := Start(Options{Script: MustParse("s", "on chat stream\n  text fill 32MiB \"x\"\n  stall\non chat\n  stall\n")})
	require.NoError(t, err)
	dial(t, p)                      // says nothing
	dial(t, p).send("POST /v1")     // half a head
	dial(t, p).post(chatPath, "{}") // stalls
	unread := dial(t, p)            // does not read its answer
	unread.post(chatPath, streamBody)
	half := dial(t, p)
	half.send("POST " + chatPath + " HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n{")
	_, err = p.WaitCalls(patient(t), 2)
	require.NoError(t, err)
	require.NoError(t, p.Close())
	open, _ := p.Connections()
	require.Zero(t, open)
	for _, call := range p.Calls() {
		require.NotEqual(t, EndRunning, call.End)
	}
}

// TestHammer drives one provider from many goroutines while its script
// changes: every call is counted once, and every answer is whole or cut.
func TestHammer(t *testing.T) {
	p := script(t, "on chat\n  chance 20%\n  cut reset\non chat\n  chance 20%\n  status 503\n")
	const callers, each = 16, 25
	var wg sync.WaitGroup
	for i := range callers {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for n := range each {
				if i == 0 && n%5 == 0 {
					p.SetScript(MustParse("again", fmt.Sprintf("seed %d\non chat\n  every 3\n  cut fin\non chat\n  pace 1ms\n", n)))
				}
				conn, err := net.Dial("tcp", p.Addr())
				if err != nil {
					t.Error(err)
					return
				}
				_, _ = io.WriteString(conn, post(chatPath, streamBody, "Connection: close"))
				_, _ = io.ReadAll(conn)
				_ = conn.Close()
				p.Calls()
				p.Connections()
			}
		}()
	}
	wg.Wait()
	calls, err := p.WaitCalls(patient(t), callers*each)
	require.NoError(t, err)
	require.Len(t, calls, callers*each)
	require.Equal(t, callers*each, p.Count())
	for i, call := range calls {
		require.Equal(t, i+1, call.Number)
		call, err := p.WaitClosed(patient(t), call.Number)
		require.NoError(t, err)
		require.Contains(t, []End{EndCompleted, EndCutFin, EndCutReset}, call.End)
	}
}

// TestJournalIsBounded keeps the last calls only.
func TestJournalIsBounded(t *testing.T) {
	var j journal
	for range journalLimit + 5 {
		j.add(&record{})
	}
	require.Len(t, j.calls(), journalLimit)
	require.Nil(t, j.find(5))
	require.Equal(t, 6, j.find(6).call.Number)
	require.Equal(t, journalLimit+5, j.find(journalLimit+5).call.Number)
	require.Nil(t, j.find(journalLimit+6))
}
