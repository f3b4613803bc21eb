package decisionlog

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/interlock-gateway/interlock/gateway/policy/backlog"
	"github.com/interlock-gateway/interlock/gateway/policy/peer"
	"github.com/interlock-gateway/interlock/gateway/policy/sink"
)

const (
	waitingEvents = 16_384                // that requests may be ahead of the log
	takeEvery     = 50 * time.Millisecond // how long an event waits at most while there is room
	reportEvery   = 10 * time.Second      // how often losses are told at most
	closeTimeout  = 5 * time.Second       // of what is still to be sent at the end
	dropsMessage  = "decisions dropped from the decision log: what takes them is too slow"
	failsMessage  = "the decision log cannot be written"
	worksMessage  = "the decision log is written again"
	consoleEvents = "Decision Log" // OPA's own words for it
)

// Options say where events go. At least one of Console, File and URL is given; Log is required.
type Options struct {
	Console *slog.Logger // nil = not there
	File    string       // one event a line; opened anew when it was moved away or removed
	URL     string       // of a server that takes OPA's decision logs; /logs is added, as OPA does
	Peer    peer.Options // who asks it, and whom to believe

	Instance string // tells this gateway's events from another's
	Version  string // of the gateway

	Log     *slog.Logger  // where trouble is told
	Dropped func(n int64) // counts events that were lost; nil = not
}

// Log is a decision log. Its methods may be called from any goroutine.
type Log struct {
	options Options
	labels  []byte
	backlog *backlog.Backlog[Event]
	file    *sink.File
	server  *server
	lost    losses

	stop chan struct{}
	done chan struct{}
	once sync.Once
	err  error // of Close
}

// Open starts a decision log: it owns one goroutine, and one more with a URL, until Close. The
// error is the file's, or that of a certificate.
func Open(o Options) (*Log, error) {
	l := &Log{options: o, backlog: newBacklog(), stop: make(chan struct{}), done: make(chan struct{})}
	l.lost = losses{log: o.Log, count: o.Dropped}
	l.labels, _ = json.Marshal(map[string]string{"app": "interlock", "id": o.Instance, "version": o.Version}) // texts marshal
	if o.File != "" {
		f, err := sink.OpenFile(o.File)
		if err != nil {
			return nil, err
		}
		l.file = f
	}
	if o.URL != "" {
		s, err := newServer(&o, &l.lost)
		if err != nil {
			if l.file != nil {
				err = errors.Join(err, l.file.Close())
			}
			return nil, err
		}
		l.server = s
	}
	go l.run()
	return l, nil
}

// Add logs an event. It never waits and does not allocate; the event's record is only referred
// to. After Close events are lost.
func (l *Log) Add(e Event) { l.backlog.Add(e) }

// Close writes and sends what is still there, for no longer than five seconds or until ctx
// ends. What is left then is counted as lost.
func (l *Log) Close(ctx context.Context) error {
	l.once.Do(func() { l.err = l.end(ctx) })
	return l.err
}

func (l *Log) end(ctx context.Context) error {
	l.backlog.Close()
	close(l.stop)
	<-l.done
	var err error
	if l.file != nil {
		err = l.file.Close()
	}
	if l.server != nil {
		ctx, cancel := context.WithTimeout(ctx, closeTimeout)
		defer cancel()
		l.server.close(ctx)
	}
	l.lost.tell(time.Now(), true)
	return err
}

// run takes events and hands them on until Close.
func (l *Log) run() {
	defer close(l.done)
	tick := time.NewTicker(takeEvery)
	defer tick.Stop()
	var events []Event
	var lines []byte
	for closing := false; !closing; {
		select {
		case <-tick.C:
		case <-l.backlog.Urgent():
		case <-l.stop:
			closing = true
		}
		events = l.backlog.Take(events[:0])
		slices.SortStableFunc(events, func(a, b Event) int { return a.At.Compare(b.At) })
		now := time.Now()
		lines = l.write(now, events, lines[:0])
		clear(events)
		l.lost.add(l.backlog.Lost())
		l.lost.tell(now, false)
	}
}

// write hands events to everything that takes them. It returns its buffer, for the next time.
func (l *Log) write(now time.Time, events []Event, lines []byte) []byte {
	if len(events) == 0 {
		return lines
	}
	for i := range events {
		fields := events[i].fields(l.labels)
		start := len(lines)
		lines = appendTo(lines, fields)
		if l.server != nil {
			l.server.add(now, lines[start:])
		}
		lines = append(lines, '\n')
		if l.options.Console != nil {
			l.print(fields)
		}
	}
	if l.file != nil {
		if err := l.file.Write(now, lines); err != nil {
			l.lost.add(int64(len(events)))
			if l.file.Fails(true) {
				l.options.Log.Error(failsMessage, "file", l.options.File, "error", err.Error())
			}
		} else if l.file.Fails(false) {
			l.options.Log.Info(worksMessage, "file", l.options.File)
		}
	}
	return lines
}

// print writes an event to the console as OPA writes it to its own: as fields of one line.
func (l *Log) print(fields []field) {
	attrs := make([]slog.Attr, 0, len(fields)+1)
	for _, f := range fields {
		attrs = append(attrs, slog.Any(f.name, json.RawMessage(f.value)))
	}
	attrs = append(attrs, slog.String("type", "openpolicyagent.org/decision_logs"))
	l.options.Console.LogAttrs(context.Background(), slog.LevelInfo, consoleEvents, attrs...)
}

// losses are events that did not reach what they were for.
type losses struct {
	log   *slog.Logger
	count func(int64)

	mu     sync.Mutex
	untold int64
	told   time.Time
}

func (l *losses) add(n int64) {
	if n == 0 {
		return
	}
	if l.count != nil {
		l.count(n)
	}
	l.mu.Lock()
	l.untold += n
	l.mu.Unlock()
}

// tell reports what was lost since it was told last, at once where that is long ago.
func (l *losses) tell(now time.Time, last bool) {
	l.mu.Lock()
	n := l.untold
	if n == 0 || !last && now.Sub(l.told) < reportEvery {
		l.mu.Unlock()
		return
	}
	l.untold, l.told = 0, now
	l.mu.Unlock()
	l.log.Error(dropsMessage, "events", n)
}

func newBacklog() *backlog.Backlog[Event] { return backlog.New[Event](waitingEvents) }
