package fault

import "time"

// journalLimit is how many calls a provider remembers.
const journalLimit = 10_000

// journal remembers calls. The provider's lock guards it.
type journal struct {
	count   int // calls begun
	read    int // calls whose request was read, or that ended before
	records []*record
}

type record struct {
	call       Call
	counted    bool // in journal.read
	connClosed bool
	kept       bool // the connection waits for its next request
}

func (j *journal) add(r *record) {
	j.count++
	r.call.Number = j.count
	r.call.End = EndRunning
	r.call.Phase = PhaseReading
	if len(j.records) == journalLimit {
		copy(j.records, j.records[1:])
		j.records = j.records[:journalLimit-1]
	}
	j.records = append(j.records, r)
}

func (j *journal) find(number int) *record {
	i := number - (j.count - len(j.records)) - 1
	if i < 0 || i >= len(j.records) {
		return nil
	}
	return j.records[i]
}

func (j *journal) calls() []Call {
	out := make([]Call, len(j.records))
	for i, r := range j.records {
		out[i] = r.call
	}
	return out
}

func (j *journal) markRead(r *record) {
	if !r.counted {
		r.counted = true
		j.read++
	}
}

// began records a call whose head was read.
func (p *Provider) began(r *record, st *state) (inScript int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r.call.At = p.clock.Now()
	p.journal.add(r)
	st.calls++
	return st.calls
}

// readWhole records that the request is read as far as its rule wants.
func (p *Provider) readWhole(r *record, rule string, a asked, body []byte, length int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r.call.Rule, r.call.Model, r.call.Stream = rule, a.model, a.stream
	r.call.Body, r.call.BodyLength = body, length
	r.call.Phase = PhaseBeforeHead
	p.journal.markRead(r)
	p.news()
}

func (p *Provider) reached(r *record, phase Phase) {
	if r == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if r.call.End == EndRunning {
		r.call.Phase = phase
	}
}

func (p *Provider) wrote(r *record, n int) {
	if r == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	r.call.Written += int64(n)
}

func (p *Provider) stalled(r *record) {
	if r == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	r.call.Stalled = true
	p.news()
}

// keeps records that a call is over and its connection goes on.
func (p *Provider) keeps(r *record) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r.kept = true
	p.news()
}

// ended records how a call ended; the first end holds.
func (p *Provider) ended(r *record, end End) {
	if r == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if r.call.End != EndRunning {
		return
	}
	r.call.End = end
	r.call.Took = p.clock.Now().Sub(r.call.At)
	if end == EndCompleted {
		r.call.Phase = PhaseAnswered
	}
	p.journal.markRead(r)
	p.news()
}

// peerClosed records the end of a connection as its peer made it.
func (p *Provider) peerClosed(records []*record, at time.Time, reset bool) {
	for _, r := range records {
		r.call.PeerClosed, r.call.PeerReset = at, reset
	}
	p.news()
}
