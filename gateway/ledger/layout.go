package ledger

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
	"time"

	"github.com/interlock-gateway/interlock/gateway/failure"
	"github.com/interlock-gateway/interlock/gateway/storage"
)

// A row's body is one byte of version, a head of fixed width, then fields as varints in
// the order of the code below, then zeros. encoder writes it and decoder reads it; a
// change of the order is a new version, and the old one stays readable.
//
// The head holds the numbers of the words that lists filter by, three bytes each, so that
// SQLite can compare them in place; then the ID. With no dictionary (the spool) every
// word stands in the row as text.
const layoutVersion = 1

const (
	headKey = 1 + 3*iota
	headRequested
	headAnswered
	headAlias
	headTerminal
	headGroup   // of the first attempt
	headChannel // of the first attempt
	headEnd
)

const (
	idKindULID = 1 // sixteen bytes follow
	idKindText = 2 // text follows
)

const (
	flagStream = 1 << iota
	flagOutput
	flagActionIsID
	flagEstimated // of attempts
	flagUnverified
	flagCancelled
)

const (
	maxCallerText   = 256
	maxProviderText = 128
	maxReason       = 128
)

// encoder turns records into bodies. It belongs to the writer's goroutine.
type encoder struct {
	buf   []byte
	tx    *storage.Tx
	words *dictionary // nil: portable, every word as text
	texts *texts
	err   error
}

// record encodes a request with its first attempt, or with all of them where the body is
// to stand alone.
func (e *encoder) record(dst []byte, r *Record) ([]byte, error) {
	e.buf, e.err = append(dst, layoutVersion), nil
	start := len(e.buf) - 1
	e.buf = append(e.buf, make([]byte, headEnd-1)...)
	e.id(r.ID)

	var group, channel string
	if len(r.Attempts) > 0 {
		group, channel = r.Attempts[0].Group, r.Attempts[0].Channel
	}
	e.head(start+headKey, e.wordID(r.Key), r.Key)
	e.head(start+headRequested, e.knownID(r.RequestedModel), clip(r.RequestedModel, maxCallerText))
	e.head(start+headAnswered, e.modelID(r.AnsweredModel, r.Terminal == failure.Success), clip(r.AnsweredModel, maxCallerText))
	e.head(start+headAlias, e.wordID(r.Alias), r.Alias)
	e.head(start+headTerminal, e.enum(e.terminals(), int(r.Terminal), r.Terminal.String()), r.Terminal.String())
	e.head(start+headGroup, e.wordID(group), group)
	e.head(start+headChannel, e.wordID(channel), channel)

	e.uint(bits(r.Stream, flagStream) | bits(r.OutputStarted, flagOutput) | bits(r.UserAction == r.ID, flagActionIsID))
	e.text(clip(r.CorrelationID, maxCallerText))
	if r.UserAction != r.ID {
		e.text(clip(r.UserAction, maxCallerText))
	}
	e.word(r.Endpoint)
	e.instant(r.ReceivedAt)
	e.since(r.FinishedAt, r.ReceivedAt)
	e.since(r.CancelledAt, r.ReceivedAt)
	e.duration(r.Deadline)
	e.int(int64(r.Status))
	e.cause(r.Cause)
	e.optional(r.ContractVersion)
	e.word(r.PolicyRevision)
	e.duration(r.Overhead)
	e.optional(r.ClientRetry)

	e.uint(uint64(len(r.Attempts)))
	inline := len(r.Attempts)
	if e.words != nil {
		inline = min(1, inline)
	}
	e.uint(uint64(inline))
	for i := range inline {
		e.attempt(&r.Attempts[i])
	}
	e.uint(uint64(len(r.Decisions)))
	for i := range r.Decisions {
		e.decision(&r.Decisions[i])
	}
	e.uint(uint64(len(r.ToolCalls)))
	for i := range r.ToolCalls {
		e.toolCall(&r.ToolCalls[i])
	}
	return e.buf, e.err
}

// further encodes an attempt that has a row of its own.
func (e *encoder) further(dst []byte, a *Attempt) ([]byte, error) {
	e.buf, e.err = append(dst, layoutVersion), nil
	e.attempt(a)
	return e.buf, e.err
}

func (e *encoder) attempt(a *Attempt) {
	e.uint(bits(a.OutputStarted, flagOutput) | bits(a.Usage.Estimated, flagEstimated) |
		bits(a.Unverified, flagUnverified) | bits(a.Cancelled, flagCancelled))
	e.uint(uint64(a.Number)) // #nosec G115 -- counted from 1
	e.enumWord(e.enum(e.causes(), int(a.Cause), a.Cause.String()), a.Cause.String())
	e.word(a.Group)
	e.word(a.Channel)
	e.word(a.Provider)
	e.model(a.Model, a)
	e.model(a.UpstreamModel, a)
	e.word(a.Endpoint)
	e.model(a.Contract, a) // made of what the request asks for
	e.word(clip(a.Reason, maxReason))
	e.int(int64(a.Delay))
	e.word(a.Circuit)
	e.duration(a.TimeLeft)
	e.int(int64(a.UpstreamAttempts))
	e.instant(a.OpenedAt)
	for _, o := range [...]Opt[time.Duration]{a.Connected, a.Sent, a.Headers, a.FirstOutput, a.LastByte, a.Closed} {
		e.duration(o)
	}
	e.int(int64(a.Status))
	e.enumWord(e.enum(e.classes(), int(a.Class), a.Class.String()), a.Class.String())
	if a.Phase.Known {
		e.enumWord(e.enum(e.phases(), int(a.Phase.Value), a.Phase.Value.String()), a.Phase.Value.String())
	} else {
		e.uint(0)
	}
	e.text(clip(a.ProviderCode, maxProviderText))
	e.text(clip(a.UpstreamRequestID, maxProviderText))
	e.duration(a.RetryAfter)
	e.optional(a.Usage.Input)
	e.optional(a.Usage.Output)
	e.optional(a.Usage.Cached)
	e.optional(a.Usage.Reasoning)
	e.optional(Opt[int64]{picodollars(a.CostUSD.Value), a.CostUSD.Known})
	e.enumWord(e.enum(e.billables(), int(a.Billable), a.Billable.String()), a.Billable.String())
	e.int(int64(a.SkippedEvents))
	e.enumWord(e.enum(e.ends(), int(a.End), a.End.String()), a.End.String())
}

func (e *encoder) decision(d *Decision) {
	e.uint(uint64(max(0, d.Attempt))) // #nosec G115 -- not negative
	e.word(d.Point)
	e.shared(d.Input)
	e.shared(d.Output)
	e.word(d.Revision)
}

func (e *encoder) toolCall(c *ToolCall) {
	e.int(int64(c.Attempt))
	e.int(int64(c.Choice))
	e.int(int64(c.Index))
	e.text(clip(c.CallID, maxProviderText))
	e.text(clip(c.Name, maxProviderText))
	e.buf = append(e.buf, c.ArgumentsSHA256[:]...)
}

func (e *encoder) id(id string) {
	if u, ok := parseID(id); ok {
		e.buf = append(append(e.buf, idKindULID), u[:]...)
		return
	}
	e.buf = append(e.buf, idKindText)
	e.text(id)
}

func (e *encoder) head(at int, id uint32, text string) {
	e.buf[at], e.buf[at+1], e.buf[at+2] = byte(id>>16), byte(id>>8), byte(id)
	if id == wordInline {
		e.text(text)
	}
}

func (e *encoder) uint(v uint64) { e.buf = binary.AppendUvarint(e.buf, v) }
func (e *encoder) int(v int64)   { e.buf = binary.AppendVarint(e.buf, v) }

func (e *encoder) text(s string) {
	e.uint(uint64(len(s)))
	e.buf = append(e.buf, s...)
}

// wordID is the number of a word that may be learned, knownID of one that may not.
func (e *encoder) wordID(s string) uint32 {
	if s == "" {
		return wordAbsent
	}
	if e.words == nil {
		return wordInline
	}
	id, err := e.words.learn(e.tx, s)
	if err != nil && e.err == nil {
		e.err = err
	}
	return id
}

func (e *encoder) knownID(s string) uint32 {
	if s == "" {
		return wordAbsent
	}
	if e.words == nil {
		return wordInline
	}
	return e.words.known(s)
}

// modelID is the number of a model's name. Where a channel serves any model, names are
// the caller's to invent: only one that answered is learned.
func (e *encoder) modelID(s string, answered bool) uint32 {
	if answered {
		return e.wordID(s)
	}
	return e.knownID(s)
}

func (e *encoder) model(s string, a *Attempt) {
	s = clip(s, maxCallerText)
	e.enumWord(e.modelID(s, a.End == failure.EndSuccess), s)
}

// word encodes outside the head: 0 absent, 1 text follows, else number + 1.
func (e *encoder) word(s string) { e.enumWord(e.wordID(s), s) }

func (e *encoder) enumWord(id uint32, s string) {
	switch id {
	case wordAbsent:
		e.uint(0)
	case wordInline:
		e.uint(1)
		e.text(s)
	default:
		e.uint(uint64(id) + 1)
	}
}

// enum is the number of a word of the vocabulary.
func (e *encoder) enum(ids []uint32, v int, s string) uint32 {
	switch {
	case s == "":
		return wordAbsent
	case v < len(ids) && ids[v] != 0:
		return ids[v]
	default:
		return wordInline
	}
}

func (e *encoder) classes() []uint32 {
	if e.words == nil {
		return nil
	}
	return e.words.classes[:]
}

func (e *encoder) phases() []uint32 {
	if e.words == nil {
		return nil
	}
	return e.words.phases[:]
}

func (e *encoder) causes() []uint32 {
	if e.words == nil {
		return nil
	}
	return e.words.causes[:]
}

func (e *encoder) ends() []uint32 {
	if e.words == nil {
		return nil
	}
	return e.words.ends[:]
}

func (e *encoder) terminals() []uint32 {
	if e.words == nil {
		return nil
	}
	return e.words.terminals[:]
}

func (e *encoder) billables() []uint32 {
	if e.words == nil {
		return nil
	}
	return e.words.billables[:]
}

func (e *encoder) cause(c Opt[failure.Cause]) {
	if !c.Known {
		e.uint(0)
		return
	}
	e.enumWord(e.enum(e.causes(), int(c.Value), c.Value.String()), c.Value.String())
}

// shared encodes a decision's input or output: 0 absent, 1 the bytes follow, else the
// number of a text + 1.
func (e *encoder) shared(b []byte) {
	if len(b) == 0 {
		e.uint(0)
		return
	}
	if e.words == nil {
		e.uint(1)
		e.uint(uint64(len(b)))
		e.buf = append(e.buf, b...)
		return
	}
	id, err := e.texts.keep(e.tx, b)
	if err != nil {
		if e.err == nil {
			e.err = err
		}
		return
	}
	e.uint(uint64(id) + 1) // #nosec G115 -- a row number
}

// optional encodes 0 for absent, else the number's zigzag form + 1.
func (e *encoder) optional(v Opt[int64]) {
	if !v.Known {
		e.uint(0)
		return
	}
	z := uint64(v.Value)<<1 ^ uint64(v.Value>>63) // #nosec G115 -- zigzag
	if z == math.MaxUint64 {
		z--
	}
	e.uint(z + 1)
}

func (e *encoder) duration(d Opt[time.Duration]) { e.optional(Opt[int64]{int64(d.Value), d.Known}) }

func (e *encoder) instant(t time.Time) {
	if t.IsZero() {
		e.int(0)
		return
	}
	e.int(t.UnixNano())
}

func (e *encoder) since(t, from time.Time) {
	e.optional(Opt[int64]{t.UnixNano() - from.UnixNano(), !t.IsZero()})
}

func bits(set bool, flag uint64) uint64 {
	if set {
		return flag
	}
	return 0
}

// clip returns the first bytes of a text, cut between characters.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xc0 == 0x80 {
		n--
	}
	return s[:n]
}

// digest is what a text is found by.
func digest(b []byte) [sha256.Size]byte { return sha256.Sum256(b) }
