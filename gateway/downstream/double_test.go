package downstream

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/interlock-gateway/interlock/gateway/flow"
	"github.com/interlock-gateway/interlock/gateway/openai"
	"github.com/interlock-gateway/interlock/gateway/telemetry"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// The HTTP library keeps a clock for the date header for ever, and the sweeper of a
		// stopped pool of goroutines for ten seconds.
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"))
}

// soon bounds what must happen; it is generous because the machine is shared.
const soon = 10 * time.Second

const key = "key-of-the-test"

// someone is who has the right key.
var someone = &flow.Caller{}

// double is a gateway whose exchanges are scripts.
type double struct {
	keys  func(flow.Head) // called first, before the key is looked at
	run   func(*script) *flow.Reply
	pump  func(*script, io.Writer) error
	close func(*script)

	authenticated, begun, ended atomic.Int64
	drained                     chan struct{}
	once                        sync.Once
}

func newDouble() *double { return &double{drained: make(chan struct{})} }

func (d *double) Authenticate(h flow.Head) (*flow.Caller, *openai.Error) {
	d.authenticated.Add(1)
	if d.keys != nil {
		d.keys(h)
	}
	if string(h.Peek("authorization")) != "Bearer "+key {
		return nil, openai.NewError(openai.InvalidAPIKey, "The API key is wrong.")
	}
	return someone, nil
}

func (d *double) Begin(_ *flow.Caller, e openai.Endpoint, h flow.Head, body []byte, received time.Time) exchange {
	d.begun.Add(1)
	return &script{double: d, endpoint: e, head: h, body: body, received: received, gone: make(chan struct{})}
}

func (d *double) Models(*flow.Caller) *flow.Reply { return jsonReply(`{"object":"list"}`) }

func (d *double) Model(_ *flow.Caller, id string) (*flow.Reply, *openai.Error) {
	if id == "nobody" {
		return nil, openai.NewError(openai.ModelNotFound, "The model does not exist.")
	}
	return jsonReply(`{"id":` + quoted(id) + `}`), nil
}

func (d *double) RequestByID(_ *flow.Caller, id string) (*flow.Reply, *openai.Error) {
	if id == "nobody" {
		return nil, openai.NewError(openai.NotFound, "There is no such request.")
	}
	return jsonReply(`{"request":` + quoted(id) + `}`), nil
}

func (d *double) DrainNow() { d.once.Do(func() { close(d.drained) }) }

// script is one exchange of a double.
type script struct {
	double   *double
	endpoint openai.Endpoint
	head     flow.Head
	body     []byte
	received time.Time
	gone     chan struct{} // closed when the caller has left
	left     sync.Once
	closes   atomic.Int64
}

func (s *script) Run() *flow.Reply {
	if s.double.run == nil {
		return jsonReply(`{"echo":` + quoted(string(s.body)) + `}`)
	}
	return s.double.run(s)
}

func (s *script) WriteTo(w io.Writer) (int64, error) {
	c := &counting{w: w}
	err := s.double.pump(s, c)
	return c.n, err
}

func (s *script) PeerGone() { s.left.Do(func() { close(s.gone) }) }

func (s *script) Close() {
	if s.closes.Add(1) != 1 {
		panic("closed twice")
	}
	s.double.ended.Add(1)
	if s.double.close != nil {
		s.double.close(s)
	}
}

type counting struct {
	w io.Writer
	n int64
}

func (c *counting) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

func quoted(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

func jsonReply(body string) *flow.Reply {
	return &flow.Reply{
		Status: 200, ContentType: "application/json", Body: []byte(body),
		Header: []flow.Field{{Name: "x-request-id", Value: "req_of_the_double"}},
	}
}

func streamReply(*script) *flow.Reply {
	return &flow.Reply{
		Status: 200, ContentType: "text/event-stream", Stream: true,
		Header: []flow.Field{{Name: "x-request-id", Value: "req_of_the_double"}, {Name: "interlock-attempts", Value: "1"}},
	}
}

// site is a front that runs on loopback.
type site struct {
	*Front
	double *double
	log    *syncBuffer
	served chan error
}

// syncBuffer is a log's output that a test may read meanwhile.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// open starts a front before a double. At the test's end nothing may be left of it.
func open(t testing.TB, d *double, o Options) *site {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := &site{double: d, log: &syncBuffer{}, served: make(chan error, 1)}
	log, err := telemetry.NewLog(telemetry.LogOptions{Output: s.log, Level: "debug"})
	require.NoError(t, err)
	o.Log, o.Metrics = log, telemetry.NewMetrics(telemetry.Build{})
	s.Front, err = newFront(l, d, o)
	require.NoError(t, err)
	go func() { s.served <- s.Serve() }()
	t.Cleanup(func() {
		require.NoError(t, s.Close())
		select {
		case err := <-s.served:
			require.NoError(t, err)
		case <-time.After(soon):
			require.Fail(t, "Serve did not return")
		}
		require.Eventually(t, func() bool { return s.Running() == 0 }, soon, time.Millisecond, "requests are left")
		require.Eventually(t, func() bool { return s.bodies.used.Load() == 0 }, soon, time.Millisecond, "the budget leaks")
		require.Equal(t, d.begun.Load(), d.ended.Load(), "each exchange is closed exactly once")
		require.NoError(t, log.Close())
	})
	return s
}

// dial connects as a caller would, for raw bytes.
func (s *site) dial(t testing.TB) *net.TCPConn {
	t.Helper()
	c, err := net.Dial("tcp", s.Addr().String())
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close() })
	require.NoError(t, c.SetDeadline(time.Now().Add(soon)))
	return c.(*net.TCPConn)
}

// say sends bytes and reads one answer. The connection stays open.
func say(t testing.TB, c net.Conn, r *bufio.Reader, text string) (*http.Response, string) {
	t.Helper()
	_, err := io.WriteString(c, text)
	require.NoError(t, err)
	return hear(t, r)
}

func hear(t testing.TB, r *bufio.Reader) (*http.Response, string) {
	t.Helper()
	resp, err := http.ReadResponse(r, nil)
	require.NoError(t, err)
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp, string(body)
}

// post renders a request with the right key.
func post(path, body string, more ...string) string {
	var b strings.Builder
	b.WriteString("POST " + path + " HTTP/1.1\r\nhost: gateway\r\nauthorization: Bearer " + key + "\r\n")
	for _, line := range more {
		b.WriteString(line + "\r\n")
	}
	b.WriteString("content-length: " + itoa(len(body)) + "\r\n\r\n" + body)
	return b.String()
}

func get(path string, more ...string) string {
	lines := append([]string{"GET " + path + " HTTP/1.1", "host: gateway", "authorization: Bearer " + key}, more...)
	return strings.Join(lines, "\r\n") + "\r\n\r\n"
}

func itoa(n int) string {
	b, _ := json.Marshal(n)
	return string(b)
}

const chat = "/v1/chat/completions"

// refusedWith checks an error of the front's own, shape and headers.
func refusedWith(t testing.TB, resp *http.Response, body string, status int, code string) {
	t.Helper()
	require.Equal(t, status, resp.StatusCode, body)
	require.Equal(t, "application/json", resp.Header.Get("Content-Type"))
	id := resp.Header.Get("X-Request-Id")
	require.Regexp(t, `^req_[0-9A-Z]{26}$`, id)
	require.Contains(t, []string{"true", "false"}, resp.Header.Get("X-Should-Retry"))
	var e struct {
		Error struct {
			Message, Type, Code string
			Interlock           struct {
				RequestID string `json:"request_id"`
				Terminal  string
			}
		}
	}
	require.NoError(t, json.Unmarshal([]byte(body), &e), body)
	require.Equal(t, code, e.Error.Code)
	require.NotEmpty(t, e.Error.Type)
	require.Contains(t, e.Error.Message, "(request "+id+")")
	require.Equal(t, id, e.Error.Interlock.RequestID)
	require.Equal(t, "policy_stop", e.Error.Interlock.Terminal)
}

// closedNow checks that the server has closed the connection, and said nothing more.
func closedNow(t testing.TB, c net.Conn, r io.Reader) {
	t.Helper()
	require.NoError(t, c.SetReadDeadline(time.Now().Add(soon)))
	rest, err := io.ReadAll(r)
	require.NoError(t, err)
	require.Empty(t, string(rest))
}

func drained(t testing.TB, s *site, limit time.Duration) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	return s.Drain(ctx)
}
