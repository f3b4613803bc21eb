package ledger

import (
	"time"

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
// buffer of the server is copied with [Record.Keep].
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
}

// Keep copies b into memory of the record and returns it as a string that is valid until
// CloseRequest.
func (r *Record) Keep(b []byte) string { panic("skeleton") }

// NextAttempt appends an empty attempt, numbered, and returns it. The pointer is valid
// until the next call; later use [Record.Attempt].
func (r *Record) NextAttempt() *Attempt { panic("skeleton") }

// Attempt returns attempt n, counted from 1.
func (r *Record) Attempt(n int) *Attempt { return &r.Attempts[n-1] }

// Amplification is the number of upstream calls that the request may have caused: every
// attempt times what the provider's own gateway makes of it.
func (r *Record) Amplification() int { panic("skeleton") }

// Usage is the sum over the attempts; estimated where any of them is.
func (r *Record) Usage() Usage { panic("skeleton") }

// Cost is the sum of the attempts' known costs in US dollars; absent where none is known.
func (r *Record) Cost() Opt[float64] { panic("skeleton") }

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
	ProviderCode      string // at most 128 bytes are kept
	OutputStarted     bool
	Cancelled         bool
	UpstreamRequestID string // at most 128 bytes are kept
	RetryAfter        Opt[time.Duration]
	Usage             Usage
	CostUSD           Opt[float64]
	Billable          Billable
	SkippedEvents     int
	End               failure.End // Open until CloseAttempt, which demands another value
}

// Usage counts tokens. All absent: none was reported or estimated.
type Usage struct {
	Input     Opt[int64] // cached ones included
	Output    Opt[int64] // reasoning included
	Cached    Opt[int64]
	Reasoning Opt[int64]
	Estimated bool
}

// Billable says whether the provider will charge for an attempt.
type Billable uint8

// The answers.
const (
	BillableUnknown Billable = iota
	BillableYes
	BillableNo
)

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
