package downstream

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestStartDrain(t *testing.T) {
	s := open(t, newDouble(), Options{})
	conn := s.dial(t)
	r := bufio.NewReader(conn)
	resp, _ := say(t, conn, r, post(chat, "{}"))
	require.False(t, resp.Close)
	s.StartDrain()
	resp, _ = say(t, conn, r, post(chat, "{}"))
	require.Equal(t, 200, resp.StatusCode)
	require.True(t, resp.Close, "callers are asked to go elsewhere")
	closedNow(t, conn, r)
	fresh := s.dial(t)
	resp, _ = say(t, fresh, bufio.NewReader(fresh), get("/v1/models"))
	require.Equal(t, 200, resp.StatusCode, "still accepting")
}

// TestDrainWaits: streams finish, HTTP/1.0 ones too, and nothing new is accepted.
func TestDrainWaits(t *testing.T) {
	d := newDouble()
	d.run = streamReply
	entered := make(chan struct{}, 2)
	release := make(chan struct{})
	d.pump = func(x *script, w io.Writer) error {
		_, err := io.WriteString(w, "data: 1\n\n")
		entered <- struct{}{}
		<-release
		_, err2 := io.WriteString(w, "data: 2\n\n")
		return errors.Join(err, err2)
	}
	s := open(t, d, Options{})
	now, old := s.dial(t), s.dial(t)
	for _, c := range []net.Conn{now, old} {
		text := post(chat, "{}")
		if c == net.Conn(old) {
			text = strings.Replace(text, "HTTP/1.1", "HTTP/1.0", 1)
		}
		_, err := io.WriteString(c, text)
		require.NoError(t, err)
		<-entered
	}
	idle := s.dial(t)
	ir := bufio.NewReader(idle)
	_, _ = say(t, idle, ir, get("/v1/models"))

	done := make(chan error, 1)
	go func() { done <- drained(t, s, 2*soon) }()
	closedNow(t, idle, ir)
	require.Eventually(t, func() bool {
		c, err := net.Dial("tcp", s.Addr().String())
		if err == nil {
			_ = c.Close()
		}
		return err != nil
	}, soon, 5*time.Millisecond, "the listener stays open")
	select {
	case err := <-done:
		require.Fail(t, "drain did not wait", err)
	case <-time.After(50 * time.Millisecond):
	}
	close(release)
	for _, c := range []net.Conn{now, old} {
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		require.NoError(t, err)
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.Equal(t, "data: 1\n\ndata: 2\n\n", string(body))
	}
	require.NoError(t, <-done)
	select {
	case <-d.drained:
		require.Fail(t, "nothing had to be ended")
	default:
	}
}

// TestDrainEnds: at the limit the flow ends what is left, and the callers see how.
func TestDrainEnds(t *testing.T) {
	d := newDouble()
	entered := make(chan struct{})
	d.run = streamReply
	d.pump = func(x *script, w io.Writer) error {
		_, err := io.WriteString(w, "data: 1\n\n")
		close(entered)
		<-d.drained
		_, err2 := io.WriteString(w, "data: {\"error\":{}}\n\n")
		return errors.Join(err, err2)
	}
	s := open(t, d, Options{})
	conn := s.dial(t)
	_, err := io.WriteString(conn, post(chat, "{}"))
	require.NoError(t, err)
	<-entered
	require.NoError(t, drained(t, s, 50*time.Millisecond))
	resp, body := hear(t, bufio.NewReader(conn))
	require.Equal(t, 200, resp.StatusCode)
	require.Equal(t, "data: 1\n\ndata: {\"error\":{}}\n\n", body)
}

// TestEnding: a request that comes on an open connection while the gateway ends is told so.
func TestEnding(t *testing.T) {
	s := open(t, newDouble(), Options{})
	conn := s.dial(t)
	r := bufio.NewReader(conn)
	_, _ = say(t, conn, r, get("/v1/models"))
	s.ending.Store(true)
	resp, body := say(t, conn, r, post(chat, "{}"))
	refusedWith(t, resp, body, 503, "gateway_shutdown")
	require.Equal(t, "true", resp.Header.Get("X-Should-Retry"))
	require.NotEmpty(t, resp.Header.Get("Retry-After"))
}

// TestCloseCuts: Close does not wait for a stream, whose exchange hears that the caller is gone
// or fails to write.
func TestCloseCuts(t *testing.T) {
	d := newDouble()
	entered := make(chan struct{})
	d.run = streamReply
	d.pump = func(x *script, w io.Writer) error {
		close(entered)
		for {
			if _, err := io.WriteString(w, "data: 1\n\n"); err != nil {
				return err
			}
			time.Sleep(time.Millisecond)
		}
	}
	s := open(t, d, Options{})
	conn := s.dial(t)
	_, err := io.WriteString(conn, post(chat, "{}"))
	require.NoError(t, err)
	<-entered
	require.NoError(t, s.Close())
	_, err = io.ReadAll(conn)
	_ = err // cut, in whatever way
	require.Eventually(t, func() bool { return d.ended.Load() == 1 }, soon, time.Millisecond)
}

// TestInherited runs this test again in a process that is handed a listener.
func TestInherited(t *testing.T) {
	const child = "INTERLOCK_TEST_INHERITS"
	if os.Getenv(child) != "" {
		list, err := Inherited()
		require.NoError(t, err)
		require.Len(t, list, 1)
		require.Empty(t, os.Getenv("LISTEN_FDS"))
		defer list[0].Close()
		c, err := list[0].Accept()
		require.NoError(t, err)
		_, err = io.WriteString(c, "inherited")
		require.NoError(t, err)
		require.NoError(t, c.Close())
		return
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	file, err := l.(*net.TCPListener).File()
	require.NoError(t, err)
	c, err := net.Dial("tcp", l.Addr().String()) // waits in the queue that is handed over
	require.NoError(t, err)
	defer c.Close()
	require.NoError(t, l.Close())
	cmd := exec.Command(os.Args[0], "-test.run=^TestInherited$", "-test.count=1")
	cmd.Env = append(os.Environ(), child+"=1", "LISTEN_FDS=1")
	cmd.ExtraFiles = []*os.File{file}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	require.NoError(t, file.Close())
	require.NoError(t, c.SetDeadline(time.Now().Add(soon)))
	text, err := io.ReadAll(c)
	require.NoError(t, err)
	require.Equal(t, "inherited", string(text))
}

func TestInheritedNothing(t *testing.T) {
	list, err := Inherited()
	require.NoError(t, err)
	require.Empty(t, list)
	t.Setenv("LISTEN_FDS", "1")
	t.Setenv("LISTEN_PID", "1")
	list, err = Inherited()
	require.NoError(t, err)
	require.Empty(t, list, "meant for another process")
	t.Setenv("LISTEN_PID", "")
	t.Setenv("LISTEN_FDS", "many")
	_, err = Inherited()
	require.EqualError(t, err, `LISTEN_FDS is "many": a number from 0 to 64 is allowed`)
}
