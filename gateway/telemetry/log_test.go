package telemetry

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// logged runs f with a log and returns what was written.
func logged(t *testing.T, o LogOptions, f func(*Log)) string {
	t.Helper()
	var out bytes.Buffer
	o.Output = &out
	l, err := NewLog(o)
	require.NoError(t, err)
	f(l)
	require.NoError(t, l.Close())
	return out.String()
}

var attempt = AttemptLine{
	RequestID: "req_1", CorrelationID: "caller\n\"1\"", UserAction: "ua", ClientRetry: 0, Attempt: 2, Cause: "same_route_retry",
	Group: "primary", Channel: "eu", Model: "gpt-5-mini", Class: "network", Phase: "before_headers", Reason: "matrix",
	Delay: 250 * time.Millisecond, TimeLeft: 9 * time.Second, Circuit: "closed",
}

func keys(t *testing.T, line string) []string {
	t.Helper()
	var m map[string]any
	require.NoError(t, json.Unmarshal([]byte(line), &m), line)
	var list []string
	for k := range m {
		list = append(list, k)
	}
	sort.Strings(list)
	return list
}

func TestAttemptClosed(t *testing.T) {
	line := logged(t, LogOptions{}, func(l *Log) { l.AttemptClosed(&attempt) })
	require.Equal(t, strings.Fields("attempt cause channel circuit class client_retry correlation_id delay_ms group "+
		"level model msg phase reason request_id time time_left_ms user_action"), keys(t, line))
	require.Equal(t, 1, strings.Count(line, "\n"), "a caller's text cannot start a line")
	require.Contains(t, line, `"delay_ms":250,"time_left_ms":9000`)
	require.Contains(t, line, `"client_retry":0`)
}

func TestRequestEnded(t *testing.T) {
	line := logged(t, LogOptions{Format: "json", Level: "info"}, func(l *Log) {
		l.RequestEnded(&RequestLine{RequestID: "req_1", ClientRetry: -1, Terminal: "success", Attempts: 2, Cause: "same_contract_fallback", Status: 200})
	})
	require.Equal(t, strings.Fields("attempts cause client_retry correlation_id level msg request_id status terminal time user_action"), keys(t, line))
	require.Contains(t, line, `"client_retry":null`)
	require.NotContains(t, strings.ReplaceAll(line, "client_retry", ""), "retry")
}

func TestLevels(t *testing.T) {
	require.Empty(t, logged(t, LogOptions{Level: "warn"}, func(l *Log) {
		l.AttemptClosed(&attempt)
		l.RequestEnded(&RequestLine{})
		l.Info("no")
	}))
	require.Contains(t, logged(t, LogOptions{Level: "debug", Format: "text"}, func(l *Log) { l.Debug("yes") }), `msg=yes`)
	require.Contains(t, logged(t, LogOptions{Level: "error"}, func(l *Log) { l.Error("yes") }), `"msg":"yes"`)
}

func TestBadLogOptions(t *testing.T) {
	_, err := NewLog(LogOptions{Level: "loud"})
	require.EqualError(t, err, `log.level "loud" is not one of debug, info, warn, error`)
	_, err = NewLog(LogOptions{Format: "xml"})
	require.EqualError(t, err, `log.format "xml" is not one of json, text`)
}

// stuck is a reader that stands still until it is let go.
type stuck struct {
	bytes.Buffer
	entered chan struct{}
	once    sync.Once
	release chan struct{}
}

func (s *stuck) Write(p []byte) (int, error) {
	s.once.Do(func() { close(s.entered) })
	<-s.release
	return s.Buffer.Write(p)
}

// TestSlowReader: logging never waits for the reader, and what is lost is reported.
func TestSlowReader(t *testing.T) {
	out := &stuck{entered: make(chan struct{}), release: make(chan struct{})}
	l, err := NewLog(LogOptions{Output: out})
	require.NoError(t, err)
	l.Info("first")
	<-out.entered
	text := strings.Repeat("x", 1000)
	for i := range 3000 {
		l.Info("many", "n", i, "text", text)
	}
	close(out.release)
	require.NoError(t, l.Close())
	require.Less(t, out.Len(), sinkLimit+64<<10)
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	var lost int
	for _, line := range lines {
		var m map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &m))
		if n, ok := m["lines"].(float64); ok {
			lost += int(n)
		}
	}
	require.Positive(t, lost)
	require.Equal(t, 3001, len(lines)-1+lost, "every line is written or counted")
}

func TestLogHammer(t *testing.T) {
	out := logged(t, LogOptions{}, func(l *Log) {
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for range 100 {
					l.AttemptClosed(&attempt)
				}
			})
		}
		wg.Wait()
	})
	require.Equal(t, 800, strings.Count(out, "\n"))
}

func TestFailingOutput(t *testing.T) {
	r, w := io.Pipe()
	require.NoError(t, r.Close())
	l, err := NewLog(LogOptions{Output: w})
	require.NoError(t, err)
	l.Info("lost")
	require.ErrorIs(t, l.Close(), io.ErrClosedPipe)
}

// TestSecret: no way of printing shows it.
func TestSecret(t *testing.T) {
	const hidden = "sk-canary-123"
	type holder struct {
		Key  Secret
		Deep map[string]Secret
		Ptr  *Secret
	}
	s := Secret(hidden)
	h := holder{Key: s, Deep: map[string]Secret{"k": s}, Ptr: &s}
	var out strings.Builder
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%10s", "%t"} {
		fmt.Fprintf(&out, verb+" "+verb+" "+verb+"\n", s, h.Key, &s)
		fmt.Fprintf(&out, verb+"\n", []Secret{s})
		fmt.Fprintf(&out, verb+"\n", h.Deep)
	}
	fmt.Fprintln(&out, s, h.Key, h.Deep, fmt.Errorf("bad key %v", s))
	encoded, err := json.Marshal(h)
	require.NoError(t, err)
	out.Write(encoded)
	for _, format := range []string{"json", "text"} {
		out.WriteString(logged(t, LogOptions{Format: format}, func(l *Log) {
			l.Info("x", "key", s, "holder", h, "list", []Secret{s}, slog.Any("any", s))
		}))
	}
	require.NotContains(t, out.String(), hidden)
	require.NotContains(t, out.String(), fmt.Sprintf("%x", hidden))
	require.Contains(t, string(encoded), Redacted)
	require.Equal(t, hidden, s.Reveal())
	y, err := s.MarshalYAML()
	require.NoError(t, err)
	require.Equal(t, Redacted, y)
}

func BenchmarkAttemptClosed(b *testing.B) {
	l, err := NewLog(LogOptions{Output: io.Discard})
	require.NoError(b, err)
	defer l.Close()
	b.ReportAllocs()
	for b.Loop() {
		l.AttemptClosed(&attempt)
	}
}

func BenchmarkCountRequest(b *testing.B) {
	m := configured()
	r := RequestCount{"chat_completions", "gpt-5-mini", "success", "initial", 1, time.Second, time.Millisecond}
	b.ReportAllocs()
	for b.Loop() {
		m.CountRequest(r)
	}
}
