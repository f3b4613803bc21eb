package upstream

import "errors"

// frameMode says how a response body is delimited (RFC 9112, section 6.3).
type frameMode uint8

const (
	noBody frameMode = iota
	byLength
	byChunks
	untilClose
)

// framer finds the body's bytes among those of the wire. It is a pure state machine: the
// input may be cut anywhere, and no byte needs to be kept for it.
type framer struct {
	mode   frameMode
	state  chunkState
	ended  bool
	err    error
	remain int64 // of the body or the chunk
	digits int   // of the chunk's size so far
	excess int   // framing bytes beyond what the data justifies
	extras int   // bytes of the trailers so far
}

type chunkState uint8

const (
	chunkSize chunkState = iota
	chunkPad             // blanks after the size
	chunkExt
	chunkSizeLF
	chunkData
	chunkDataCR
	chunkDataLF
	trailerStart
	trailerLine
	trailerLF
	trailerEndLF
)

const (
	maxChunk    = 1 << 50
	maxExcess   = 16 << 10 // as extensions and tiny chunks may add up to
	maxTrailers = 16 << 10
)

var (
	errChunk    = errors.New("chunked framing is broken")
	errExcess   = errors.New("chunked framing is mostly overhead")
	errTrailers = errors.New("trailers are larger than allowed")
)

// start begins a body; length counts with byLength only.
func (f *framer) start(mode frameMode, length int64) {
	*f = framer{mode: mode}
	if mode == byLength {
		f.remain = length
	}
	f.ended = mode == noBody || mode == byLength && length == 0
}

// skip returns how many of the bytes at hand are framing that comes before the next byte of
// the body. Behind them is body (take says how much), or the body has ended, or the framing
// is broken, or more bytes are needed.
func (f *framer) skip(b []byte) int {
	if f.mode != byChunks {
		return 0
	}
	for i, c := range b {
		if f.ended || f.err != nil || f.state == chunkData {
			return i
		}
		f.chunkByte(c)
	}
	return len(b)
}

// take counts up to n bytes, of those at hand behind the framing, as body.
func (f *framer) take(n int) int {
	switch {
	case f.ended || f.err != nil || f.mode == byChunks && f.state != chunkData:
		return 0
	case f.mode == untilClose:
		return n
	case int64(n) > f.remain:
		n = int(f.remain)
	}
	f.remain -= int64(n)
	if f.remain == 0 {
		f.ended = f.mode == byLength
		f.state = chunkDataCR
	}
	return n
}

func (f *framer) chunkByte(c byte) {
	switch f.state {
	case chunkSize, chunkPad, chunkExt:
		f.sizeByte(c)
	case chunkSizeLF:
		f.want(c, '\n', chunkData)
		f.sizeDone()
	case chunkDataCR:
		f.want(c, '\r', chunkDataLF)
	case chunkDataLF:
		f.want(c, '\n', chunkSize)
		f.digits = 0
	case trailerStart, trailerLine, trailerLF:
		f.trailerByte(c)
	case trailerEndLF:
		f.want(c, '\n', trailerEndLF)
		f.ended = f.err == nil
	}
}

func (f *framer) want(c, wanted byte, next chunkState) {
	if c != wanted {
		f.err = errChunk
		return
	}
	f.state = next
}

// sizeByte reads `1*HEXDIG *WS [ ";" extension ] CR`.
func (f *framer) sizeByte(c byte) {
	if f.state == chunkSize {
		if h := unhex[c]; h >= 0 {
			f.digits++
			f.remain = f.remain<<4 | int64(h)
			if f.remain > maxChunk || f.digits > 32 {
				f.err = errChunk
			}
			return
		}
		if f.digits == 0 {
			f.err = errChunk
			return
		}
	}
	switch {
	case c == '\r':
		f.state = chunkSizeLF
		return
	case c == ';' && f.state != chunkExt:
		f.state = chunkExt
	case f.state == chunkExt && (c >= ' ' && c != 0x7f || c == '\t'):
	case f.state != chunkExt && (c == ' ' || c == '\t'):
		f.state = chunkPad
	default:
		f.err = errChunk
		return
	}
	f.excess++
	if f.excess > maxExcess {
		f.err = errExcess
	}
}

func (f *framer) sizeDone() {
	if f.err != nil {
		return
	}
	if f.remain == 0 {
		f.state = trailerStart
		return
	}
	// Each chunk may cost some bytes around its size; data pays for more.
	if credit := 16 + 2*f.remain; int64(f.excess) > credit {
		f.excess -= int(credit)
	} else {
		f.excess = 0
	}
}

// trailerByte skips trailer fields; nothing in them is used.
func (f *framer) trailerByte(c byte) {
	if f.extras++; f.extras > maxTrailers {
		f.err = errTrailers
		return
	}
	switch {
	case f.state == trailerLF:
		f.want(c, '\n', trailerStart)
	case c == '\r' && f.state == trailerStart:
		f.state = trailerEndLF
	case c == '\r':
		f.state = trailerLF
	case c == '\n' || c == 0:
		f.err = errChunk
	default:
		f.state = trailerLine
	}
}

var unhex = func() (t [256]int8) {
	for i := range t {
		t[i] = -1
	}
	for i := range 10 {
		t['0'+i] = int8(i)
	}
	for i := range 6 {
		t['a'+i], t['A'+i] = int8(10+i), int8(10+i)
	}
	return t
}()
