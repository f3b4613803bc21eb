package upstream

import (
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/interlock-gateway/interlock/gateway/failure"
)

// exchange is the machinery behind a call, kept for the next one.
type exchange struct {
	gate  *gate
	head  fasthttp.ResponseHeader
	timer *time.Timer // while a connection is being made

	exchangeState
}

// exchangeState starts from zero with each call.
type exchangeState struct {
	pool       *Pool
	req        *Request
	clocks     Clocks
	wakeAt     time.Time
	outputSeen bool

	stage stage
	err   error // the *Error that ended it
	wire  failure.Wire
	times Times

	// The connection.
	dialing *dialing
	conn    *conn
	reused  bool
	renewed bool // it replaces one from the pool that was proven closed unread

	// The request.
	out        []byte // its head and as much of its body as goes with it
	rest       []byte // the rest of the body
	sentBefore uint64 // what the kernel had taken before it
	sendErr    error
	graceEnd   time.Time

	// Waiting: since when, kept over a wake-up.
	waiting  bool
	waitFrom time.Time

	// The response.
	got       bool // any byte of it
	scanned   int  // of the head's bytes, so far without its end
	lineStart int
	headBytes int // of the heads so far
	interims  int
	status    int
	frame     framer
	decoder   *decoder
	bodyBytes int64 // decoded
}

// stage is where in its life an exchange is.
type stage uint8

const (
	stageNew stage = iota
	stageConnect
	stageSend
	stageHead
	stageBody
	stageEnded
)

var exchanges = sync.Pool{New: func() any { return new(exchange) }}

const (
	// inlineSize is up to which size a request is written in one go by the owner. A larger
	// one gets a goroutine, so that an answer that comes meanwhile is read.
	inlineSize = largeBuffer

	maxInterims = 8
)

func (x *exchange) awaitHead() error {
	for x.stage < stageBody {
		if x.err != nil {
			return x.err
		}
		if err := x.advance(); err != nil {
			return err
		}
	}
	return x.err
}

// advance does the work of one stage.
func (x *exchange) advance() error {
	switch x.stage {
	case stageNew:
		return x.prepare()
	case stageConnect:
		return x.connect()
	case stageSend:
		return x.send()
	default:
		return x.readHead()
	}
}

// prepare writes the head, and the body behind it as far as both fit.
func (x *exchange) prepare() error {
	x.times.Started = time.Now()
	if x.pool == nil {
		panic("upstream: Head before Start")
	}
	if err := x.req.Check(); err != nil {
		return x.fail(failure.Malformed, err)
	}
	t, body := &x.pool.target, x.req.Body
	head := x.req.headSize(t)
	out := x.req.appendHead(newBuffer(min(head+len(body), max(head, inlineSize)))[:0], t)
	n := min(len(body), max(inlineSize-len(out), 0), cap(out)-len(out))
	x.out, x.rest = append(out, body[:n]...), body[n:]
	x.stage = stageConnect
	return nil
}

// connect gets a connection from the pool, or waits for a new one.
func (x *exchange) connect() error {
	if x.gate.aborted.Load() {
		return x.fail(failure.Aborted, nil)
	}
	if x.dialing == nil {
		now := time.Now()
		if d := x.clocks.Deadline; !d.IsZero() && !now.Before(d) {
			return x.fail(x.clocks.deadlineFact(), nil)
		}
		cn, err := x.pool.take(now, x.renewed)
		if err != nil {
			return x.fail(failure.Aborted, err)
		}
		if cn != nil {
			return x.attach(cn)
		}
		d := x.pool.dial(&x.clocks)
		x.dialing = d
		x.gate.mu.Lock()
		if x.gate.aborted.Load() {
			close(d.gone)
		}
		x.gate.dial = d
		x.gate.mu.Unlock()
	}
	return x.awaitDial()
}

// awaitDial waits for the connection being made.
func (x *exchange) awaitDial() error {
	d := x.dialing
	l := limit{x.clocks.Deadline, x.clocks.deadlineFact()}
	l.add(x.wakeAt, failure.TransportOK)
	var due <-chan time.Time
	if !l.at.IsZero() {
		if x.timer == nil {
			x.timer = time.NewTimer(time.Until(l.at))
		} else {
			x.timer.Reset(time.Until(l.at))
		}
		defer x.timer.Stop()
		due = x.timer.C
	}
	select {
	case <-d.gone:
		return x.fail(failure.Aborted, nil)
	case <-d.done:
	case <-due:
		if l.fact == failure.TransportOK {
			return ErrWake
		}
		return x.fail(l.fact, nil)
	}
	x.gate.mu.Lock()
	x.gate.dial = nil
	x.gate.mu.Unlock()
	x.dialing = nil
	if d.err != nil {
		return x.fail(d.err.Transport, d.err.Err)
	}
	return x.attach(d.cn)
}

// attach makes the connection the call's own, within reach of Abort.
func (x *exchange) attach(cn *conn) error {
	g := x.gate
	g.mu.Lock()
	if g.aborted.Load() {
		g.mu.Unlock()
		x.pool.put(cn)
		return x.fail(failure.Aborted, nil)
	}
	g.raw = cn.raw
	g.mu.Unlock()
	x.conn, x.reused = cn, cn.reused
	x.times.Connected = time.Now()
	x.stage = stageSend
	return nil
}

// detach gives the connection up; keep says that the next call may have it.
func (x *exchange) detach(keep bool) {
	cn := x.conn
	if cn == nil {
		return
	}
	x.stopUpload()
	g := x.gate
	g.mu.Lock()
	g.raw = nil // from here on Abort cannot touch the socket
	keep = keep && !g.aborted.Load()
	g.mu.Unlock()
	x.conn = nil
	if keep {
		x.pool.put(cn)
	} else {
		x.pool.drop(cn)
	}
}

// fail ends the exchange and drops its connection. Once the call is aborted, that is what
// ended it, whatever was noticed first.
func (x *exchange) fail(fact failure.Transport, cause error) error {
	x.stopUpload() // what was sent is known only afterwards
	if cn := x.conn; cn != nil && x.wire == failure.Sent && !x.got && x.nothingLeft() {
		x.wire, x.times.Sent = failure.NotSent, time.Time{}
	}
	x.giveUpDial()
	x.detach(false)
	x.stopDecoder()
	x.gate.mu.Lock()
	if x.gate.aborted.Load() {
		fact, cause = failure.Aborted, x.gate.cause
	}
	x.gate.mu.Unlock()
	if fact == failure.Aborted {
		x.pool.countAbort()
	}
	x.err = &Error{Transport: fact, Wire: x.wire, Err: cause}
	return x.err
}

func (x *exchange) giveUpDial() {
	d := x.dialing
	if d == nil {
		return
	}
	x.gate.mu.Lock()
	x.gate.dial = nil
	x.gate.mu.Unlock()
	x.dialing = nil
	d.abandon(x.pool)
}

// release ends the exchange in any state and makes it ready for another call.
func (x *exchange) release() {
	x.giveUpDial()
	x.detach(x.conn != nil && x.err == nil && x.stage == stageBody && x.atCleanEnd())
	x.stopDecoder()
	freeBuffer(x.out)
	x.head.Reset()
	x.gate = nil
	x.exchangeState = exchangeState{}
}
