package decisionlog

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/open-policy-agent/opa/v1/plugins/logs"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/interlock-gateway/interlock/gateway/policy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const soon = 10 * time.Second

// said is a log that tests read.
type said struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func (s *said) logger() *slog.Logger { return slog.New(slog.NewJSONHandler(s, nil)) }

func open(t *testing.T, o Options) *Log {
	t.Helper()
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.Instance, o.Version = "gw-1", "v1.2.3"
	l, err := Open(o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Close(context.Background())) })
	return l
}

var at = time.Date(2026, 5, 4, 3, 2, 1, 123456789, time.UTC)

func event(n int) Event {
	return Event{
		At: at.Add(time.Duration(n) * time.Millisecond), RequestID: "req_01", Ordinal: n, Attempt: 1, Key: "web-app",
		Took: 42 * time.Microsecond, Record: &policy.Record{
			Point: policy.PointReplay, Revision: "team@7-0123456789ab,builtin@abcdef012345", Hash: "cafe",
			Input:  []byte(`{"failure":{"class":"overloaded"}}`),
			Output: []byte(`{"actions":["stop"],"reason":"because","rule":"replay.default"}`),
		},
	}
}

// collector is a server that reads decision logs as OPA's own type has them.
type collector struct {
	*httptest.Server
	mu      sync.Mutex
	status  int
	batches [][]logs.EventV1
	faults  []string
	paths   []string
}

func newCollector(t *testing.T) *collector {
	c := &collector{status: http.StatusOK}
	c.Server = httptest.NewServer(http.HandlerFunc(c.take))
	t.Cleanup(c.Close)
	return c
}

func (c *collector) take(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.paths = append(c.paths, r.Method+" "+r.URL.Path)
	if c.status >= 300 {
		w.WriteHeader(c.status)
		return
	}
	var batch []logs.EventV1
	body, err := gzip.NewReader(r.Body)
	if err == nil {
		err = json.NewDecoder(body).Decode(&batch)
	}
	if r.Header.Get("Content-Encoding") != "gzip" || r.Header.Get("Content-Type") != "application/json" {
		err = errors.Join(err, errors.New("not what OPA sends"))
	}
	if err != nil {
		c.faults = append(c.faults, err.Error())
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	c.batches = append(c.batches, batch)
}

func (c *collector) answer(status int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.status = status
}

func (c *collector) events(t *testing.T) (all []logs.EventV1) {
	c.mu.Lock()
	defer c.mu.Unlock()
	require.Empty(t, c.faults)
	for _, b := range c.batches {
		all = append(all, b...)
	}
	return all
}

func (c *collector) asked() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.paths)
}

// What a collector of OPA's reads is what was decided.
func TestAStockCollectorReadsIt(t *testing.T) {
	c := newCollector(t)
	l := open(t, Options{URL: c.URL + "/tenant"})
	failed := event(2)
	failed.Err = errors.New("policy decision replay: timeout: no decision within 250ms")
	cached := event(3)
	cached.Cached, cached.Took = true, 0
	for _, e := range []Event{event(1), failed, cached} {
		l.Add(e)
	}
	require.Eventually(t, func() bool { return len(c.events(t)) == 3 }, soon, time.Millisecond)
	require.Equal(t, "POST /tenant/logs", c.paths[0])
	all := c.events(t)
	e := all[0]
	require.Equal(t, map[string]string{"app": "interlock", "id": "gw-1", "version": "v1.2.3"}, e.Labels)
	require.Equal(t, "req_01.1", e.DecisionID)
	require.Equal(t, map[string]logs.BundleInfoV1{
		"team": {Revision: "team@7-0123456789ab"}, "builtin": {Revision: "builtin@abcdef012345"},
	}, e.Bundles)
	require.Equal(t, "interlock/replay/decision", e.Path)
	require.Equal(t, map[string]any{"failure": map[string]any{"class": "overloaded"}}, *e.Input)
	require.Equal(t, []any{"stop"}, (*e.Result).(map[string]any)["actions"])
	require.Equal(t, "web-app", e.RequestedBy)
	require.True(t, e.Timestamp.Equal(at.Add(time.Millisecond)))
	require.InDelta(t, 42_000, e.Metrics["timer_rego_query_eval_ns"], 0)
	require.Equal(t, "req_01", e.Custom["request_id"])
	require.Nil(t, e.Error)
	require.Contains(t, all[1].Custom["error"], "timeout")
	require.Equal(t, true, all[2].Custom["cached"])
	require.Nil(t, all[2].Metrics)
	value, err := e.AST()
	require.NoError(t, err, "OPA's own view of it")
	require.Contains(t, value.String(), "req_01.1")
}

// The server is away: nothing is lost while there is room, and its return is told.
func TestServerComesBack(t *testing.T) {
	c := newCollector(t)
	c.answer(http.StatusServiceUnavailable)
	var log said
	l := open(t, Options{URL: c.URL, Log: log.logger(), Dropped: func(int64) { t.Error("nothing is lost") }})
	for i := range 100 {
		l.Add(event(i))
	}
	require.Eventually(t, func() bool { return c.asked() >= 2 }, soon, time.Millisecond)
	require.Contains(t, log.String(), "the server answered 503")
	c.answer(http.StatusOK)
	require.Eventually(t, func() bool { return len(c.events(t)) == 100 }, soon, time.Millisecond)
	require.Eventually(t, func() bool { return strings.Contains(log.String(), worksMessage) }, soon, time.Millisecond)
	for i, e := range c.events(t) {
		require.True(t, e.Timestamp.Equal(event(i).At), "in the order of the decisions")
	}
}

// What the server will never take is not in the way of what follows.
func TestRefusedBatchIsDropped(t *testing.T) {
	c := newCollector(t)
	c.answer(http.StatusRequestEntityTooLarge)
	var log said
	lost := make(chan int64, 10)
	l := open(t, Options{URL: c.URL, Log: log.logger(), Dropped: func(n int64) { lost <- n }})
	l.Add(event(1))
	require.EqualValues(t, 1, <-lost)
	c.answer(http.StatusOK)
	l.Add(event(2))
	require.Eventually(t, func() bool { return len(c.events(t)) == 1 }, soon, time.Millisecond)
	require.Equal(t, "req_01.2", c.events(t)[0].DecisionID)
	require.Contains(t, log.String(), "answered 413")
}

// A server that stands still costs a bounded amount of memory: the oldest events go first.
func TestServerThatFallsBehind(t *testing.T) {
	var log said
	var dropped int64
	lost := losses{log: log.logger(), count: func(n int64) { dropped += n }}
	s := &server{grown: make(chan struct{}, 1), lost: &lost}
	one := bytes.Repeat([]byte("x"), 1000)
	added := int64(0)
	for range 2 * unsentBytes / len(one) {
		s.add(at, one)
		added++
	}
	require.LessOrEqual(t, s.bytes, unsentBytes)
	require.Greater(t, s.bytes, unsentBytes/2)
	kept := int64(0)
	for _, b := range s.batches {
		require.LessOrEqual(t, len(b.body), batchBytes)
		kept += b.events
	}
	require.Equal(t, added, kept+dropped)
	lost.tell(at, true)
	require.Contains(t, log.String(), dropsMessage)
	require.Equal(t, 1, strings.Count(log.String(), "\n"))
}

// Closing waits for a server only so long, and says what it did not take.
func TestCloseGivesUp(t *testing.T) {
	hold := make(chan struct{})
	still := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		select {
		case <-hold:
		case <-r.Context().Done():
		}
	}))
	defer still.Close()
	defer close(hold)
	var log said
	lost := make(chan int64, 10)
	l, err := Open(Options{URL: still.URL, Log: log.logger(), Dropped: func(n int64) { lost <- n }})
	require.NoError(t, err)
	l.Add(event(1))
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	require.NoError(t, l.Close(ended))
	require.EqualValues(t, 1, <-lost)
	l.Add(event(2)) // nobody is there; nothing happens
}

func lines(t *testing.T, path string) (all []map[string]any) {
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	require.NoError(t, err)
	for line := range strings.Lines(string(b)) {
		var e map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &e), line)
		all = append(all, e)
	}
	return all
}

// A file that is moved away is left alone, and the next events begin a new one.
func TestFileIsOpenedAnewWhenMoved(t *testing.T) {
	path := filepath.Join(t.TempDir(), "decisions.log")
	l := open(t, Options{File: path})
	l.Add(event(1))
	require.Eventually(t, func() bool { return len(lines(t, path)) == 1 }, soon, time.Millisecond)
	require.NoError(t, os.Rename(path, path+".1"))
	n := 1
	require.Eventually(t, func() bool {
		n++
		l.Add(event(n))
		return len(lines(t, path)) > 0
	}, soon, 100*time.Millisecond)
	require.NoError(t, l.Close(context.Background()))
	before, after := lines(t, path+".1"), lines(t, path)
	require.Len(t, append(before, after...), n, "none is lost between")
	require.Equal(t, "req_01.1", before[0]["decision_id"])
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
}

func TestFileThatCannotBeWritten(t *testing.T) {
	_, err := Open(Options{File: filepath.Join(t.TempDir(), "nowhere", "decisions.log")})
	require.Error(t, err)
}

func TestConsoleIsOPAs(t *testing.T) {
	var console said
	l := open(t, Options{Console: console.logger()})
	l.Add(event(1))
	require.NoError(t, l.Close(context.Background()))
	var line map[string]any
	require.NoError(t, json.Unmarshal([]byte(console.String()), &line))
	require.Equal(t, "Decision Log", line["msg"])
	require.Equal(t, "openpolicyagent.org/decision_logs", line["type"])
	require.Equal(t, "interlock/replay/decision", line["path"])
	require.Equal(t, "req_01.1", line["decision_id"])
	require.Equal(t, "because", line["result"].(map[string]any)["reason"])
}

func TestAddAllocatesNothing(t *testing.T) {
	l := &Log{backlog: newBacklog()}
	var taken []Event
	e := event(1)
	round := func() {
		for range 1000 {
			l.Add(e)
		}
		taken = l.backlog.Take(taken[:0])
	}
	for range 5 {
		round()
	}
	require.Less(t, testing.AllocsPerRun(20, round), 20.0, "per 1000 events")
}

func BenchmarkAdd(b *testing.B) {
	l, err := Open(Options{File: os.DevNull, Log: slog.New(slog.DiscardHandler)})
	require.NoError(b, err)
	defer l.Close(context.Background()) //nolint:errcheck // nothing is kept
	e := event(1)
	b.ReportAllocs()
	for b.Loop() {
		l.Add(e)
	}
}
