package ledger

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/interlock-gateway/interlock/gateway/failure"
)

var errDamaged = errors.New("ledger: a row is damaged")

// decoder reads bodies. After the first fault every read gives zero, and fault says what
// it was.
type decoder struct {
	b      []byte
	wordOf func(uint32) (string, error) // nil: a portable body, which has no numbers
	textOf func(int64) ([]byte, error)  // nil: texts of decisions are left out
	fault  error
}

// Nothing real has more; a damaged count must not make the reader allocate.
const (
	maxAttempts  = 1 << 16
	maxDecisions = 1 << 18
	maxToolCalls = 1 << 18
)

// decodeRecord reads a request and the attempts that are in its row. It returns how many
// attempts there are in all.
func decodeRecord(b []byte, word func(uint32) (string, error), text func(int64) ([]byte, error)) (*Record, int, error) {
	d := &decoder{b: b, wordOf: word, textOf: text}
	r := &Record{}
	attempts := d.record(r)
	return r, attempts, d.fault
}

func decodeFurther(b []byte, word func(uint32) (string, error)) (Attempt, error) {
	d := &decoder{b: b, wordOf: word}
	d.version()
	var a Attempt
	d.attempt(&a)
	return a, d.fault
}

func (d *decoder) version() {
	if v := d.bytes(1); len(v) == 1 && v[0] != layoutVersion {
		d.fail(fmt.Errorf("%w: layout %d is not known to this version of interlock", errDamaged, v[0]))
	}
}

func (d *decoder) record(r *Record) (attempts int) {
	d.version()
	head := d.bytes(headEnd - 1)
	r.ID = d.id()
	if d.fault != nil {
		return 0
	}
	at := func(pos int) string {
		h := head[pos-1:]
		return d.numbered(uint32(h[0])<<16 | uint32(h[1])<<8 | uint32(h[2]))
	}
	r.Key = at(headKey)
	r.RequestedModel = at(headRequested)
	r.AnsweredModel = at(headAnswered)
	r.Alias = at(headAlias)
	r.Terminal = parsed(d, failure.ParseTerminal, at(headTerminal))
	at(headGroup)
	at(headChannel)

	flags := d.uint()
	r.Stream, r.OutputStarted = flags&flagStream != 0, flags&flagOutput != 0
	r.CorrelationID = d.text()
	if r.UserAction = r.ID; flags&flagActionIsID == 0 {
		r.UserAction = d.text()
	}
	r.Endpoint = d.word()
	r.ReceivedAt = d.instant()
	r.FinishedAt = d.since(r.ReceivedAt)
	r.CancelledAt = d.since(r.ReceivedAt)
	r.Deadline = d.duration()
	r.Status = int(d.int())
	r.Cause = optionalWord(d, failure.ParseCause)
	r.ContractVersion = d.optional()
	r.PolicyRevision = d.word()
	r.Overhead = d.duration()
	r.ClientRetry = d.optional()

	attempts = d.count(maxAttempts)
	inline := d.count(attempts)
	for range inline {
		if d.fault != nil {
			return attempts
		}
		r.Attempts = append(r.Attempts, Attempt{})
		d.attempt(&r.Attempts[len(r.Attempts)-1])
	}
	for range d.count(maxDecisions) {
		if d.fault != nil {
			return attempts
		}
		r.Decisions = append(r.Decisions, d.decision())
	}
	for range d.count(maxToolCalls) {
		if d.fault != nil {
			return attempts
		}
		r.ToolCalls = append(r.ToolCalls, d.toolCall())
	}
	return attempts
}

func (d *decoder) attempt(a *Attempt) {
	flags := d.uint()
	a.OutputStarted, a.Usage.Estimated = flags&flagOutput != 0, flags&flagEstimated != 0
	a.Unverified, a.Cancelled = flags&flagUnverified != 0, flags&flagCancelled != 0
	a.Number = d.count(maxAttempts)
	a.Cause = parsed(d, failure.ParseCause, d.word())
	a.Group = d.word()
	a.Channel = d.word()
	a.Provider = d.word()
	a.Model = d.word()
	a.UpstreamModel = d.word()
	a.Endpoint = d.word()
	a.Contract = d.word()
	a.Reason = d.word()
	a.Delay = time.Duration(d.int())
	a.Circuit = d.word()
	a.TimeLeft = d.duration()
	a.UpstreamAttempts = int(d.int())
	a.OpenedAt = d.instant()
	for _, o := range [...]*Opt[time.Duration]{&a.Connected, &a.Sent, &a.Headers, &a.FirstOutput, &a.LastByte, &a.Closed} {
		*o = d.duration()
	}
	a.Status = int(d.int())
	a.Class = optionalWord(d, failure.ParseClass).Value
	a.Phase = optionalWord(d, failure.ParsePhase)
	a.ProviderCode = d.text()
	a.UpstreamRequestID = d.text()
	a.RetryAfter = d.duration()
	a.Usage.Input = d.optional()
	a.Usage.Output = d.optional()
	a.Usage.Cached = d.optional()
	a.Usage.Reasoning = d.optional()
	if p := d.optional(); p.Known {
		a.CostUSD = Some(dollars(p.Value))
	}
	a.Billable = parsed(d, parseBillable, d.word())
	a.SkippedEvents = int(d.int())
	a.End = optionalWord(d, failure.ParseEnd).Value
	a.state = attemptClosed
	if a.End == failure.Open {
		a.state = attemptOpen
	}
}

func (d *decoder) decision() Decision {
	return Decision{Attempt: d.count(maxAttempts), Point: d.word(), Input: d.shared(), Output: d.shared(), Revision: d.word()}
}

func (d *decoder) toolCall() ToolCall {
	c := ToolCall{Attempt: int(d.int()), Choice: int(d.int()), Index: int(d.int()), CallID: d.text(), Name: d.text()}
	copy(c.ArgumentsSHA256[:], d.bytes(len(c.ArgumentsSHA256)))
	return c
}

func (d *decoder) id() string {
	kind := d.bytes(1)
	if d.fault != nil {
		return ""
	}
	switch kind[0] {
	case idKindULID:
		var u ulid.ULID
		if copy(u[:], d.bytes(len(u))); d.fault != nil {
			return ""
		}
		return idPrefix + u.String()
	case idKindText:
		return d.text()
	default:
		d.fail(fmt.Errorf("%w: no ID", errDamaged))
		return ""
	}
}

func (d *decoder) fail(err error) {
	if d.fault == nil {
		d.fault = err
	}
	d.b = nil
}

func (d *decoder) bytes(n int) []byte {
	if n < 0 || n > len(d.b) {
		d.fail(fmt.Errorf("%w: it ends early", errDamaged))
		return nil
	}
	b := d.b[:n]
	d.b = d.b[n:]
	return b
}

func (d *decoder) uint() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.fail(fmt.Errorf("%w: it ends early", errDamaged))
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) int() int64 {
	v, n := binary.Varint(d.b)
	if n <= 0 {
		d.fail(fmt.Errorf("%w: it ends early", errDamaged))
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) count(limit int) int {
	v := d.uint()
	if v > uint64(limit) { // #nosec G115 -- limits are positive
		d.fail(fmt.Errorf("%w: a count of %d", errDamaged, v))
		return 0
	}
	return int(v) // #nosec G115 -- at most limit
}

func (d *decoder) text() string { return string(d.bytes(d.count(1 << 20))) }

func (d *decoder) numbered(id uint32) string {
	switch {
	case id == wordAbsent:
		return ""
	case id == wordInline:
		return d.text()
	case d.wordOf == nil:
		d.fail(fmt.Errorf("%w: a number where a word belongs", errDamaged))
		return ""
	}
	w, err := d.wordOf(id)
	if err != nil {
		d.fail(err)
	}
	return w
}

func (d *decoder) word() string {
	switch v := d.uint(); {
	case v == 0:
		return ""
	case v == 1:
		return d.text()
	case v > wordInline:
		d.fail(fmt.Errorf("%w: word %d", errDamaged, v))
		return ""
	default:
		return d.numbered(uint32(v - 1)) // #nosec G115 -- checked above
	}
}

func (d *decoder) shared() []byte {
	switch v := d.uint(); {
	case v == 0:
		return nil
	case v == 1:
		return append([]byte(nil), d.bytes(d.count(64<<20))...)
	case d.textOf == nil:
		return nil
	default:
		b, err := d.textOf(int64(v - 1)) // #nosec G115 -- a row number
		if err != nil {
			d.fail(err)
		}
		return b
	}
}

func (d *decoder) optional() Opt[int64] {
	v := d.uint()
	if v == 0 {
		return Opt[int64]{}
	}
	z := v - 1
	return Some(int64(z>>1) ^ -int64(z&1)) // #nosec G115 -- zigzag
}

func (d *decoder) duration() Opt[time.Duration] {
	v := d.optional()
	return Opt[time.Duration]{time.Duration(v.Value), v.Known}
}

func (d *decoder) instant() time.Time {
	ns := d.int()
	if ns == 0 {
		return time.Time{}
	}
	return time.Unix(0, ns).UTC()
}

func (d *decoder) since(from time.Time) time.Time {
	v := d.optional()
	if !v.Known {
		return time.Time{}
	}
	return from.Add(time.Duration(v.Value))
}

func parsed[T any](d *decoder, parse func(string) (T, bool), s string) T {
	v, ok := parse(s)
	if !ok && d.fault == nil {
		d.fail(fmt.Errorf("%w: %q is no word of its list", errDamaged, clip(s, 40)))
	}
	return v
}

// optionalWord reads a word of the vocabulary that may be absent.
func optionalWord[T any](d *decoder, parse func(string) (T, bool)) Opt[T] {
	s := d.word()
	if s == "" || d.fault != nil {
		return Opt[T]{}
	}
	return Some(parsed(d, parse, s))
}
