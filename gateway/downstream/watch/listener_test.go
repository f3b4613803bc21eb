package watch_test

import (
	"errors"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/gateway/downstream/watch"
)

// serve accepts in the background and hands out what it accepted.
func serve(t *testing.T, l *watch.Listener) <-chan net.Conn {
	t.Helper()
	accepted := make(chan net.Conn, 4096)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			accepted <- c
		}
	}()
	t.Cleanup(func() { _ = l.CloseAll(); <-done })
	return accepted
}

func dial(t *testing.T, l *watch.Listener) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// refused says that the server closed a connection without a byte.
func refused(t *testing.T, c net.Conn) {
	t.Helper()
	require.NoError(t, c.SetReadDeadline(time.Now().Add(soon)))
	_, err := c.Read(make([]byte, 1))
	require.Error(t, err)
	var timeout net.Error
	require.False(t, errors.As(err, &timeout) && timeout.Timeout(), "the connection was kept open")
}

func TestLimits(t *testing.T) {
	eachMethod(t, func(t *testing.T, m watch.Method) {
		for name, o := range map[string]watch.Options{
			"total":  {Method: m, MaxConns: 2},
			"per IP": {Method: m, MaxConns: 100, MaxConnsPerIP: 2},
		} {
			t.Run(name, func(t *testing.T) {
				l := listen(t, o)
				accepted := serve(t, l)
				dial(t, l)
				dial(t, l)
				first := <-accepted
				<-accepted
				require.Equal(t, 2, l.Open())
				refused(t, dial(t, l))
				require.EqualValues(t, 1, l.Refused())

				require.NoError(t, first.Close())
				_ = first.Close() // counted out once
				require.Equal(t, 1, l.Open())
				dial(t, l)
				<-accepted
				refused(t, dial(t, l))
				require.Equal(t, 2, l.Open())
			})
		}
	})
}

// TestCloseKeepsConnections: Close stops accepting, and what was accepted is still watched.
func TestCloseKeepsConnections(t *testing.T) {
	eachMethod(t, func(t *testing.T, m watch.Method) {
		l := listen(t, watch.Options{Method: m})
		p := connect(t, l, nil)
		require.NoError(t, l.Close())
		require.ErrorIs(t, l.Close(), net.ErrClosed)
		_, err := l.Accept()
		require.ErrorIs(t, err, net.ErrClosed)
		target := newNews()
		p.conn.Arm(target)
		p.leave(t, "FIN")
		require.Equal(t, watch.HalfClose, target.next(t))
		p.conn.Disarm()
	})
}

func TestCloseAll(t *testing.T) {
	eachMethod(t, func(t *testing.T, m watch.Method) {
		l := listen(t, watch.Options{Method: m})
		p := connect(t, l, nil)
		require.NoError(t, l.CloseAll())
		require.NoError(t, l.CloseAll())
		require.Zero(t, l.Open())
		refused(t, p.caller)
	})
}

// flaky is a listener that is short of file descriptors for a while.
type flaky struct {
	net.Listener
	failures atomic.Int32
}

func (f *flaky) Accept() (net.Conn, error) {
	if f.failures.Add(-1) >= 0 {
		return nil, &net.OpError{Op: "accept", Err: syscall.EMFILE}
	}
	return f.Listener.Accept()
}

func TestAcceptWaitsForDescriptors(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	f := &flaky{Listener: inner}
	f.failures.Store(3)
	l, err := watch.Listen(f, watch.Options{})
	require.NoError(t, err)
	accepted := serve(t, l)
	dial(t, l)
	select {
	case c := <-accepted:
		require.NoError(t, c.Close())
	case <-time.After(soon):
		require.Fail(t, "accepting stopped")
	}
	f.failures.Store(1 << 30)
	require.NoError(t, l.Close(), "closing ends the wait")
}

// TestStorm: a thousand callers that leave at once are all noticed, again and again over
// file descriptors used before.
func TestStorm(t *testing.T) {
	const callers = 1000
	eachMethod(t, func(t *testing.T, m watch.Method) {
		l := listen(t, watch.Options{Method: m})
		accepted := serve(t, l)
		for range 2 {
			var told atomic.Int64
			var here, there []net.Conn
			for range callers {
				here = append(here, dial(t, l))
				c := <-accepted
				there = append(there, c)
				w, ok := watch.From(c)
				require.True(t, ok)
				w.Arm(&once{told: &told})
			}
			var wg sync.WaitGroup
			for part := range 4 {
				wg.Go(func() {
					for i := part; i < callers; i += 4 {
						if i%3 == 0 {
							_ = here[i].(*net.TCPConn).SetLinger(0)
						}
						_ = here[i].Close()
					}
				})
			}
			wg.Wait()
			require.Eventually(t, func() bool { return told.Load() == callers }, 2*soon, time.Millisecond)
			for _, c := range there {
				w, _ := watch.From(c)
				w.Disarm()
				_ = c.Close()
			}
			require.Zero(t, l.Open())
		}
	})
}

// once counts the first time that it is told.
type once struct {
	told *atomic.Int64
	done bool
}

func (o *once) PeerGone(watch.Kind) {
	if !o.done {
		o.done = true
		o.told.Add(1)
	}
}

func BenchmarkArmDisarm(b *testing.B) {
	for m, name := range methods {
		b.Run(name, func(b *testing.B) {
			p := connect(b, listen(b, watch.Options{Method: m}), nil)
			target := newNews()
			b.ReportAllocs()
			for b.Loop() {
				p.conn.Arm(target)
				p.conn.Disarm()
			}
		})
	}
}

func TestKernelDoesNotAllocate(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs the kernel watch")
	}
	p := connect(t, listen(t, watch.Options{}), nil)
	var target watch.Target = newNews()
	require.Zero(t, testing.AllocsPerRun(100, func() {
		p.conn.Arm(target)
		p.conn.Disarm()
	}))
}
