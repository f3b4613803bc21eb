package upstream

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/gateway/failure"
)

// TestHammer: 200 callers at one pool, with every kind of answer and failure, aborts at any
// moment, wake-ups, early releases and sweeps. No answer is another call's, nothing is sent
// twice, and nothing is left over.
func TestHammer(t *testing.T) {
	plainAndTLS(t, func(t *testing.T, secure bool) {
		var got sync.Map // by id, how often it was read
		p := serve(t, secure, func(c *peerConn) {
			for {
				r, body, ok := c.request()
				if !ok {
					return
				}
				id := r.Header.Get("Id")
				n, _ := got.LoadOrStore(id, new(atomic.Int64))
				n.(*atomic.Int64).Add(1)
				echo := fmt.Sprintf("%s:%d;", id, len(body))
				switch rand.IntN(12) {
				case 0:
					return
				case 1:
					c.reset()
					return
				case 2:
					c.say("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n" + echo)
					return
				case 3:
					c.say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nboom")
					return
				case 4:
					time.Sleep(time.Duration(rand.IntN(20)) * time.Millisecond)
					fallthrough
				case 5:
					c.say(fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(echo), echo))
				case 6:
					c.say(fmt.Sprintf("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", len(echo), echo))
					return
				case 7:
					c.say("HTTP/1.1 200 OK\r\n\r\n" + echo)
					return
				case 8:
					coding := codings[rand.IntN(len(codings))]
					z := coded(t, coding, echo)
					c.say(fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Encoding: %s\r\nContent-Length: %d\r\n\r\n%s", coding, len(z), z))
				default:
					c.say("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
					for i := range echo {
						c.say("1\r\n" + echo[i:i+1] + "\r\n")
					}
					c.say("0\r\n\r\n")
					if rand.IntN(4) == 0 {
						return // unannounced: the next request may cross it
					}
				}
			}
		})
		pool := p.pool(func(o *Options) { o.MaxIdle, o.IdleTTL = 50, 20*time.Millisecond })
		const callers, calls = 200, 20
		var wg sync.WaitGroup
		var ends [4]atomic.Int64 // whole, failed, aborted, given up
		for i := range callers {
			wg.Go(func() {
				for j := range calls {
					hammerOnce(t, pool, fmt.Sprintf("%d-%d", i, j), &ends)
				}
			})
		}
		wg.Wait()
		got.Range(func(id, n any) bool {
			require.EqualValues(t, 1, n.(*atomic.Int64).Load(), "%v was sent again", id)
			return true
		})
		eventually(t, "nothing is in use", func() bool { s := pool.Stats(); return s.InUse+s.Dialing == 0 })
		s := pool.Stats()
		t.Logf("whole %d, failed %d, aborted %d, given up %d; %+v", ends[0].Load(), ends[1].Load(), ends[2].Load(), ends[3].Load(), s)
		for i := range ends {
			require.NotZero(t, ends[i].Load())
		}
		require.NotZero(t, s.Reuses)
		pool.Close()
		require.Zero(t, pool.Stats().Idle)
	})
}

func hammerOnce(t *testing.T, pool *Pool, id string, ends *[4]atomic.Int64) {
	c := AcquireCall()
	defer c.Release()
	req := hello()
	req.Header = append(req.Header, Field{"Id", id})
	if rand.IntN(20) == 0 {
		req.Body = make([]byte, 300_000)
	}
	k := bounded()
	if rand.IntN(10) == 0 {
		k.FirstByte = time.Duration(1+rand.IntN(10)) * time.Millisecond
	}
	c.Start(pool, req, k)
	if rand.IntN(4) == 0 {
		stop := time.AfterFunc(time.Duration(rand.IntN(5000))*time.Microsecond, func() { c.Abort(errTest) })
		defer stop.Stop()
	}
	giveUp := rand.IntN(10) == 0
	var body []byte
	for {
		if rand.IntN(2) == 0 {
			c.WakeAt(time.Now().Add(time.Duration(rand.IntN(2000)) * time.Microsecond))
		} else {
			c.WakeAt(time.Time{})
		}
		b, err := c.Next()
		body = append(body, b...)
		var e *Error
		switch {
		case err == io.EOF:
			require.Equal(t, fmt.Sprintf("%s:%d;", id, len(req.Body)), string(body))
			ends[0].Add(1)
			return
		case err == ErrWake || err == nil:
			if giveUp && rand.IntN(3) == 0 {
				ends[3].Add(1)
				return
			}
		case errors.As(err, &e):
			if e.Transport == failure.Aborted {
				require.ErrorIs(t, err, errTest)
				ends[2].Add(1)
			} else {
				require.NotEqual(t, failure.TransportOK, e.Transport)
				ends[1].Add(1)
			}
			require.True(t, strings.HasPrefix(fmt.Sprintf("%s:%d;", id, len(req.Body)), string(body)), "%q of %s", body, id)
			return
		default:
			t.Errorf("%v", err)
			return
		}
	}
}
