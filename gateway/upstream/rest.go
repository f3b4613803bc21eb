package upstream

import "time"

const (
	// restWithin is how long the end of an answer is waited for that nobody waits for any more.
	restWithin = 250 * time.Millisecond
	// maxRest is how much of a body that nobody wants is read to keep its connection.
	maxRest = 4 << 10
)

// leaveRest hands a connection on which only the end of a chunked body is missing to the pool,
// which waits for it. It does nothing where there is no such end, or it is there already.
func (x *exchange) leaveRest() {
	cn := x.conn
	if cn == nil || x.err != nil || x.stage != stageBody || x.frame.mode != byChunks || x.coded() ||
		x.sendErr != nil || x.head.ConnectionClose() || x.atCleanEnd() || x.frame.ended || x.frame.err != nil {
		return
	}
	g := x.gate
	g.mu.Lock()
	if g.aborted.Load() || g.upload != nil {
		g.mu.Unlock()
		return
	}
	g.raw = nil // from here on Abort cannot touch the socket
	g.mu.Unlock()
	x.conn = nil
	x.stage = stageEnded
	go x.pool.finish(cn, x.frame)
}

// finish reads what is left of a body and keeps the connection if that is its clean end.
func (p *Pool) finish(cn *conn, frame framer) {
	if cn.raw.SetReadDeadline(time.Now().Add(restWithin)) != nil {
		p.drop(cn)
		return
	}
	cn.readBy = past // not known to whoever is next
	for left := maxRest; ; {
		cn.r += frame.skip(cn.unused())
		n := frame.take(cn.w - cn.r)
		cn.r += n
		if left -= n; frame.ended || frame.err != nil || left < 0 {
			break
		}
		if n > 0 {
			continue
		}
		cn.room(largeBuffer)
		if _, err := cn.fill(); err != nil {
			p.drop(cn)
			return
		}
	}
	if frame.ended && frame.err == nil && cn.r == cn.w {
		p.put(cn)
	} else {
		p.drop(cn)
	}
}
