package adapter

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"math"
	"strconv"
)

// Large strings of a request stay outside the guest: in their place stands a handle that the
// guest puts where the string belongs, and the host puts the bytes back. A picture then costs
// what a word does, plus copying.

const (
	blobPrefix = "interlock:blob:"
	// blobLeast is from which length on a string stays outside.
	blobLeast = 32 << 10
	blobNonce = 22 // characters
)

var errBlob = errors.New("a handle of a large string is used as it must not be, or too often")

// blobs are the large strings of one request. The nonce is new for each, so that no text can
// pass for a handle.
type blobs struct {
	nonce  [blobNonce]byte
	parts  [][]byte // of the caller's body
	size   int      // all of them
	random [16]byte
}

func (l *blobs) reset() {
	clear(l.parts)
	l.parts, l.size = l.parts[:0], 0
}

// remove appends a valid JSON document to dst with handles for its large strings; ok is false,
// and dst as it was, where there is none.
func (l *blobs) remove(dst, doc []byte) (out []byte, ok bool) {
	l.reset()
	if len(doc) < blobLeast {
		return dst, false
	}
	done := 0
	for i := 0; i < len(doc); {
		open := bytes.IndexByte(doc[i:], '"')
		if open < 0 {
			break
		}
		from := i + open + 1
		length := bytes.IndexByte(doc[from:], '"')
		if length < 0 {
			break
		}
		to := from + length
		if escape := bytes.IndexByte(doc[from:to], '\\'); escape >= 0 {
			i = endOfString(doc, from+escape)
			continue
		}
		i = to + 1
		if to-from < blobLeast {
			continue
		}
		if text := doc[from:to]; bytes.HasPrefix(text, []byte("data:")) {
			if comma := bytes.IndexByte(text[:min(len(text), 256)], ','); comma >= 0 {
				from += comma + 1
			}
		}
		if len(l.parts) == 0 {
			_, _ = rand.Read(l.random[:]) // never fails
			base64.RawURLEncoding.Encode(l.nonce[:], l.random[:])
		}
		dst = append(dst, doc[done:from]...)
		dst = append(append(append(dst, blobPrefix...), l.nonce[:]...), ':')
		dst = strconv.AppendInt(dst, int64(len(l.parts)), 10)
		l.parts = append(l.parts, doc[from:to])
		l.size += to - from
		done = to
	}
	if len(l.parts) == 0 {
		return dst, false
	}
	return append(dst, doc[done:]...), true
}

// endOfString is the offset behind the quote that ends a string; at is inside it.
func endOfString(doc []byte, at int) int {
	for at < len(doc) {
		switch doc[at] {
		case '\\':
			at += 2
		case '"':
			return at + 1
		default:
			at++
		}
	}
	return len(doc)
}

// restore appends what a guest returned to dst with the strings in place of their handles.
func (l *blobs) restore(dst, doc []byte) ([]byte, error) {
	if len(l.parts) == 0 {
		return append(dst, doc...), nil
	}
	most := 4*l.size + len(doc) + 1<<20
	start, n := len(dst), 0
	for {
		at := bytes.Index(doc, l.nonce[:])
		if at < 0 {
			break
		}
		from, to := at-len(blobPrefix), at+blobNonce+1
		if from < 1 || string(doc[from:at]) != blobPrefix || doc[from-1] != '"' && doc[from-1] != ',' ||
			to > len(doc) || doc[to-1] != ':' {
			return dst[:start], errBlob
		}
		end := bytes.IndexByte(doc[to:], '"')
		if end < 1 || end > 9 {
			return dst[:start], errBlob
		}
		i, err := strconv.ParseUint(string(doc[to:to+end]), 10, 31)
		if err != nil || i > math.MaxInt32 || int(i) >= len(l.parts) {
			return dst[:start], errBlob
		}
		if n += len(l.parts[i]); n > most {
			return dst[:start], errBlob
		}
		dst = append(append(dst, doc[:from]...), l.parts[i]...)
		doc = doc[to+end:]
	}
	return append(dst, doc...), nil
}
