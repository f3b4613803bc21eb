package flow

import (
	"io"
	"sync"
	"time"

	"github.com/interlock-gateway/interlock/gateway/failure"
	"github.com/interlock-gateway/interlock/gateway/ledger"
	"github.com/interlock-gateway/interlock/gateway/openai"
	"github.com/interlock-gateway/interlock/gateway/policy"
	"github.com/interlock-gateway/interlock/gateway/recovery"
	"github.com/interlock-gateway/interlock/gateway/route"
)

// Exchange is one request's life. It comes from a pool (Gateway.Begin) and goes back with
// Close; nothing of it may be used after that.
type Exchange struct {
	g      *Gateway
	gen    *Generation // pinned from admission to settle
	caller *Caller
	head   Head
	body   []byte // rendered error, or a whole answer, for the caller
	in     []byte // the caller's body
	sig    signals
	shard  *registryShard
	prev   *Exchange
	next   *Exchange

	// what was asked
	facts       openai.Request
	wishes      wishes
	kind        string
	alias       *Alias
	model       string // the requested model: with an alias the alias's own
	public      string // the public name asked for: the alias's or the model's
	id          string // req_…
	correlation string // the caller's own ID of the request
	contract    string // its fingerprint
	budget      *Budget
	rec         *ledger.Record

	idempotent   bool
	buffered     bool // hold the whole answer back until it is known to be whole
	substitution policy.Wish
	asked        policy.Request // the facts, as policies see them
	action       actionKey      // the user action; zero = the request itself
	counted      bool           // the user action is counted

	// the plan, fixed once: candidate i goes to target i
	targets []target
	cands   []recovery.Candidate
	off     recovery.Causes // acts switched off for this request
	m       recovery.Machine

	// the recovery loop
	stage    stage
	step     recovery.Step
	why      string             // reason of the decision that led to step
	policy   *policy.Revision   // decides about this request
	beside   *policy.Revision   // is asked the same, for comparison; nil = none
	ask      policy.Replay      // the latest replay decision
	decided  bool               // ask holds a decision
	refusals int                // candidates that turned out unusable
	at       attempt            // the running or latest attempt
	last     lastFailure        // what the latest failed attempt came to
	until    time.Time          // a pause ends then
	admitted []int              // groups whose requests per minute have counted this request
	routes   []*route.Route     // space for plan
	detailed policy.Detail      // space for detail
	started  recovery.Candidate // the one that an attempt begins with
	guarding guarding
	failure  *openai.Error // how the request ends

	// why it could not go on
	changed                                  <-chan struct{} // closed when a switch changes after the latest refresh
	ranOut, timeUp, unavailable, actionSpent bool
	callersClock                             bool // the deadline is the caller's own

	// release
	committed commitment
	reply     Reply
	out       []byte // bytes for the caller, in the order they go
	disclosed []byte
	heartbeat time.Time     // when the next one is due; zero = never
	spent     time.Duration // time that was not the gateway's own: attempts, pauses, queues
	passed    int64         // bytes written to the caller's stream
	due       bool          // a heartbeat is to be written
	done      bool          // nothing follows what is in out
	settled   bool
	terminal  failure.Terminal
}

var exchanges = sync.Pool{New: func() any { return new(Exchange) }}

// Begin starts the life of one request. The body must stay unchanged until Close.
func (g *Gateway) Begin(c *Caller, e openai.Endpoint, h Head, body []byte, received time.Time) *Exchange {
	x := exchanges.Get().(*Exchange)
	x.g, x.gen, x.caller, x.head, x.in = g, c.gen, c, h, body
	x.pin(received)
	x.sig.reset()
	x.rec = g.ledger.Acquire()
	x.id = ledger.NewID(received)
	x.rec.ID = x.id
	x.rec.ReceivedAt = received
	x.rec.Endpoint = e.String()
	x.rec.Key = c.key.Name
	x.facts.Endpoint = e
	g.running.enter(x)
	return x
}

// PeerGone tells the exchange that its caller has left: the running upstream call is aborted
// and no later attempt starts. Any goroutine, at any time before Close returns; it never blocks.
func (x *Exchange) PeerGone() { x.sig.peerGone(x.g.now()) }

// Run drives the request until there is something to write and returns it. It blocks; it is
// called once, from the goroutine that owns the connection. It returns nil where the caller has
// left.
func (x *Exchange) Run() *Reply {
	if e := x.admit(); e != nil {
		return x.deny(e)
	}
	switch ev := x.drive(); ev {
	case beat, output, finished:
		return x.open(ev)
	default:
		if x.terminal == failure.CallerLeft {
			return nil // nobody is there to answer
		}
		return x.answer()
	}
}

// WriteTo pumps the rest of a Reply with Stream, in the connection's own goroutine. Each
// Write is one flushed chunk. An error means that the connection must be dropped without a
// clean end.
func (x *Exchange) WriteTo(w io.Writer) (int64, error) { return x.pump(w) }

// Close ends the exchange and releases everything it holds. The front calls it exactly once,
// after the last byte was written or could not be.
func (x *Exchange) Close() {
	x.abandon()
	x.leave()
	x.reset()
	exchanges.Put(x)
}

// reset forgets the request and keeps the memory that the next one can use.
func (x *Exchange) reset() {
	const keep = 64 << 10 // larger buffers are not kept
	x.g, x.gen, x.caller, x.head, x.in, x.rec, x.policy, x.beside = nil, nil, nil, nil, nil, nil, nil, nil
	x.wishes, x.kind, x.alias, x.model, x.public, x.id, x.correlation, x.contract, x.budget = wishes{}, "", nil, "", "", "", "", "", nil
	x.idempotent, x.buffered, x.substitution, x.asked = false, false, policy.Unspecified, policy.Request{}
	x.action, x.counted = actionKey{}, false
	clear(x.targets[:cap(x.targets)])
	clear(x.routes[:cap(x.routes)])
	x.targets, x.cands, x.routes, x.admitted = x.targets[:0], x.cands[:0], x.routes[:0], x.admitted[:0]
	x.off, x.stage, x.step, x.why, x.ask = 0, choosing, recovery.Step{}, "", policy.Replay{}
	x.decided, x.refusals, x.last, x.until, x.failure = false, 0, lastFailure{}, time.Time{}, nil
	x.changed = nil
	x.m.Reset(recovery.Limits{}) // an answer may come before admission sets it: it must not count another request's attempts
	x.ranOut, x.timeUp, x.unavailable, x.actionSpent = false, false, false, false
	x.callersClock, x.committed, x.heartbeat = false, nothingCommitted, time.Time{}
	x.reply = Reply{Header: x.reply.Header[:0]}
	x.spent, x.passed, x.due, x.done, x.settled, x.terminal = 0, 0, false, false, false, failure.Running
	x.guarding.reset(keep)
	x.out, x.body, x.disclosed = emptied(x.out, keep), emptied(x.body, keep), x.disclosed[:0]
	x.at.empty(keep)
}

func emptied(b []byte, keep int) []byte {
	if cap(b) > keep {
		return nil
	}
	return b[:0]
}
