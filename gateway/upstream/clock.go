package upstream

import (
	"errors"
	"time"

	"github.com/interlock-gateway/interlock/gateway/failure"
)

// Clocks bound the phases of an exchange, each by itself. A zero duration switches that
// clock off.
type Clocks struct {
	// Connect covers the name, TCP and a proxy's handshake, and the TLS handshake where TLS
	// is zero. Fires as ClockConnect.
	Connect time.Duration
	// TLS covers the TLS handshake alone. Fires as ClockConnect.
	TLS time.Duration
	// Write is how long the peer may take nothing of the request; a request larger than
	// 64 KiB gets it anew for every 64 KiB. Fires as ClockWrite, up to half its length late.
	Write time.Duration
	// FirstByte runs from the moment the request is sent until the whole response head is
	// there. Fires as ClockFirstByte.
	FirstByte time.Duration
	// FirstOutput runs from the moment the request is sent until [Call.OutputSeen]. While it
	// runs, Idle does not. Fires as ClockFirstOutput; before the head as ClockFirstByte.
	FirstOutput time.Duration
	// Idle is the longest silence within the body, measured while somebody waits for it. Any
	// byte starts it anew. Fires as ClockIdle.
	Idle time.Duration
	// Deadline is absolute and bounds all phases; zero means none.
	Deadline time.Time
	// DeadlineFact is what Deadline fires as: ClockTotal (also the zero value) or ClockReserve.
	DeadlineFact failure.Transport
}

func (k *Clocks) deadlineFact() failure.Transport {
	if k.DeadlineFact == failure.TransportOK {
		return failure.ClockTotal
	}
	return k.DeadlineFact
}

// Times are the moments of an exchange; zero where it did not come that far. After a
// re-dial they are those of the connection in use.
type Times struct {
	Started   time.Time // Head was called first
	Connected time.Time // a connection was in hand (dialled, or taken from the pool)
	Sent      time.Time // the whole request was handed to the kernel
	FirstByte time.Time // the first response byte, of a 1xx head too
	Head      time.Time // the final response head was complete
	LastByte  time.Time // the last byte read so far
}

// limit is the earliest of several times, with what it means.
type limit struct {
	at   time.Time // zero: none
	fact failure.Transport
}

func (l *limit) add(at time.Time, fact failure.Transport) {
	if !at.IsZero() && (l.at.IsZero() || at.Before(l.at)) {
		l.at, l.fact = at, fact
	}
}

// graceForAnswer is how long an answer is looked for after the request could not be sent.
// What the peer said is there already or, after a reset, never will be.
const graceForAnswer = 20 * time.Millisecond

// readLimit is the clock that bounds a read now.
func (x *exchange) readLimit() limit {
	l := limit{x.clocks.Deadline, x.clocks.deadlineFact()}
	k := &x.clocks
	switch {
	case x.sendErr != nil && x.stage == stageHead:
		l.add(x.graceEnd, failure.ClockWrite)
	case x.stage == stageHead:
		if sent := x.times.Sent; !sent.IsZero() {
			l.add(after(sent, k.FirstByte), failure.ClockFirstByte)
			if !x.outputSeen {
				l.add(after(sent, k.FirstOutput), failure.ClockFirstByte)
			}
		}
	case !x.outputSeen && k.FirstOutput > 0:
		from := x.times.Sent
		if from.IsZero() { // an answer while the request is still being sent
			from = x.times.Head
		}
		l.add(after(from, k.FirstOutput), failure.ClockFirstOutput)
	default:
		l.add(after(x.waitFrom, k.Idle), failure.ClockIdle)
	}
	return l
}

// after is t+d, or never where d is no clock.
func after(t time.Time, d time.Duration) time.Time {
	if d <= 0 {
		return time.Time{}
	}
	return t.Add(d)
}

// armRead makes sure that a read ends when a clock or the wake-up is due. Where that is so
// already it returns ErrWake, fails the exchange, or returns why the request was not sent.
func (x *exchange) armRead(now time.Time) error {
	l := x.readLimit()
	if !l.at.IsZero() && !now.Before(l.at) {
		if l.fact == failure.ClockWrite {
			return x.sendErr
		}
		return x.fail(l.fact, nil)
	}
	if !x.wakeAt.IsZero() && !now.Before(x.wakeAt) {
		return ErrWake
	}
	l.add(x.wakeAt, failure.TransportOK)
	// A deadline that is too early costs one more look at the clock when it passes; one
	// that is set anew costs time at each read. So it is moved only where it must be.
	cn := x.conn
	switch {
	case cn.readBy.IsZero() && l.at.IsZero():
		return nil
	case cn.readBy.After(now) && (l.at.IsZero() || !cn.readBy.After(l.at)):
		return nil
	}
	g := x.gate
	g.mu.Lock()
	err := g.armRead(cn, l.at)
	g.mu.Unlock()
	if err != nil && err != errLookAgain {
		return x.fail(failure.Reset, err)
	}
	return err
}

// errLookAgain says that the clocks have changed while a deadline was chosen.
var errLookAgain = errors.New("look again")

// armRead sets the deadline, unless the owner must look first at what has happened.
func (g *gate) armRead(cn *conn, at time.Time) error {
	if g.aborted.Load() || g.upload != nil && g.upload.ended {
		return errLookAgain
	}
	cn.readBy = at
	return cn.raw.SetReadDeadline(at)
}

// armWrite makes sure that a write ends when the write clock or the deadline is due.
func (x *exchange) armWrite(now time.Time) error {
	var early, late time.Time // any deadline between them will do
	if w := x.clocks.Write; w > 0 {
		early, late = now.Add(w), now.Add(w+w/2)
	}
	if d := x.clocks.Deadline; !d.IsZero() {
		if !now.Before(d) {
			return x.fail(x.clocks.deadlineFact(), nil)
		}
		if late.IsZero() || d.Before(late) {
			early, late = d, d
		}
	}
	cn := x.conn
	if !cn.writeBy.Before(early) && !cn.writeBy.After(late) {
		return nil
	}
	g := x.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.aborted.Load() {
		return nil // the deadline is past and stays there: the write will tell
	}
	cn.writeBy = late
	_ = cn.raw.SetWriteDeadline(late) // fails on a closed socket only: the write will tell
	return nil
}
