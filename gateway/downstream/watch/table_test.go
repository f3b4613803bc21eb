package watch_test

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/interlock-gateway/interlock/gateway/downstream/watch"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// soon bounds what must happen; it is generous because the machine is shared.
const soon = 5 * time.Second

// news is a Target that remembers what it was told.
type news struct{ kinds chan watch.Kind }

func newNews() *news { return &news{kinds: make(chan watch.Kind, 4)} }

func (n *news) PeerGone(k watch.Kind) { n.kinds <- k }

func (n *news) next(t *testing.T) watch.Kind {
	t.Helper()
	select {
	case k := <-n.kinds:
		return k
	case <-time.After(soon):
		require.Fail(t, "the target was never told")
		return watch.Alive
	}
}

// pair is a caller and the watched connection that a listener accepted from it.
type pair struct {
	caller net.Conn // what speaks: TLS where the listener does
	socket *net.TCPConn
	served net.Conn
	conn   watch.Conn
}

func listen(t testing.TB, o watch.Options) *watch.Listener {
	t.Helper()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	l, err := watch.Listen(inner, o)
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.CloseAll() })
	return l
}

// connect dials the listener and exchanges one request and answer, so that TLS is agreed on.
func connect(t testing.TB, l *watch.Listener, secure *tls.Config) *pair {
	t.Helper()
	p := &pair{}
	accepted := make(chan error, 1)
	go func() {
		var err error
		p.served, err = l.Accept()
		accepted <- err
	}()
	c, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	require.NoError(t, <-accepted)
	t.Cleanup(func() { _ = p.served.Close() })
	p.socket = c.(*net.TCPConn)
	p.caller = c
	if secure != nil {
		p.caller = tls.Client(c, secure)
	}
	var ok bool
	p.conn, ok = watch.From(p.served)
	require.True(t, ok)
	p.request(t)
	return p
}

const message = "one request"

// request sends a request and has the server read it.
func (p *pair) request(t testing.TB) {
	t.Helper()
	sent := make(chan error, 1)
	go func() { _, err := io.WriteString(p.caller, message); sent <- err }()
	p.read(t)
	require.NoError(t, <-sent)
}

func (p *pair) read(t testing.TB) {
	t.Helper()
	got := make([]byte, len(message))
	require.NoError(t, p.served.SetReadDeadline(time.Now().Add(soon)))
	_, err := io.ReadFull(p.served, got)
	require.NoError(t, err)
	require.Equal(t, message, string(got))
}

// leave ends the caller's side in one of three ways.
func (p *pair) leave(t *testing.T, how string) {
	t.Helper()
	switch how {
	case "FIN":
		_ = p.caller.Close()
	case "RST":
		require.NoError(t, p.socket.SetLinger(0))
		_ = p.socket.Close()
	case "half-close":
		require.NoError(t, p.socket.CloseWrite())
	}
}

var methods = map[watch.Method]string{watch.Kernel: "kernel", watch.Read: "read"}

func eachMethod(t *testing.T, f func(t *testing.T, m watch.Method)) {
	for m, name := range methods {
		if m == watch.Kernel && runtime.GOOS != "linux" {
			continue
		}
		t.Run(name, func(t *testing.T) { f(t, m) })
	}
}

// TestPeerGone is the table of the caller watch: every way to leave is seen, over plain TCP
// and TLS, on the first and a later request, and behind a pipelined one.
func TestPeerGone(t *testing.T) {
	server, client := certificate(t)
	eachMethod(t, func(t *testing.T, m watch.Method) {
		for _, secure := range []bool{false, true} {
			for _, how := range []string{"FIN", "RST", "half-close"} {
				for _, when := range []string{"first request", "second request", "pipelined request pending"} {
					name := fmt.Sprintf("tls=%v/%s/%s", secure, how, when)
					t.Run(name, func(t *testing.T) {
						if m == watch.Read && when == "pipelined request pending" {
							t.Skip("reading is blind behind a pipelined request")
						}
						o, dial := watch.Options{Method: m}, (*tls.Config)(nil)
						if secure {
							o.TLS, dial = server, client
						}
						p := connect(t, listen(t, o), dial)
						if when == "second request" {
							first := newNews()
							p.conn.Arm(first)
							p.conn.Disarm()
							p.request(t)
							require.Empty(t, first.kinds)
						}
						target := newNews()
						p.conn.Arm(target)
						if when == "pipelined request pending" {
							_, err := io.WriteString(p.caller, message)
							require.NoError(t, err)
						}
						p.leave(t, how)
						k := target.next(t)
						if how == "RST" {
							for k != watch.Reset { // a FIN may come first
								k = target.next(t)
							}
						} else {
							require.Equal(t, watch.HalfClose, k)
						}
						require.Equal(t, k, p.conn.Gone())
						p.conn.Disarm()
						if how == "half-close" && when == "pipelined request pending" {
							p.read(t) // nothing was taken off the connection
						}
					})
				}
			}
		}
	})
}

// TestResetAfterHalfClose: who tolerates a half-close still hears of the reset.
func TestResetAfterHalfClose(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs the kernel watch")
	}
	p := connect(t, listen(t, watch.Options{Method: watch.Kernel}), nil)
	target := newNews()
	p.conn.Arm(target)
	p.leave(t, "half-close")
	require.Equal(t, watch.HalfClose, target.next(t))
	p.leave(t, "RST")
	require.Equal(t, watch.Reset, target.next(t))
	p.conn.Disarm()
}

// TestArmAfterLeaving: a target learns of a caller that left between two requests.
func TestArmAfterLeaving(t *testing.T) {
	eachMethod(t, func(t *testing.T, m watch.Method) {
		p := connect(t, listen(t, watch.Options{Method: m}), nil)
		first := newNews()
		p.conn.Arm(first)
		p.leave(t, "FIN")
		k := first.next(t)
		p.conn.Disarm()
		second := newNews()
		p.conn.Arm(second)
		require.Len(t, second.kinds, 1, "Arm tells before it returns")
		require.Equal(t, k, second.next(t))
		p.conn.Disarm()
	})
}

// TestKeptByte: what the caller sends while the watch reads is what the server reads next.
func TestKeptByte(t *testing.T) {
	server, client := certificate(t)
	eachMethod(t, func(t *testing.T, m watch.Method) {
		for _, secure := range []bool{false, true} {
			t.Run(fmt.Sprintf("tls=%v", secure), func(t *testing.T) {
				o, dial := watch.Options{Method: m}, (*tls.Config)(nil)
				if secure {
					o.TLS, dial = server, client
				}
				p := connect(t, listen(t, o), dial)
				for range 20 {
					target := newNews()
					p.conn.Arm(target)
					_, err := io.WriteString(p.caller, message)
					require.NoError(t, err)
					p.conn.Disarm()
					p.read(t)
					require.Empty(t, target.kinds)
				}
			})
		}
	})
}

// TestStaleDeadline: a read deadline left over from the request's body ends no watch.
func TestStaleDeadline(t *testing.T) {
	eachMethod(t, func(t *testing.T, m watch.Method) {
		p := connect(t, listen(t, watch.Options{Method: m}), nil)
		require.NoError(t, p.served.SetReadDeadline(time.Now().Add(time.Millisecond)))
		target := newNews()
		p.conn.Arm(target)
		time.Sleep(20 * time.Millisecond)
		p.conn.Disarm()
		require.Empty(t, target.kinds)
		p.request(t)
	})
}

// TestDisarmWaits: no callback runs once Disarm has returned. The target is poisoned after it.
func TestDisarmWaits(t *testing.T) {
	eachMethod(t, func(t *testing.T, m watch.Method) {
		l := listen(t, watch.Options{Method: m})
		for range 100 {
			p := connect(t, l, nil)
			target := &poisoned{}
			var wg sync.WaitGroup
			p.conn.Arm(target)
			wg.Go(func() { _ = p.caller.Close() })
			runtime.Gosched()
			p.conn.Disarm()
			target.dead = true // a race with a running PeerGone is what -race and the flag find
			wg.Wait()
			require.False(t, target.late)
			_ = p.served.Close()
		}
	})
}

type poisoned struct{ dead, late bool }

func (p *poisoned) PeerGone(watch.Kind) {
	if p.dead {
		p.late = true
	}
}

func TestFromUnknown(t *testing.T) {
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	_, ok := watch.From(a)
	require.False(t, ok)
	_, ok = watch.From(tls.Server(b, &tls.Config{}))
	require.False(t, ok)
	_, ok = watch.From(nil)
	require.False(t, ok)
}

func TestKindWords(t *testing.T) {
	require.Equal(t, "alive half_close reset unknown",
		fmt.Sprint(watch.Alive, " ", watch.HalfClose, " ", watch.Reset, " ", watch.Kind(9)))
}

func TestKernelElsewhere(t *testing.T) {
	if runtime.GOOS == "linux" {
		t.Skip("has a kernel watch")
	}
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer inner.Close()
	_, err = watch.Listen(inner, watch.Options{Method: watch.Kernel})
	require.ErrorIs(t, err, watch.ErrNoKernel)
}
