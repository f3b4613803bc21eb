package trial

import (
	"context"
	"hash/fnv"
	"reflect"
	"sync"
	"time"

	"github.com/interlock-gateway/interlock/gateway/failure"
	"github.com/interlock-gateway/interlock/gateway/policy"
	"github.com/interlock-gateway/interlock/gateway/policy/backlog"
)

// waiting bounds the decisions of one point that wait to be compared; takeEvery is how long they
// wait at most while there is room.
const (
	waiting   = 4096
	takeEvery = 20 * time.Millisecond
)

// Options of a Trial.
type Options struct {
	Active, Candidate *policy.Revision
	Canary            bool    // the candidate decides for a share of the keys
	Percent           float64 // that share, 0 to 100
	// Compared and Differs, which may be nil, count. They are called from the trial's goroutine.
	Compared func(point string)
	Differs  func(point, class, key string)
}

// Trial is a candidate beside the revision in use. Its methods may be called from any goroutine;
// those of the points never wait. It owns one goroutine until Close.
type Trial struct {
	options Options
	tally   *tally

	admission    point[policy.AdmissionInput, policy.Admission]
	failure      point[policy.FailureInput, policy.Failure]
	substitution point[policy.SubstitutionInput, policy.Substitution]
	replay       point[policy.ReplayInput, policy.Replay]

	ctx  context.Context
	stop context.CancelFunc
	done chan struct{}
	once sync.Once
}

// Asker is whose decision it is.
type Asker struct{ RequestID, Key string }

// point compares the decisions of one point.
type point[I, D any] struct {
	of      policy.Point
	backlog *backlog.Backlog[decided[I, D]]
	batch   []decided[I, D]
	ask     func(*policy.Revision, context.Context, *I) (D, policy.Meta)
	detail  func(*I, *policy.Detail)
	class   func(*I, *D) failure.Class
	effect  func(D) D // without what only explains it
}

// decided is a decision that was made, and what to ask the other revision.
type decided[I, D any] struct {
	at       time.Time
	asker    Asker
	in       I
	detail   policy.Detail
	decision D
	record   *policy.Record
	beside   *policy.Revision
}

// New starts a trial.
func New(o Options) *Trial {
	t := &Trial{options: o, tally: newTally(), done: make(chan struct{})}
	t.admission = point[policy.AdmissionInput, policy.Admission]{
		of:     policy.PointAdmission,
		ask:    (*policy.Revision).Admission,
		detail: func(in *policy.AdmissionInput, d *policy.Detail) { in.Detail = d },
		class:  func(*policy.AdmissionInput, *policy.Admission) failure.Class { return failure.None },
		effect: func(d policy.Admission) policy.Admission { d.Reason, d.Rule = "", ""; return d },
	}
	t.failure = point[policy.FailureInput, policy.Failure]{
		of:     policy.PointFailure,
		ask:    (*policy.Revision).Failure,
		detail: func(in *policy.FailureInput, d *policy.Detail) { in.Detail = d },
		class:  func(_ *policy.FailureInput, d *policy.Failure) failure.Class { return d.Class },
		effect: func(d policy.Failure) policy.Failure { d.Reason, d.Rule = "", ""; return d },
	}
	t.substitution = point[policy.SubstitutionInput, policy.Substitution]{
		of:     policy.PointSubstitution,
		ask:    (*policy.Revision).Substitution,
		detail: func(in *policy.SubstitutionInput, d *policy.Detail) { in.Detail = d },
		class:  func(in *policy.SubstitutionInput, _ *policy.Substitution) failure.Class { return in.Class },
		effect: func(d policy.Substitution) policy.Substitution { d.Reason, d.Rule = "", ""; return d },
	}
	t.replay = point[policy.ReplayInput, policy.Replay]{
		of:     policy.PointReplay,
		ask:    (*policy.Revision).Replay,
		detail: func(in *policy.ReplayInput, d *policy.Detail) { in.Detail = d },
		class:  func(in *policy.ReplayInput, _ *policy.Replay) failure.Class { return in.Failure.Class },
		effect: func(d policy.Replay) policy.Replay { d.Reason, d.Rule = "", ""; return d },
	}
	t.admission.backlog = backlog.New[decided[policy.AdmissionInput, policy.Admission]](waiting)
	t.failure.backlog = backlog.New[decided[policy.FailureInput, policy.Failure]](waiting)
	t.substitution.backlog = backlog.New[decided[policy.SubstitutionInput, policy.Substitution]](waiting)
	t.replay.backlog = backlog.New[decided[policy.ReplayInput, policy.Replay]](waiting)
	t.ctx, t.stop = context.WithCancel(context.Background())
	go t.run()
	return t
}

// Close ends the comparison. Decisions that come later are not looked at.
func (t *Trial) Close() {
	t.once.Do(func() {
		t.admission.backlog.Close()
		t.failure.backlog.Close()
		t.substitution.backlog.Close()
		t.replay.backlog.Close()
		t.stop()
		<-t.done
	})
}

// Of returns the options that the trial was made with.
func (t *Trial) Of() Options { return t.options }

// Decides reports whether the candidate decides for the key of that name: for the same keys as
// long as the share is the same, and for more of them as it grows.
func (t *Trial) Decides(key string) bool {
	if !t.options.Canary {
		return false
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(key)) // never an error
	// The hash of short names differs in its low bits most: spread them.
	return float64(h.Sum64()*0x9e3779b97f4a7c15>>32)/(1<<32)*100 < t.options.Percent
}

// Candidate returns the revision that is tried.
func (t *Trial) Candidate() *policy.Revision { return t.options.Candidate }

// Admission, and likewise the three others, leave a decision to be compared with what beside
// says. The input is copied.
func (t *Trial) Admission(beside *policy.Revision, who Asker, in *policy.AdmissionInput, d policy.Admission, m *policy.Meta) {
	leave(&t.admission, beside, who, in, in.Detail, d, m)
}

// Failure leaves a failure decision.
func (t *Trial) Failure(beside *policy.Revision, who Asker, in *policy.FailureInput, d policy.Failure, m *policy.Meta) {
	leave(&t.failure, beside, who, in, in.Detail, d, m)
}

// Substitution leaves a substitution decision.
func (t *Trial) Substitution(beside *policy.Revision, who Asker, in *policy.SubstitutionInput, d policy.Substitution, m *policy.Meta) {
	leave(&t.substitution, beside, who, in, in.Detail, d, m)
}

// Replay leaves a replay decision.
func (t *Trial) Replay(beside *policy.Revision, who Asker, in *policy.ReplayInput, d policy.Replay, m *policy.Meta) {
	leave(&t.replay, beside, who, in, in.Detail, d, m)
}

func leave[I, D any](
	p *point[I, D], beside *policy.Revision, who Asker, in *I, detail *policy.Detail, d D, m *policy.Meta,
) {
	v := decided[I, D]{asker: who, in: *in, decision: d, record: m.Record, beside: beside}
	p.detail(&v.in, nil) // the request's space for it is used again
	if detail != nil {
		v.detail, v.at = *detail, detail.Now
	}
	p.backlog.Add(v)
}

func (t *Trial) run() {
	defer close(t.done)
	tick := time.NewTicker(takeEvery)
	defer tick.Stop()
	for {
		select {
		case <-t.ctx.Done():
			return
		case <-tick.C:
		case <-t.admission.backlog.Urgent():
		case <-t.failure.backlog.Urgent():
		case <-t.substitution.backlog.Urgent():
		case <-t.replay.backlog.Urgent():
		}
		compare(t, &t.admission)
		compare(t, &t.failure)
		compare(t, &t.substitution)
		compare(t, &t.replay)
	}
}

// compare asks the other revision about every decision that waits.
func compare[I, D any](t *Trial, p *point[I, D]) {
	p.batch = p.backlog.Take(p.batch[:0])
	t.tally.dropped(p.backlog.Lost())
	for i := range p.batch {
		v := &p.batch[i]
		if t.ctx.Err() != nil {
			break
		}
		if v.detail != (policy.Detail{}) {
			p.detail(&v.in, &v.detail)
		}
		other, meta := p.ask(v.beside, t.ctx, &v.in)
		if t.ctx.Err() != nil {
			break // it may have been cut short
		}
		same := reflect.DeepEqual(p.effect(v.decision), p.effect(other))
		active, candidate := v.record, meta.Record
		if v.beside != t.options.Candidate {
			active, candidate = candidate, active
		}
		class := p.class(&v.in, &v.decision)
		t.tally.add(&seen{
			at: v.at, point: p.of, class: class, asker: v.asker, same: same, failed: meta.Err != nil,
			active: active, candidate: candidate,
		})
		name := p.of.String()
		if t.options.Compared != nil {
			t.options.Compared(name)
		}
		if !same && t.options.Differs != nil {
			t.options.Differs(name, classWord(class), v.asker.Key)
		}
	}
	clear(p.batch)
}

func classWord(c failure.Class) string {
	if c == failure.None {
		return "none"
	}
	return c.String()
}
