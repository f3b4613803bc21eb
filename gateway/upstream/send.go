package upstream

import (
	"errors"
	"time"

	"github.com/interlock-gateway/interlock/gateway/failure"
)

// send writes the request. A request that could not be sent is not a failure yet: the peer
// may have answered before it stopped reading.
func (x *exchange) send() error {
	cn := x.conn
	x.sentBefore = cn.meter.sent.Load()
	if len(x.rest) > 0 {
		if cn.direct != nil && cn.reused && !cn.quiet() {
			x.takeAnother()
			return nil
		}
		x.startUpload()
		return nil
	}
	x.wire = failure.Sent
	x.stage = stageHead
	if cn.direct != nil { // it is written as the wait for its answer begins
		cn.direct.begin(x.out)
		x.times.Sent = x.times.Connected
		return nil
	}
	return x.write(x.out)
}

// write writes the request, or the rest of it, and waits for the peer to take it.
func (x *exchange) write(b []byte) error {
	if err := x.armWrite(time.Now()); err != nil {
		return err
	}
	_, err := x.conn.rw.Write(b)
	now := time.Now()
	switch d := x.clocks.Deadline; {
	case err == nil:
		x.times.Sent = now
	case x.gate.aborted.Load():
		return x.fail(failure.Aborted, nil)
	case isTimeout(err) && !d.IsZero() && !now.Before(d):
		return x.fail(x.clocks.deadlineFact(), nil)
	default:
		x.sendErr, x.graceEnd = err, now.Add(graceForAnswer)
	}
	return nil
}

// noticeSend takes over what became of a request that a wait was to write first; err is how
// the wait ended. It returns nil where the request is out, errStale where another connection
// is needed, errLookAgain where the wait is to begin anew, or why the exchange failed.
func (x *exchange) noticeSend(d *direct, err error) error {
	switch {
	case d.stale:
		x.takeAnother()
		return errStale
	case !d.sentAt.IsZero():
		x.times.Sent = d.sentAt
		return nil
	case d.sendErr == nil && isTimeout(err): // before anything was written, or was to be
		x.conn.readBy = past
		return errLookAgain
	case d.sendErr == nil && err == nil:
		rest := d.out
		d.forget()
		if err := x.write(rest); err != nil {
			return err
		}
		return errLookAgain
	}
	if d.sendErr != nil {
		err = d.sendErr
	}
	d.forget()
	x.times.Sent, x.sendErr, x.graceEnd = time.Time{}, err, time.Now().Add(graceForAnswer)
	return errLookAgain
}

// errStale says that the connection from the pool was of no use, and nothing was sent.
var errStale = errors.New("stale")

// takeAnother gives up a connection from the pool that was found of no use before anything was
// sent on it.
func (x *exchange) takeAnother() {
	cn, g := x.conn, x.gate
	g.mu.Lock()
	g.raw = nil
	g.mu.Unlock()
	x.conn, x.waiting = nil, false
	x.pool.stale(cn)
	x.wire, x.reused = failure.NotSent, false
	x.times.Connected, x.times.Sent = time.Time{}, time.Time{}
	x.stage = stageConnect
}

// upload is a large request being sent while its answer is awaited.
type upload struct {
	done chan struct{} // closed when the goroutine touches nothing any more

	// With the gate's mu held:
	stopped bool
	ended   bool
	at      time.Time
	err     error
}

// uploadPiece is what gets a write clock of its own.
const uploadPiece = 64 << 10

func (x *exchange) startUpload() {
	u := &upload{done: make(chan struct{})}
	x.gate.mu.Lock()
	x.gate.upload = u
	x.gate.mu.Unlock()
	x.wire = failure.Sent
	x.stage = stageHead
	go u.run(x.gate, x.conn, x.clocks.Write, x.out, x.rest)
}

func (u *upload) run(g *gate, cn *conn, clock time.Duration, head, body []byte) {
	defer close(u.done)
	err := u.write(g, cn, clock, head)
	for len(body) > 0 && err == nil {
		n := min(len(body), uploadPiece)
		err = u.write(g, cn, clock, body[:n])
		body = body[n:]
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	u.ended, u.at, u.err = true, time.Now(), err
	if !u.stopped && !g.aborted.Load() {
		_ = cn.raw.SetReadDeadline(past) // the owner's wait has other clocks now
	}
}

func (u *upload) write(g *gate, cn *conn, clock time.Duration, b []byte) error {
	g.mu.Lock()
	if !u.stopped && !g.aborted.Load() {
		cn.writeBy = after(time.Now(), clock)
		_ = cn.raw.SetWriteDeadline(cn.writeBy)
	}
	g.mu.Unlock()
	_, err := cn.rw.Write(b)
	return err
}

// noticeUpload takes over how the upload ended, if it has.
func (x *exchange) noticeUpload(now time.Time) {
	g := x.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	u := g.upload
	if u == nil || !u.ended {
		return
	}
	g.upload = nil
	if u.err == nil {
		x.times.Sent = u.at
	} else {
		x.sendErr, x.graceEnd = u.err, now.Add(graceForAnswer)
	}
}

// stopUpload ends an upload that still runs and waits until it touches nothing any more,
// which is at once. A request that was not sent whole makes the connection useless, as
// sendErr then says.
func (x *exchange) stopUpload() {
	g := x.gate
	g.mu.Lock()
	u := g.upload
	g.upload = nil
	if u == nil {
		g.mu.Unlock()
		return
	}
	u.stopped = true
	if !u.ended {
		x.conn.writeBy = past
		_ = x.conn.raw.SetWriteDeadline(past)
	}
	g.mu.Unlock()
	<-u.done
	if u.err == nil {
		x.times.Sent = u.at
	} else if x.sendErr == nil {
		x.sendErr = u.err
	}
}

// nothingLeft reports that no byte of the request left this machine's process.
func (x *exchange) nothingLeft() bool { return x.conn.meter.sent.Load() == x.sentBefore }

// unread reports whether the peer has provably read nothing of the request. Either no byte
// left; or the peer closed first (its FIN comes before anything else, and a FIN carries the
// acknowledgement of all that its side could still read), and its kernel has acknowledged
// none of this request. A reset proves nothing: the peer may have read everything and
// reset within the time by which acknowledgements are delayed.
func (x *exchange) unread(closed bool) bool {
	if x.nothingLeft() {
		return true
	}
	cn := x.conn
	if !closed || cn.ctl == nil || !cn.probe.finSeen(cn.ctl) {
		return false
	}
	acked, ok := cn.probe.acked(cn.ctl)
	return ok && acked <= x.sentBefore+1 // the SYN counts as one
}

// lost handles a connection that ended before any final head was there.
func (x *exchange) lost(err error) error {
	fact := cutFact(err)
	if isTimeout(err) {
		fact = failure.ClockWrite // reads end their own way
	}
	if !x.got {
		x.stopUpload()
		if x.unread(fact == failure.EOF) {
			if x.reused && !x.gate.aborted.Load() {
				x.redial()
				return nil
			}
			x.wire = failure.NotSent
		}
	}
	return x.fail(fact, err)
}

// redial replaces a connection from the pool that was of no use. The others in the pool are
// as old, so a new one is made; and as that is not from the pool, it is not replaced again.
func (x *exchange) redial() {
	x.detach(false)
	x.pool.countRedial()
	x.renewed = true
	x.wire, x.reused, x.sendErr = failure.NotSent, false, nil
	x.times.Connected, x.times.Sent = time.Time{}, time.Time{}
	x.stage = stageConnect
}
