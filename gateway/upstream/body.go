package upstream

import (
	"errors"
	"io"
	"time"

	"github.com/interlock-gateway/interlock/gateway/failure"
)

// fill reads further bytes from the connection. It returns nil, ErrWake, the error that the
// exchange failed with by a clock or an abort, or else what the connection said.
func (x *exchange) fill() error {
	now := time.Now()
	if !x.waiting {
		x.waiting, x.waitFrom = true, now
	}
	for {
		err := x.armRead(now)
		if err == nil {
			var n int
			d := x.conn.direct
			sending := d != nil && len(d.out) > 0
			n, err = x.conn.fill()
			if sending {
				switch problem := x.noticeSend(d, err); problem {
				case nil:
				case errLookAgain:
					n, err = 0, nil
				default:
					return problem
				}
			}
			if n > 0 {
				x.waiting = false
				x.times.LastByte = time.Now()
				return nil
			}
			if err == nil {
				err = errLookAgain
			} else if isTimeout(err) {
				x.conn.readBy = past // whoever ended the wait, the deadline has passed
				err = errLookAgain
			}
		}
		if err != errLookAgain {
			x.waiting = err == ErrWake
			return err
		}
		if x.gate.aborted.Load() {
			return x.fail(failure.Aborted, nil)
		}
		now = time.Now()
		x.noticeUpload(now)
	}
}

// next returns the next bytes of the body, decoded.
func (x *exchange) next() ([]byte, error) {
	if x.stage < stageBody {
		if err := x.awaitHead(); err != nil {
			return nil, err
		}
	}
	switch {
	case x.err != nil:
		return nil, x.err
	case x.stage == stageEnded:
		return nil, io.EOF
	case x.gate.aborted.Load():
		return nil, x.fail(failure.Aborted, nil)
	}
	b, err := x.nextDecoded()
	if err != nil {
		if err == io.EOF {
			x.stage = stageEnded
			x.detach(x.atCleanEnd())
			x.stopDecoder()
		}
		return nil, err
	}
	x.bodyBytes += int64(len(b))
	if limit := x.req.MaxBody; limit > 0 && x.bodyBytes > limit {
		return nil, x.fail(failure.Malformed, ErrTooLarge)
	}
	return b, nil
}

// nextRaw returns the next bytes of the body as they came.
func (x *exchange) nextRaw() ([]byte, error) {
	for {
		cn := x.conn
		cn.r += x.frame.skip(cn.unused())
		if n := x.frame.take(cn.w - cn.r); n > 0 {
			b := cn.buf[cn.r : cn.r+n]
			cn.r += n
			return b, nil
		}
		if x.frame.err != nil {
			return nil, x.fail(failure.Malformed, x.frame.err)
		}
		if x.frame.ended {
			return nil, io.EOF
		}
		cn.room(largeBuffer)
		err := x.fill()
		if err == nil {
			continue
		}
		if err == ErrWake || err == x.err {
			return nil, err
		}
		if x.frame.mode == untilClose && errors.Is(err, io.EOF) {
			x.frame.ended = true
			return nil, io.EOF
		}
		return nil, x.fail(cutFact(err), err)
	}
}

// more reports whether nextRaw surely returns without reading from the connection.
func (x *exchange) more() bool {
	if x.err != nil || x.stage != stageBody || x.coded() {
		return false
	}
	cn := x.conn
	cn.r += x.frame.skip(cn.unused())
	if x.frame.ended || x.frame.err != nil {
		return true
	}
	return cn.r < cn.w
}

// atCleanEnd reports whether the whole answer was read and both sides may go on with the
// connection.
func (x *exchange) atCleanEnd() bool {
	cn := x.conn
	cn.r += x.frame.skip(cn.unused())
	if !x.frame.ended || cn.r != cn.w || x.frame.mode == untilClose || x.head.ConnectionClose() {
		return false
	}
	x.stopUpload()
	return x.sendErr == nil
}
