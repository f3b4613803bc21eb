package upstream

import (
	"bufio"
	"errors"
	"io"
	"iter"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"

	"github.com/interlock-gateway/interlock/gateway/failure"
)

const (
	// maxZstdWindow is what RFC 9659 lets a decoder of HTTP bodies insist on.
	maxZstdWindow = 8 << 20

	// maxBehind bounds what may follow a coded body's own end.
	maxBehind = 64 << 10
)

var (
	errCut     = errors.New("the coded body ends too early")
	errBehind  = errors.New("bytes follow the coded body's end")
	errDecode  = errors.New("the body does not match its Content-Encoding")
	errUnknown = errors.New("Content-Encoding is none of gzip, deflate, br, zstd")
	errStopped = errors.New("decoding was stopped")
)

// coded reports whether the body must be decoded.
func (x *exchange) coded() bool {
	e := x.head.ContentEncoding()
	return len(e) > 0 && !equalFold(e, "identity") && x.frame.mode != noBody
}

// nextDecoded returns the next bytes of the body.
func (x *exchange) nextDecoded() ([]byte, error) {
	if !x.coded() {
		return x.nextRaw()
	}
	if x.decoder == nil {
		open := decoderOf(x.head.ContentEncoding())
		if open == nil {
			return nil, x.fail(failure.Malformed, errUnknown)
		}
		x.decoder = newDecoder(open)
	}
	d := x.decoder
	for {
		if d.ended {
			return nil, x.finishDecoding()
		}
		if !d.hungry {
			if d.run(); len(d.out) > 0 {
				return d.out, nil
			}
			continue
		}
		b, err := x.nextRaw()
		switch {
		case err == nil:
			d.feed(b)
		case err == io.EOF:
			d.feedEnd()
		default:
			return nil, err // a wake-up too: the decoder stays hungry
		}
	}
}

// finishDecoding judges how decoding ended, and reads the body to its own end.
func (x *exchange) finishDecoding() error {
	d := x.decoder
	if d.err != nil {
		fact := failure.Malformed
		if d.err == errCut && x.frame.mode == untilClose {
			fact = failure.EOF // nobody but the code says that something is missing
		}
		return x.fail(fact, d.err)
	}
	for {
		b, err := x.nextRaw()
		if err != nil {
			return err
		}
		if d.behind += len(b); d.behind > maxBehind {
			return x.fail(failure.Malformed, errBehind)
		}
	}
}

func (x *exchange) stopDecoder() {
	if x.decoder != nil {
		x.decoder.stop()
		x.decoder = nil
	}
}

// decoder turns a reader that pulls its input into one that can be left hungry: it runs in
// a coroutine of its own and hands control back when it needs input or has output. So a
// wait for input can end by a wake-up without the reader noticing, and what has been
// decoded is handed out before more is waited for.
type decoder struct {
	resume func() (struct{}, bool)
	stop   func()
	yield  func(struct{}) bool

	hungry bool   // in is used up
	in     []byte // not used yet; valid until the decoder is hungry again
	fed    bool   // any input came
	inEnd  bool   // no more will come
	out    []byte // of this run
	ended  bool
	err    error // why, if not by the code's own end
	behind int   // bytes behind that end
}

func newDecoder(open opener) *decoder {
	d := &decoder{}
	d.resume, d.stop = iter.Pull(func(yield func(struct{}) bool) {
		d.yield = yield
		d.err = d.decode(open)
	})
	return d
}

// run lets the decoder work until it has output, needs input, or has ended.
func (d *decoder) run() {
	defer func() {
		if recover() != nil { // a decoder's bug on hostile input must not end the gateway
			d.ended, d.err = true, errDecode
		}
	}()
	d.out = nil
	if _, ok := d.resume(); !ok {
		d.ended = true
	}
}

func (d *decoder) feed(b []byte) { d.in, d.fed, d.hungry = b, true, false }

func (d *decoder) feedEnd() { d.inEnd, d.hungry = true, false }

// Read gives the decoding reader its input.
func (d *decoder) Read(p []byte) (int, error) {
	for len(d.in) == 0 {
		if d.inEnd {
			return 0, io.EOF
		}
		d.hungry = true
		if !d.yield(struct{}{}) {
			return 0, errStopped
		}
	}
	n := copy(p, d.in)
	d.in = d.in[n:]
	return n, nil
}

// decode is what runs in the coroutine.
func (d *decoder) decode(open opener) error {
	r, err := open(d)
	opened := err == nil
	if opened {
		defer func() { _ = r.Close() }()
		buf := newBuffer(largeBuffer)
		defer freeBuffer(buf)
		for empty := 0; err == nil && empty < 100; {
			var n int
			if n, err = r.Read(buf); n > 0 {
				empty = 0
				d.out = buf[:n]
				if !d.yield(struct{}{}) {
					return errStopped
				}
			} else {
				empty++
			}
		}
	}
	switch {
	case err == io.EOF && opened, !d.fed && d.inEnd: // no byte at all is an empty body
		return nil
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return errCut
	default:
		return errDecode
	}
}

// opener makes a decoding reader; it may read already.
type opener func(io.Reader) (io.ReadCloser, error)

// decoderOf returns the opener of a content coding (RFC 9110, section 8.4.1); nil if it is
// not known.
func decoderOf(coding []byte) opener {
	switch {
	case equalFold(coding, "gzip"), equalFold(coding, "x-gzip"):
		return func(r io.Reader) (io.ReadCloser, error) { return gzip.NewReader(r) }
	case equalFold(coding, "deflate"):
		return openDeflate
	case equalFold(coding, "br"):
		return func(r io.Reader) (io.ReadCloser, error) { return io.NopCloser(brotli.NewReader(r)), nil }
	case equalFold(coding, "zstd"):
		return func(r io.Reader) (io.ReadCloser, error) {
			// One worker: it then decodes in this coroutine.
			d, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
				zstd.WithDecoderMaxWindow(maxZstdWindow))
			if err != nil {
				return nil, err
			}
			return d.IOReadCloser(), nil
		}
	}
	return nil
}

// openDeflate reads zlib, which "deflate" means, or the bare deflate that some send.
func openDeflate(r io.Reader) (io.ReadCloser, error) {
	br := bufio.NewReader(r)
	h, err := br.Peek(2)
	if err != nil {
		return nil, err
	}
	if h[0]&0x0f == 8 && (uint(h[0])<<8|uint(h[1]))%31 == 0 { // RFC 1950, section 2.2
		return zlib.NewReader(br)
	}
	return flate.NewReader(br), nil
}
