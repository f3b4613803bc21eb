package fault

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"
)

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

// TestEarlyAnswerReachesASendingPeer: an answer before the body is not lost in
// a reset, however much the peer still sends.
func TestEarlyAnswerReachesASendingPeer(t *testing.T) {
	p := script(t, "on chat\n  read head\n  status 413\n")
	c := dial(t, p)
	c.send("POST " + chatPath + " HTTP/1.1\r\nHost: x\r\nContent-Length: 20000000\r\n\r\n")
	c.send(strings.Repeat("z", 20_000_000))
	text, end := c.rest()
	require.Equal(t, []string{"413", "fin"}, []string{statusOf(text), end})
}

// TestIdleConnectionIsClosedAfterAnAnswer: what follows end happens behind
// the healthy answer, stream or not.
func TestIdleConnectionIsClosedAfterAnAnswer(t *testing.T) {
	p := script(t, "healthy \"a b\"\non any\n  end\n  cut fin\n")
	for i, path := range []string{chatPath, "/v1/responses", "/v1/embeddings"} {
		c := dial(t, p)
		c.post(path, chatBody)
		text, end := c.rest()
		require.Equal(t, []string{"200", "fin"}, []string{statusOf(text), end})
		require.NotEmpty(t, bodyOf(text))
		require.Equal(t, EndCompleted, p.Calls()[i].End)
	}
}

// TestRepeat: the events of a block come as often in a stream and in JSON.
func TestRepeat(t *testing.T) {
	p := script(t, "on chat\n  role\n  repeat 2 {\n    text \"a\"\n    repeat 3 {\n      text \"b\"\n    }\n  }\n  finish stop\n  done\n")
	require.Contains(t, ask(t, p, chatPath, chatBody), `"content":"abbbabbb"`)
	require.Equal(t, 6, strings.Count(ask(t, p, chatPath, streamBody), `{"content":"b"}`))
}

// TestCutWithoutStream: a cut among the events comes before the JSON answer,
// behind "done" it comes after it.
func TestCutWithoutStream(t *testing.T) {
	p := script(t, "on chat model early\n  role\n  text \"a\"\n  cut reset\non chat\n  answer \"a\"\n  cut reset\n")
	c := dial(t, p)
	c.post(chatPath, `{"model":"early"}`)
	text, end := c.rest()
	require.Equal(t, []string{"", "reset"}, []string{text, end})
	c = dial(t, p)
	c.post(chatPath, chatBody)
	text, end = c.rest()
	require.Contains(t, text, `"content":"a"`)
	require.Equal(t, "reset", end)
}
