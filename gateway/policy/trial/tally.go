package trial

import (
	"encoding/json"
	"maps"
	"sync"
	"time"

	"github.com/interlock-gateway/interlock/gateway/failure"
	"github.com/interlock-gateway/interlock/gateway/policy"
)

const (
	maxExamples = 20
	maxKeys     = 1000 // counted by name; the rest share one
	otherKeys   = "other"
)

// seen is one comparison.
type seen struct {
	at                time.Time
	point             policy.Point
	class             failure.Class
	asker             Asker
	same, failed      bool
	active, candidate *policy.Record
}

// tally is what the comparisons came to.
type tally struct {
	mu       sync.Mutex
	report   Report
	examples []Example // the latest; next is where the oldest stands once it is full
	next     int
}

func newTally() *tally {
	r := Report{ByPoint: map[string]Count{}, ByClass: map[string]Count{}, ByKey: map[string]Count{}}
	for _, p := range policy.Points() {
		r.ByPoint[p.String()] = Count{}
	}
	return &tally{report: r}
}

// Count is how many decisions were compared, and how many of them differ in more than their
// reason and rule.
type Count struct {
	Compared int64 `json:"compared"`
	Differ   int64 `json:"differ"`
}

// Report is what the comparisons came to so far.
type Report struct {
	Count
	Dropped int64            `json:"dropped"` // decisions that were not compared: too many at once
	Failed  int64            `json:"failed"`  // of those compared: the revision that was asked beside could not decide
	ByPoint map[string]Count `json:"by_point"`
	ByClass map[string]Count `json:"by_class"` // the failure's; "none" before one
	ByKey   map[string]Count `json:"by_key"`
	// Examples are the latest decisions that differ, newest first.
	Examples []Example `json:"examples"`
}

// Example is a decision that differs: the facts and both outputs, as JSON.
type Example struct {
	At        time.Time       `json:"at"`
	RequestID string          `json:"request_id"`
	Point     string          `json:"point"`
	Class     string          `json:"class"`
	Key       string          `json:"key"`
	Input     json.RawMessage `json:"input"`
	Active    json.RawMessage `json:"active"`
	Candidate json.RawMessage `json:"candidate"`
}

func (t *tally) dropped(n int64) {
	if n == 0 {
		return
	}
	t.mu.Lock()
	t.report.Dropped += n
	t.mu.Unlock()
}

func (t *tally) add(s *seen) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := &t.report
	r.Count.add(s.same)
	count(r.ByPoint, s.point.String(), s.same)
	count(r.ByClass, classWord(s.class), s.same)
	key := s.asker.Key
	if _, known := r.ByKey[key]; !known && len(r.ByKey) >= maxKeys {
		key = otherKeys
	}
	count(r.ByKey, key, s.same)
	if s.failed {
		r.Failed++
	}
	if s.same {
		return
	}
	e := Example{
		At: s.at.UTC(), RequestID: s.asker.RequestID, Point: s.point.String(), Class: classWord(s.class), Key: s.asker.Key,
		Input: s.active.Input, Active: s.active.Output, Candidate: s.candidate.Output,
	}
	if len(t.examples) < maxExamples {
		t.examples = append(t.examples, e)
		return
	}
	t.examples[t.next] = e
	t.next = (t.next + 1) % maxExamples
}

func (c *Count) add(same bool) {
	c.Compared++
	if !same {
		c.Differ++
	}
}

func count(by map[string]Count, name string, same bool) {
	c := by[name]
	c.add(same)
	by[name] = c
}

// Report returns what the comparisons came to so far. It is the caller's own.
func (t *Trial) Report() Report {
	y := t.tally
	y.mu.Lock()
	defer y.mu.Unlock()
	r := y.report
	r.ByPoint, r.ByClass, r.ByKey = maps.Clone(r.ByPoint), maps.Clone(r.ByClass), maps.Clone(r.ByKey)
	r.Examples = make([]Example, 0, len(y.examples))
	for i := len(y.examples) - 1; i >= 0; i-- {
		r.Examples = append(r.Examples, y.examples[(y.next+i)%len(y.examples)])
	}
	return r
}
