package fault

import (
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

func TestStartFails(t *testing.T) {
	p := start(t, Options{Name: "one"})
	require.Equal(t, "one", p.Name())
	require.Equal(t, "http://"+p.Addr(), p.URL())
	_, err := Start(Options{Name: "two", Addr: p.Addr()})
	require.ErrorContains(t, err, "fault: provider two: listen tcp")
}
