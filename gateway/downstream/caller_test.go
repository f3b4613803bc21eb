package downstream

import (
	"bufio"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/gateway/downstream/watch"
	"github.com/interlock-gateway/interlock/gateway/flow"
)

var watches = map[string]watch.Method{"auto": watch.Auto, "read": watch.Read}

// TestCallerLeaves: the exchange hears of it while it runs and while it streams, and nothing
// is written any more.
func TestCallerLeaves(t *testing.T) {
	for method, m := range watches {
		for _, phase := range []string{"run", "stream"} {
			t.Run(method+"/"+phase, func(t *testing.T) {
				d := newDouble()
				entered := make(chan struct{})
				wait := func(x *script) bool {
					close(entered)
					select {
					case <-x.gone:
						return true
					case <-time.After(soon):
						return false
					}
				}
				heard := make(chan bool, 1)
				d.run = func(x *script) *flow.Reply {
					if phase == "run" {
						heard <- wait(x)
						return nil
					}
					return streamReply(x)
				}
				d.pump = func(x *script, w io.Writer) error {
					_, err := io.WriteString(w, "data: 1\n\n")
					require.NoError(t, err)
					heard <- wait(x)
					_, err = io.WriteString(w, "data: 2\n\n")
					return err
				}
				s := open(t, d, Options{Watch: m})
				conn := s.dial(t)
				_, err := io.WriteString(conn, post(chat, "{}"))
				require.NoError(t, err)
				<-entered
				require.NoError(t, conn.Close())
				require.True(t, <-heard)
				require.Eventually(t, func() bool { return d.ended.Load() == 1 && s.Running() == 0 }, soon, time.Millisecond)
			})
		}
	}
}

// TestHalfClose: a caller that has said all it will say has left, unless configured otherwise.
func TestHalfClose(t *testing.T) {
	for name, keep := range map[string]bool{"leave": false, "keep": true} {
		t.Run(name, func(t *testing.T) {
			d := newDouble()
			entered, release := make(chan struct{}), make(chan struct{})
			d.run = func(x *script) *flow.Reply {
				close(entered)
				select {
				case <-x.gone:
					return nil
				case <-release:
					return jsonReply("{}")
				}
			}
			s := open(t, d, Options{KeepHalfClosed: keep})
			conn := s.dial(t)
			_, err := io.WriteString(conn, post(chat, "{}"))
			require.NoError(t, err)
			<-entered
			require.NoError(t, conn.CloseWrite())
			if keep {
				time.Sleep(50 * time.Millisecond) // time in which it could be told
				close(release)
				resp, body := hear(t, bufio.NewReader(conn))
				require.Equal(t, 200, resp.StatusCode)
				require.Equal(t, "{}", body)
				return
			}
			rest, _ := io.ReadAll(conn)
			require.Empty(t, string(rest))
		})
	}
}

// TestLeavingEndsAWrite: a caller that leaves without reading does not hold the stream until
// the write's own clock.
func TestLeavingEndsAWrite(t *testing.T) {
	d := newDouble()
	d.run = streamReply
	stuck, result := make(chan struct{}, 64), make(chan error, 1)
	d.pump = func(x *script, w io.Writer) error {
		chunk := strings.Repeat("x", 1<<20)
		for {
			timer := time.AfterFunc(200*time.Millisecond, func() { stuck <- struct{}{} })
			_, err := io.WriteString(w, chunk)
			timer.Stop()
			if err != nil {
				result <- err
				return err
			}
		}
	}
	s := open(t, d, Options{WriteStall: time.Hour})
	conn := s.dial(t)
	_, err := io.WriteString(conn, post(chat, "{}"))
	require.NoError(t, err)
	<-stuck
	require.NoError(t, conn.CloseWrite())
	select {
	case err := <-result:
		require.Error(t, err)
	case <-time.After(soon):
		require.Fail(t, "the write still waits")
	}
}

// TestKeptHalfCloseStillResets: with half-close kept, a reset counts.
func TestKeptHalfCloseStillResets(t *testing.T) {
	d := newDouble()
	entered := make(chan struct{})
	heard := make(chan bool, 1)
	d.run = func(x *script) *flow.Reply {
		close(entered)
		select {
		case <-x.gone:
			heard <- true
		case <-time.After(soon):
			heard <- false
		}
		return nil
	}
	s := open(t, d, Options{KeepHalfClosed: true})
	conn := s.dial(t)
	_, err := io.WriteString(conn, post(chat, "{}"))
	require.NoError(t, err)
	<-entered
	require.NoError(t, conn.SetLinger(0))
	require.NoError(t, conn.Close())
	require.True(t, <-heard)
}

// TestSlowReader: a caller that stops reading is cut, whether its answer is a stream or whole.
func TestSlowReader(t *testing.T) {
	d := newDouble()
	result := make(chan error, 1)
	big := strings.Repeat("x", 32<<20)
	d.run = func(x *script) *flow.Reply {
		if string(x.body) == "stream" {
			return streamReply(x)
		}
		return jsonReply(big)
	}
	d.pump = func(x *script, w io.Writer) error {
		for {
			if _, err := io.WriteString(w, "data: "+big[:64<<10]+"\n\n"); err != nil {
				result <- err
				return err
			}
		}
	}
	s := open(t, d, Options{WriteStall: 200 * time.Millisecond})
	for i, kind := range []string{"stream", "whole"} {
		conn := s.dial(t)
		_, err := io.WriteString(conn, post(chat, kind))
		require.NoError(t, err)
		if kind == "stream" {
			select {
			case err := <-result:
				require.True(t, timedOut(err), err)
			case <-time.After(soon):
				require.Fail(t, "a slow reader holds the stream")
			}
		}
		require.Eventually(t, func() bool { return d.ended.Load() == int64(i+1) && s.Running() == 0 }, soon, time.Millisecond)
	}
}

// TestSlowButReading: a caller that makes progress is not cut, however long it takes.
func TestSlowButReading(t *testing.T) {
	d := newDouble()
	big := strings.Repeat("x", 24<<20)
	d.run = func(*script) *flow.Reply { return jsonReply(big) }
	s := open(t, d, Options{WriteStall: time.Second})
	conn := s.dial(t)
	_, err := io.WriteString(conn, post(chat, "{}"))
	require.NoError(t, err)
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	require.NoError(t, err)
	var n int64
	for start := time.Now(); time.Since(start) < 2*time.Second; time.Sleep(100 * time.Millisecond) {
		m, err := io.CopyN(io.Discard, resp.Body, 512<<10)
		require.NoError(t, err)
		n += m
	}
	m, err := io.Copy(io.Discard, resp.Body)
	require.NoError(t, err)
	require.EqualValues(t, len(big), n+m)
}

// TestLongStream: a stream outlives every clock but that of a single write.
func TestLongStream(t *testing.T) {
	d := newDouble()
	d.run = streamReply
	d.pump = func(x *script, w io.Writer) error {
		for range 20 {
			if _, err := io.WriteString(w, "data: x\n\n"); err != nil {
				return err
			}
			time.Sleep(30 * time.Millisecond)
		}
		return nil
	}
	for _, m := range watches {
		s := open(t, d, Options{
			Watch: m, WriteStall: 100 * time.Millisecond, ReadHeaderTimeout: 100 * time.Millisecond,
			ReadBodyTimeout: 100 * time.Millisecond, IdleTimeout: 100 * time.Millisecond,
		})
		conn := s.dial(t)
		resp, body := say(t, conn, bufio.NewReader(conn), post(chat, "{}"))
		require.Equal(t, 200, resp.StatusCode)
		require.Equal(t, strings.Repeat("data: x\n\n", 20), body)
	}
}

// TestBusy: bodies count against the budget until there is output, and not a byte longer.
func TestBusy(t *testing.T) {
	d := newDouble()
	entered := make(chan *script, 8)
	step := make(chan string)
	d.run = func(x *script) *flow.Reply {
		if len(x.body) > 0 && x.body[0] == 's' {
			return streamReply(x)
		}
		return jsonReply("{}")
	}
	d.pump = func(x *script, w io.Writer) error {
		entered <- x
		for text := range step {
			if _, err := io.WriteString(w, text); err != nil {
				return err
			}
			entered <- x
		}
		return nil
	}
	s := open(t, d, Options{MaxInflightBody: 100_000})
	long := s.dial(t)
	_, err := io.WriteString(long, post(chat, strings.Repeat("s", 60_000)))
	require.NoError(t, err)
	<-entered
	step <- ":\n" // a heartbeat commits the status, not the output
	<-entered

	chunked := "POST " + chat + " HTTP/1.1\r\nhost: gateway\r\nauthorization: Bearer " + key +
		"\r\ntransfer-encoding: chunked\r\n\r\nc350\r\n" + strings.Repeat("x", 50_000) + "\r\n0\r\n\r\n"
	for _, request := range []string{post(chat, strings.Repeat("x", 60_000)), chunked} {
		conn := s.dial(t)
		resp, body := say(t, conn, bufio.NewReader(conn), request)
		refusedWith(t, resp, body, 503, "gateway_busy")
		require.Equal(t, "true", resp.Header.Get("X-Should-Retry"))
		require.Equal(t, "1", resp.Header.Get("Retry-After"))
	}
	conn := s.dial(t)
	resp, _ := say(t, conn, bufio.NewReader(conn), post(chat, strings.Repeat("x", 20_000)))
	require.Equal(t, 200, resp.StatusCode, "what fits is served")

	step <- "data: 1\n\n" // output
	<-entered
	for _, request := range []string{post(chat, strings.Repeat("x", 60_000)), chunked} {
		conn := s.dial(t)
		resp, _ := say(t, conn, bufio.NewReader(conn), request)
		require.Equal(t, 200, resp.StatusCode)
	}
	close(step)
}
