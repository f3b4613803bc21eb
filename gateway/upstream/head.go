package upstream

import (
	"bufio"
	"bytes"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/interlock-gateway/interlock/gateway/failure"
)

// Why a head is refused. None quotes it.
var (
	errNotHTTP   = errors.New("the answer does not begin as HTTP/1.x")
	errHeadSize  = errors.New("the response head is larger than allowed")
	errHeadLine  = errors.New("the response head has a line that does not end in CR LF")
	errHeadField = errors.New("the response head has a malformed field")
	errHead      = errors.New("the response head is malformed")
	errStatus    = errors.New("the status is not one that may come here")
	errInterims  = errors.New("too many informational responses")
	errLength    = errors.New("Content-Length is malformed or given more than once")
	errCoding    = errors.New("Transfer-Encoding is other than chunked, once, in HTTP/1.1")
	errBoth      = errors.New("both Content-Length and Transfer-Encoding are given")
)

// readHead reads until the final response head is there.
func (x *exchange) readHead() error {
	for {
		ok, err := x.scanHead()
		if err != nil {
			return x.fail(failure.Malformed, err)
		}
		if ok {
			return nil
		}
		if !x.conn.room(x.pool.maxHead) {
			return x.fail(failure.Malformed, errHeadSize)
		}
		switch err := x.fill(); {
		case err == nil:
		case err == errStale:
			return nil
		case err == ErrWake || err == x.err:
			return err
		default:
			return x.lost(err)
		}
		if !x.got {
			x.got, x.times.FirstByte = true, x.times.LastByte
		}
	}
}

// scanHead consumes whole heads of what was read: informational ones, then the final one.
// It reports false where more bytes are needed.
func (x *exchange) scanHead() (bool, error) {
	for {
		b := x.conn.unused()
		if !beginsAsHTTP(b) {
			return false, errNotHTTP
		}
		end, err := x.headEnd(b)
		if err != nil {
			return false, err
		}
		size := end
		if end == 0 {
			size = len(b)
		}
		if x.headBytes+size > x.pool.maxHead {
			return false, errHeadSize
		}
		if end == 0 {
			return false, nil
		}
		final, err := x.parseHead(b[:end])
		if err != nil {
			return false, err
		}
		x.conn.r += end
		x.headBytes += end
		x.scanned, x.lineStart = 0, 0
		if final {
			return true, nil
		}
		if x.interims++; x.interims > maxInterims {
			return false, errInterims
		}
	}
}

// beginsAsHTTP reports whether b may be the beginning of a status line.
func beginsAsHTTP(b []byte) bool {
	const version = "HTTP/1."
	n := min(len(b), len(version))
	return string(b[:n]) == version[:n]
}

// headEnd returns where the head ends, its blank line included; 0 if that is not there yet.
// It goes on where it stopped the last time.
func (x *exchange) headEnd(b []byte) (int, error) {
	for {
		i := bytes.IndexByte(b[x.scanned:], '\n')
		if i < 0 {
			x.scanned = len(b)
			return 0, nil
		}
		i += x.scanned
		if i == 0 || b[i-1] != '\r' {
			return 0, errHeadLine
		}
		blank := i == x.lineStart+1
		x.scanned, x.lineStart = i+1, i+1
		if blank {
			return i + 1, nil
		}
	}
}

// parseHead reads one whole head. It reports false for an informational one.
func (x *exchange) parseHead(b []byte) (final bool, err error) {
	// "HTTP/1.1 200", the version's minor digit and the status
	if len(b) < 14 || b[7] != '0' && b[7] != '1' || b[8] != ' ' || !isDigits(b[9:12]) || b[12] != ' ' && b[12] != '\r' {
		return false, errHead
	}
	status, _ := strconv.Atoi(string(b[9:12]))
	if status < 100 || status == 101 { // nothing was asked to be switched to
		return false, errStatus
	}
	f, err := inspect(b, b[7] == '0')
	if err != nil {
		return false, err
	}
	if status < 200 {
		return false, nil
	}
	x.head.Reset()
	x.head.SetNoDefaultContentType(true)
	if err := readHeader(x, b); err != nil {
		return false, errHead
	}
	x.begin(status, f)
	return true, nil
}

// begin starts the body of a response whose head is there.
func (x *exchange) begin(status int, f framing) {
	x.status = status
	x.wire = failure.HeadersSeen
	x.times.Head = time.Now()
	x.stage = stageBody
	x.waiting = false
	if len(x.rest) == 0 { // else an upload may still read it
		freeBuffer(x.out)
		x.out = nil
	}
	switch {
	case x.req.Method == "HEAD" || status == 204 || status == 304:
		x.frame.start(noBody, 0)
	case f.chunked:
		x.frame.start(byChunks, 0)
	case f.length >= 0:
		x.frame.start(byLength, f.length)
	default:
		x.frame.start(untilClose, 0)
	}
}

// framing is what a head says about the body's length.
type framing struct {
	length  int64 // -1: not given
	chunked bool
}

// inspect goes through the fields of a whole head and refuses what different readers could
// understand differently (RFC 9112, sections 5.1, 5.2, 6.1 and 6.3), which the parser that
// stores them lets pass in part.
func inspect(head []byte, http10 bool) (framing, error) {
	f := framing{length: -1}
	_, rest, _ := bytes.Cut(head, crlf)
	for {
		var line []byte
		line, rest, _ = bytes.Cut(rest, crlf)
		if len(line) == 0 {
			break
		}
		name, value, ok := bytes.Cut(line, colon)
		if !ok || !isToken(name) { // a folded line begins with a blank
			return f, errHeadField
		}
		value = bytes.Trim(value, " \t")
		switch {
		case equalFold(name, "content-length"):
			n, err := strconv.ParseInt(string(value), 10, 63)
			if f.length >= 0 || err != nil || !isDigits(value) {
				return f, errLength
			}
			f.length = n
		case equalFold(name, "transfer-encoding"):
			if f.chunked || http10 || !equalFold(value, "chunked") {
				return f, errCoding
			}
			f.chunked = true
		}
	}
	if f.chunked && f.length >= 0 {
		return f, errBoth
	}
	return f, nil
}

var (
	crlf  = []byte("\r\n")
	colon = []byte(":")
)

// headReader lends the header parser the bytes in the form that it wants.
type headReader struct {
	bytes bytes.Reader
	buf   *bufio.Reader
}

var headReaders = sync.Pool{New: func() any { return &headReader{buf: bufio.NewReader(nil)} }}

// readHeader stores the fields of a whole head.
func readHeader(x *exchange, b []byte) error {
	hr := headReaders.Get().(*headReader)
	defer headReaders.Put(hr)
	hr.bytes.Reset(b)
	r := hr.buf
	if len(b) > r.Size() {
		r = bufio.NewReaderSize(&hr.bytes, len(b))
	} else {
		r.Reset(&hr.bytes)
	}
	err := x.head.Read(r)
	hr.bytes.Reset(nil)
	return err
}
