// Package status owns the reports on what became of the policy's bundles, in the format of OPA's
// status API: to the gateway's own log, a file, or a server that takes OPA's.
//
//	Changed → one goroutine → console, file, the latest report → one goroutine → POST …/status
//
// A report holds all there is to know, so that a later one stands for those before it: what a
// server is too slow for is replaced, and nothing piles up. Nothing here is on a request's path. The
// package must not change what it reports, and shows no secret.
package status

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/interlock-gateway/interlock/gateway/policy"
	"github.com/interlock-gateway/interlock/gateway/policy/peer"
	"github.com/interlock-gateway/interlock/gateway/policy/sink"
)

const (
	everySoOften = time.Minute     // a server is told that there is nothing new
	closeTimeout = 5 * time.Second // of what is still to be sent at the end
	consoleWords = "Status Log"    // OPA's own words for it
	code         = "bundle_error"  // and the one code that it has
)

// Bundle is what became of one bundle. Revision is as the ledger has it; "" = none is in force.
type Bundle struct {
	Name, Revision                string
	Request, Answered, Downloaded time.Time // the last time that it was asked for, had an answer, came
	Activated                     time.Time
	Size                          int   // of what was downloaded, bytes
	Err                           error // why the latest change is not in force
}

// Plugin is the state of a part of the gateway, in OPA's words: OK, WARN, NOT_READY, ERROR.
type Plugin struct {
	State   string `json:"state"`
	Message string `json:"message,omitempty"`
}

// Report is what is known.
type Report struct {
	Bundles []Bundle
	Plugins map[string]Plugin
}

// Options of a Reporter. At least one of Console, File and URL is given; the rest is required.
type Options struct {
	Console *slog.Logger
	File    string       // one report a line; opened anew when it was moved away
	URL     string       // of a server that takes OPA's status; /status is added, as OPA does
	Peer    peer.Options // who asks it, and whom to believe

	Instance, Version string // labels, as in the decision log
	Report            func() Report
	Log               *slog.Logger
}

// Reporter reports. Its methods may be called from any goroutine.
type Reporter struct {
	o      Options
	labels map[string]string
	file   *sink.File
	server *sink.Server

	news   chan struct{}
	stop   chan struct{}
	latest chan []byte // room for one
	wg     sync.WaitGroup
	ctx    context.Context
	cancel context.CancelFunc
	once   sync.Once
}

// Open starts a reporter, which owns one goroutine, and one more with a URL, until Close. It
// reports when it is told of a change. An error is of the file or a certificate.
func Open(o Options) (*Reporter, error) {
	r := &Reporter{
		o: o, labels: map[string]string{"app": "interlock", "id": o.Instance, "version": o.Version},
		news: make(chan struct{}, 1), stop: make(chan struct{}), latest: make(chan []byte, 1),
	}
	var err error
	if o.URL != "" {
		if r.server, err = sink.NewServer(sink.At(o.URL, "status"), o.Peer); err != nil {
			return nil, err
		}
	}
	if o.File != "" {
		if r.file, err = sink.OpenFile(o.File); err != nil {
			return nil, err
		}
	}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	r.wg.Go(r.run)
	if r.server != nil {
		r.wg.Go(r.send)
	}
	return r, nil
}

// Changed says that there may be something new. It never waits.
func (r *Reporter) Changed() {
	select {
	case r.news <- struct{}{}:
	default:
	}
}

// Close reports once more where there is something new, and waits until it is sent: for no longer
// than five seconds, or until ctx ends.
func (r *Reporter) Close(ctx context.Context) (err error) {
	r.once.Do(func() {
		ctx, cancel := context.WithTimeout(ctx, closeTimeout)
		defer cancel()
		defer context.AfterFunc(ctx, r.cancel)()
		close(r.stop)
		r.wg.Wait()
		r.cancel()
		if r.server != nil {
			r.server.Close()
		}
		if r.file != nil {
			err = r.file.Close()
		}
	})
	return err
}

func (r *Reporter) run() {
	defer close(r.latest)
	tick := time.NewTicker(everySoOften)
	defer tick.Stop()
	var told []byte
	for over := false; !over; {
		due := false
		select {
		case <-r.news:
		case <-tick.C:
			due = true
		case <-r.stop:
			over = true
		}
		report := r.o.Report()
		now, err := json.Marshal(r.wire(report, false))
		if err != nil {
			r.o.Log.Error("no status report can be made", "error", err.Error())
			continue
		}
		fresh := !bytes.Equal(now, told)
		if !fresh && !due {
			continue
		}
		told = now
		r.tell(r.wire(report, true), fresh)
	}
}

// tell hands one report on. The console and the file have only what is new.
func (r *Reporter) tell(w *wire, fresh bool) {
	body, err := json.Marshal(w)
	if err != nil {
		return // it was marshalled a moment ago
	}
	if fresh && r.o.Console != nil {
		r.o.Console.LogAttrs(context.Background(), slog.LevelInfo, consoleWords, slog.Any("labels", w.Labels),
			slog.Any("bundles", w.Bundles), slog.Any("plugins", w.Plugins), slog.String("type", "openpolicyagent.org/status"))
	}
	if fresh && r.file != nil {
		err := r.file.Write(time.Now(), append(bytes.Clone(body), '\n'))
		if r.file.Fails(err != nil) && err != nil {
			r.o.Log.Error("status reports cannot be written", "file", r.o.File, "error", err.Error())
		}
	}
	if r.server != nil {
		select { // only this goroutine puts something in
		case <-r.latest:
		default:
		}
		r.latest <- body
	}
}

// send posts the latest report until the server has it, a later one is there, or time is up.
func (r *Reporter) send() {
	failing := false
	for body := range r.latest {
		for pause := sink.FirstPause; ; pause = pause.Next() {
			err := r.server.Post(r.ctx, body, false)
			if failing && err == nil {
				r.o.Log.Info("status reports are taken again", "url", r.server.Shown())
			}
			if !failing && err != nil {
				r.o.Log.Error("the server did not take a status report", "url", r.server.Shown(), "error", err.Error())
			}
			failing = err != nil
			if err == nil || sink.Final(err) || r.ctx.Err() != nil || len(r.latest) > 0 {
				break
			}
			pause.Wait(r.ctx.Done())
		}
	}
}

// wire is a report as OPA's status API has it.
type wire struct {
	Labels  map[string]string     `json:"labels"`
	Bundles map[string]wireBundle `json:"bundles"`
	Plugins map[string]Plugin     `json:"plugins"`
}

type wireBundle struct {
	Name       string      `json:"name"`
	Revision   string      `json:"active_revision,omitempty"`
	Activated  time.Time   `json:"last_successful_activation"`
	Type       string      `json:"type"`
	Size       int         `json:"size,omitempty"`
	Downloaded time.Time   `json:"last_successful_download"`
	Answered   time.Time   `json:"last_successful_request"`
	Request    time.Time   `json:"last_request"`
	Code       string      `json:"code,omitempty"`
	Message    string      `json:"message,omitempty"`
	Errors     []wireFault `json:"errors,omitempty"`
	HTTPCode   json.Number `json:"http_code,omitempty"`
}

type wireFault struct {
	Code     string        `json:"code"`
	Message  string        `json:"message"`
	Location *wireLocation `json:"location,omitempty"`
}

type wireLocation struct {
	File string `json:"file"`
	Row  int    `json:"row"`
	Col  int    `json:"col"`
}

// wire puts a report into OPA's form; without times it holds only what is news.
func (r *Reporter) wire(report Report, times bool) *wire {
	w := &wire{Labels: r.labels, Bundles: make(map[string]wireBundle, len(report.Bundles)), Plugins: report.Plugins}
	for _, b := range report.Bundles {
		one := wireBundle{Name: b.Name, Revision: b.Revision, Type: "snapshot", Size: b.Size, Activated: b.Activated.UTC()}
		if times {
			one.Downloaded, one.Answered, one.Request = b.Downloaded.UTC(), b.Answered.UTC(), b.Request.UTC()
		}
		if b.Err != nil {
			one.Code, one.Message = code, b.Err.Error()
			if status := policy.AnsweredStatus(b.Err); status != 0 {
				one.HTTPCode = json.Number(strconv.Itoa(status))
			}
			var faults policy.Errors
			if errors.As(b.Err, &faults) {
				one.Errors = wireFaults(faults)
			}
		}
		w.Bundles[b.Name] = one
	}
	return w
}

func wireFaults(faults policy.Errors) []wireFault {
	list := make([]wireFault, len(faults))
	for i, f := range faults {
		list[i] = wireFault{Code: code, Message: f.Message}
		if f.File != "" {
			list[i].Location = &wireLocation{File: f.File, Row: f.Line, Col: f.Column}
		}
	}
	return list
}
