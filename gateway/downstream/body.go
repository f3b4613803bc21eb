package downstream

import (
	"errors"
	"io"
)

const (
	// keptBody is the largest request body whose buffer is used again.
	keptBody = 64 << 10
	// trusted is how much memory a mere content-length is given before the bytes have come.
	trusted = 1 << 20
	// firstRoom is where the buffer of a body of unknown length starts.
	firstRoom = 16 << 10
	// chunked is the declared length of a body that comes in chunks.
	chunked = -1
)

// Why a body was not read to its end.
var (
	errTooLarge = errors.New("downstream: the body is too large")
	errBusy     = errors.New("downstream: too many bodies are in flight")
)

// upload is a request's body in memory, and what it takes of the budget.
type upload struct {
	bytes []byte
	taken int64
}

// read takes a body off the wire. Declared is its content-length, or chunked. The budget is
// asked for a whole declared body before any of it is read, and for a chunked one as it grows.
func (u *upload) read(r io.Reader, declared, limit int64, b *budget) error {
	u.bytes = u.bytes[:0]
	size := declared
	if declared == chunked {
		size = firstRoom
	}
	if size > limit && declared != chunked {
		return errTooLarge
	}
	if !u.take(size, b) {
		return errBusy
	}
	u.room(min(size, trusted))
	for {
		have := int64(len(u.bytes))
		if have == declared {
			return nil
		}
		if have > limit {
			return errTooLarge
		}
		if have == int64(cap(u.bytes)) {
			more := max(2*have, firstRoom)
			if declared != chunked { // the budget has all of it: few copies on the way there
				more = min(8*have, declared)
			} else if !u.take(more, b) {
				return errBusy
			}
			u.room(more)
		}
		end := int64(cap(u.bytes))
		if declared != chunked {
			end = min(end, declared)
		}
		n, err := r.Read(u.bytes[have:end])
		u.bytes = u.bytes[:have+int64(n)]
		switch have = int64(len(u.bytes)); {
		case err == nil, have == declared:
		case !errors.Is(err, io.EOF):
			return err
		case declared != chunked:
			return io.ErrUnexpectedEOF
		case have > limit:
			return errTooLarge
		default:
			return nil
		}
	}
}

// take sees to it that the body has n bytes of the budget.
func (u *upload) take(n int64, b *budget) bool {
	if n <= u.taken {
		return true
	}
	if !b.take(n - u.taken) {
		return false
	}
	u.taken = n
	return true
}

// room sees to it that the buffer holds n bytes.
func (u *upload) room(n int64) {
	if int64(cap(u.bytes)) >= n {
		return
	}
	grown := make([]byte, len(u.bytes), n)
	copy(grown, u.bytes)
	u.bytes = grown
}

// give returns to the budget what the body took: its bytes are no longer needed for another
// attempt.
func (u *upload) give(b *budget) {
	b.give(u.taken)
	u.taken = 0
}

// release gives up the bytes; a small buffer is kept.
func (u *upload) release() {
	if cap(u.bytes) > keptBody {
		u.bytes = nil
	}
	u.bytes = u.bytes[:0]
}
