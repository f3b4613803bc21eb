package ledger

import (
	"math"
	"time"
	"unsafe"

	"github.com/interlock-gateway/interlock/gateway/failure"
)

// Opt is a fact that may be absent. Absent prints as null, never as zero.
type Opt[T any] struct {
	Value T
	Known bool
}

// Some is a fact that is known.
func Some[T any](v T) Opt[T] { return Opt[T]{Value: v, Known: true} }

// Record is one request with its attempts.
//
// A Record comes from [Ledger.Acquire] and belongs to one request until
// [Ledger.CloseRequest], which takes it over: no field may be read or written, and no
// string made by Keep used, after that. Strings are empty and times zero where a fact is
// absent. A string set here must stay unchanged until CloseRequest: one that lives in a
// buffer of the server is copied with [Record.Keep]. Of texts that a caller or a provider
// chose, the ledger keeps the first bytes only (256 of a caller's, 128 of a provider's).
//
// Amplification and the request's own usage and cost are not fields: they are computed
// from the attempts (see [Record.Amplification], [Record.Usage], [Record.Cost]).
type Record struct {
	ID              string // "req_" and a ULID, see [NewID]
	CorrelationID   string
	UserAction      string
	Key             string // the key's name
	Endpoint        string
	Alias           string
	RequestedModel  string // public name; with an alias the alias's own model
	AnsweredModel   string // public name
	ContractVersion Opt[int64]
	Stream          bool
	ReceivedAt      time.Time
	FinishedAt      time.Time // set by CloseRequest where it is zero
	CancelledAt     time.Time
	Deadline        Opt[time.Duration]
	Terminal        failure.Terminal
	Status          int // sent to the caller; 0: none was
	OutputStarted   bool
	Cause           Opt[failure.Cause] // of the attempt that answered
	PolicyRevision  string
	Overhead        Opt[time.Duration]
	ClientRetry     Opt[int64]

	Attempts  []Attempt // numbered from 1 in order
	Decisions []Decision
	ToolCalls []ToolCall

	Outcome Opt[TaskOutcome] // only on records that are read back

	life   life
	opened int    // attempts that were opened
	shard  *shard // its place in the queue: one place, so that order holds
	text   []byte // what Keep copied
	row    *row   // the writer's own
}

// life is where a record is between Acquire and its return to the pool. It is read and
// set atomically, so that a second close is found and not obeyed.
type life = uint32

const (
	idle    life = iota
	held         // by the request
	closing      // by the ledger
)

// Keep copies b into memory of the record and returns it as a string that is valid until
// CloseRequest.
func (r *Record) Keep(b []byte) string {
	if len(b) == 0 {
		return ""
	}
	if cap(r.text)-len(r.text) < len(b) {
		// The strings made so far hold on to the old memory.
		r.text = make([]byte, 0, max(512, 2*len(b)))
	}
	at := len(r.text)
	r.text = append(r.text, b...)
	return unsafe.String(&r.text[at], len(b))
}

// NextAttempt appends an empty attempt, numbered, and returns it. The pointer is valid
// until the next call; later use [Record.Attempt].
func (r *Record) NextAttempt() *Attempt {
	r.Attempts = append(r.Attempts, Attempt{Number: len(r.Attempts) + 1})
	return &r.Attempts[len(r.Attempts)-1]
}

// Attempt returns attempt n, counted from 1.
func (r *Record) Attempt(n int) *Attempt { return &r.Attempts[n-1] }

// Amplification is the number of upstream calls that the request may have caused: every
// attempt times what the provider's own gateway makes of it.
func (r *Record) Amplification() int {
	n := 0
	for i := range r.Attempts {
		n += max(1, r.Attempts[i].UpstreamAttempts)
	}
	return n
}

// Usage is the sum over the attempts; estimated where any of them is.
func (r *Record) Usage() Usage {
	var u Usage
	for i := range r.Attempts {
		u.add(&r.Attempts[i].Usage)
	}
	return u
}

// Cost is the sum of the attempts' known costs in US dollars; absent where none is known.
func (r *Record) Cost() Opt[float64] {
	var sum int64
	known := false
	for i := range r.Attempts {
		if c := r.Attempts[i].CostUSD; c.Known {
			sum, known = sum+picodollars(c.Value), true
		}
	}
	return Opt[float64]{Value: dollars(sum), Known: known}
}

// troubled reports whether anything but one clean attempt happened.
func (r *Record) troubled() bool {
	return r.Terminal != failure.Success || len(r.Attempts) != 1 || r.Attempts[0].Class != failure.None
}

// copyFrom makes r a copy of what o says now. Strings are shared: they do not change
// before the ledger is done with o.
func (r *Record) copyFrom(o *Record) {
	attempts, decisions, calls := r.Attempts[:0], r.Decisions[:0], r.ToolCalls[:0]
	*r = *o
	r.Attempts = append(attempts, o.Attempts...)
	r.Decisions = append(decisions, o.Decisions...)
	r.ToolCalls = append(calls, o.ToolCalls...)
	r.text, r.row = nil, nil
}

// clear empties the record and keeps its memory.
func (r *Record) clear() {
	clear(r.Attempts)
	clear(r.Decisions)
	clear(r.ToolCalls)
	*r = Record{Attempts: r.Attempts[:0], Decisions: r.Decisions[:0], ToolCalls: r.ToolCalls[:0], text: r.text[:0], row: r.row}
	if r.row != nil {
		*r.row = row{}
	}
}

// Attempt is one call to one channel. Offsets are counted from OpenedAt.
type Attempt struct {
	Number            int
	Cause             failure.Cause
	Group             string
	Channel           string
	Provider          string
	Model             string // public name
	UpstreamModel     string
	Endpoint          string
	Contract          string // fingerprint
	Unverified        bool   // went out without the evidence that its contract prefers
	Reason            string // code of the decision that started it
	Delay             time.Duration
	Circuit           string // closed, open or half_open when it started
	TimeLeft          Opt[time.Duration]
	UpstreamAttempts  int       // calls that the provider's own gateway may make of it; 0 means 1
	OpenedAt          time.Time // set by OpenAttempt where it is zero
	Connected         Opt[time.Duration]
	Sent              Opt[time.Duration]
	Headers           Opt[time.Duration]
	FirstOutput       Opt[time.Duration]
	LastByte          Opt[time.Duration]
	Closed            Opt[time.Duration] // set by CloseAttempt where it is absent
	Status            int                // 0: none was received
	Class             failure.Class
	Phase             Opt[failure.Phase]
	ProviderCode      string
	OutputStarted     bool
	Cancelled         bool
	UpstreamRequestID string
	RetryAfter        Opt[time.Duration]
	Usage             Usage
	CostUSD           Opt[float64]
	Billable          Billable
	SkippedEvents     int
	End               failure.End // Open until CloseAttempt, which demands another value

	state attemptState
}

type attemptState uint8

const (
	planned attemptState = iota
	attemptOpen
	attemptClosed
)

// Usage counts tokens. All absent: none was reported or estimated.
type Usage struct {
	Input     Opt[int64] // cached ones included
	Output    Opt[int64] // reasoning included
	Cached    Opt[int64]
	Reasoning Opt[int64]
	Estimated bool
}

// Known reports whether any count is known.
func (u *Usage) Known() bool {
	return u.Input.Known || u.Output.Known || u.Cached.Known || u.Reasoning.Known
}

func (u *Usage) add(o *Usage) {
	plus := func(to *Opt[int64], v Opt[int64]) {
		if v.Known {
			to.Value, to.Known = to.Value+v.Value, true
		}
	}
	plus(&u.Input, o.Input)
	plus(&u.Output, o.Output)
	plus(&u.Cached, o.Cached)
	plus(&u.Reasoning, o.Reasoning)
	u.Estimated = u.Estimated || o.Estimated
}

// Billable says whether the provider will charge for an attempt.
type Billable uint8

// The answers.
const (
	BillableUnknown Billable = iota
	BillableYes
	BillableNo
)

var billableNames = [...]string{"unknown", "yes", "no"}

func (b Billable) String() string {
	if int(b) < len(billableNames) {
		return billableNames[b]
	}
	return "invalid"
}

func parseBillable(s string) (Billable, bool) {
	for i, n := range billableNames {
		if n == s {
			return Billable(i), true
		}
	}
	return 0, false
}

// Decision is one policy decision that was taken for a request. Input and Output are
// JSON and immutable: the ledger keeps each distinct one once, and the slices may be
// shared with the policy's cache.
type Decision struct {
	Attempt  int    // the attempt it was about; 0: before the first
	Point    string // admission, failure, substitution or replay
	Input    []byte
	Output   []byte
	Revision string
}

// ToolCall is one call of a client-side tool in an answer. Its arguments are never kept.
type ToolCall struct {
	Attempt         int
	Choice          int
	Index           int
	CallID          string
	Name            string
	ArgumentsSHA256 [32]byte // of the canonical arguments
}

// TaskOutcome is what the caller said became of the task.
type TaskOutcome struct {
	Task  string // success or failure
	Score Opt[float64]
	Label string
}

// Money is counted in whole 1e-12 dollars: prices per million tokens have up to six
// decimals, and sums must come out equal however they are grouped.

func picodollars(usd float64) int64 {
	switch p := math.Round(usd * 1e12); {
	case p != p:
		return 0
	case p >= math.MaxInt64:
		return math.MaxInt64
	case p <= math.MinInt64:
		return math.MinInt64
	default:
		return int64(p)
	}
}

func dollars(p int64) float64 { return float64(p) / 1e12 }
