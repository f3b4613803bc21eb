package jsonx

import "math"

// MaxDepth is the deepest nesting of objects and arrays that a document may have.
const MaxDepth = 512

// Kind is the kind of a JSON value.
type Kind uint8

// The kinds. None is the end of the document or a byte that starts no value.
const (
	None Kind = iota
	Object
	Array
	String
	Number
	Bool
	Null
)

// Fault says what is wrong with a document. The zero value, Sound, is nothing.
type Fault uint8

// The faults.
const (
	Sound Fault = iota
	Unexpected
	Unfinished
	ControlInString
	BadEscape
	BadNumber
	BadLiteral
	TooDeep
	Trailing
	faults
)

var faultWords = [faults]string{
	"sound", "an unexpected character", "an unexpected end", "a control character in a string",
	"a bad escape in a string", "a malformed number", "a malformed literal", "nesting that is too deep",
	"something after the end",
}

// String describes the fault as a noun phrase.
func (f Fault) String() string {
	if f >= faults {
		return faultWords[Unexpected]
	}
	return faultWords[f]
}

// Reader walks one document from front to back and validates what it walks over. The first fault
// stays: everything after it is a no-op that reports nothing. The zero value reads an empty
// document; use Reset.
type Reader struct {
	b     []byte
	i     int
	depth int
	first bool // just inside an object or array
	fault Fault
	at    int
	key   [64]byte
}

// Reset starts a walk at the beginning of b.
func (r *Reader) Reset(b []byte) { r.ResetAt(b, 0) }

// ResetAt starts a walk at an offset of b where a value starts.
func (r *Reader) ResetAt(b []byte, at int) {
	r.b, r.i, r.depth, r.first, r.fault, r.at = b, at, 0, false, Sound, 0
}

// Fault is the first fault and the offset at which it was found.
func (r *Reader) Fault() (Fault, int) { return r.fault, r.at }

// OK says whether no fault was found so far.
func (r *Reader) OK() bool { return r.fault == Sound }

// Pos is the offset of the next unread byte.
func (r *Reader) Pos() int { return r.i }

func (r *Reader) fail(f Fault, at int) {
	if r.fault == Sound {
		r.fault, r.at = f, at
	}
}

// Peek skips blanks and tells the kind of the value that starts here.
func (r *Reader) Peek() Kind {
	if r.fault != Sound {
		return None
	}
	r.i = blanks(r.b, r.i)
	if r.i >= len(r.b) {
		return None
	}
	return kinds[r.b[r.i]]
}

var kinds = [256]Kind{
	'{': Object, '[': Array, '"': String, 't': Bool, 'f': Bool, 'n': Null, '-': Number,
	'0': Number, '1': Number, '2': Number, '3': Number, '4': Number,
	'5': Number, '6': Number, '7': Number, '8': Number, '9': Number,
}

// Enter steps into the object or array that starts here. Anything else is a fault.
func (r *Reader) Enter() bool {
	k := r.Peek()
	if k != Object && k != Array {
		r.fail(r.here())
		return false
	}
	if r.depth++; r.depth > MaxDepth {
		r.fail(TooDeep, r.i)
		return false
	}
	r.i++
	r.first = true
	return true
}

func (r *Reader) here() (Fault, int) {
	if r.i >= len(r.b) {
		return Unfinished, len(r.b)
	}
	return Unexpected, r.i
}

// more moves to the next member or element; false at the closing byte, which it consumes.
func (r *Reader) more(closing byte) bool {
	if r.fault != Sound {
		return false
	}
	r.i = blanks(r.b, r.i)
	if r.i >= len(r.b) {
		r.fail(Unfinished, len(r.b))
		return false
	}
	c := r.b[r.i]
	if c == closing {
		r.i++
		r.depth--
		r.first = false
		return false
	}
	if !r.first {
		if c != ',' {
			r.fail(Unexpected, r.i)
			return false
		}
		r.i = blanks(r.b, r.i+1)
	}
	r.first = false
	return true
}

// Item moves to the next element of the array that was entered; false after the last.
func (r *Reader) Item() bool {
	if !r.more(']') {
		return false
	}
	if r.i >= len(r.b) || kinds[r.b[r.i]] == None {
		r.fail(r.here())
		return false
	}
	return true
}

// Key moves to the next member of the object that was entered and returns its key, decoded, and
// the offset of the key's opening quote; false after the last. The key holds until the next call;
// one that is written with escapes and decodes to more than 64 bytes is returned as written, so
// that it equals no name one could look for.
func (r *Reader) Key() (key []byte, at int, ok bool) {
	if !r.more('}') {
		return nil, 0, false
	}
	at = r.i
	if at >= len(r.b) || r.b[at] != '"' {
		r.fail(r.here())
		return nil, 0, false
	}
	end, escaped, f := closing(r.b, at+1)
	if f != Sound {
		r.fail(f, end)
		return nil, 0, false
	}
	key = r.b[at+1 : end]
	r.i = blanks(r.b, end+1)
	if r.i >= len(r.b) || r.b[r.i] != ':' {
		r.fail(r.here())
		return nil, 0, false
	}
	r.i = blanks(r.b, r.i+1)
	if escaped {
		key = r.decodeKey(key)
	}
	return key, at, true
}

func (r *Reader) decodeKey(raw []byte) []byte {
	if len(raw) > 6*len(r.key) {
		return raw
	}
	// Decoding never lengthens, but it may pass the capacity: append then moves to the heap.
	if d := AppendDecoded(r.key[:0], raw); len(d) <= len(r.key) {
		return d
	}
	return raw
}

// Skip walks over the value that starts here and returns its range, half-open.
func (r *Reader) Skip() (from, to int) {
	if r.fault != Sound {
		return 0, 0
	}
	r.i = blanks(r.b, r.i)
	from = r.i
	to, f := value(r.b, from, r.depth)
	if f != Sound {
		r.fail(f, to)
		return 0, 0
	}
	r.i = to
	return from, to
}

// Str walks over the string that starts here: its contents as written, without the quotes, and
// whether they hold escapes. Another kind of value is a fault.
func (r *Reader) Str() (raw []byte, escaped bool) {
	if r.Peek() != String {
		r.fail(r.here())
		return nil, false
	}
	from := r.i + 1
	end, escaped, f := closing(r.b, from)
	if f != Sound {
		r.fail(f, end)
		return nil, false
	}
	r.i = end + 1
	return r.b[from:end], escaped
}

// StrOrSkip walks over any value; ok only for a string.
func (r *Reader) StrOrSkip() (raw []byte, escaped, ok bool) {
	if r.Peek() != String {
		r.Skip()
		return nil, false, false
	}
	raw, escaped = r.Str()
	return raw, escaped, r.OK()
}

// TrueOrSkip walks over any value and says whether it was true.
func (r *Reader) TrueOrSkip() bool {
	from, to := r.Skip()
	return to-from == 4 && r.b[from] == 't'
}

// IntOrSkip walks over any value; ok only for a whole number that fits (1e3 and 2.0 are whole).
func (r *Reader) IntOrSkip() (n int64, ok bool) {
	number := r.Peek() == Number
	from, to := r.Skip()
	if !number || !r.OK() {
		return 0, false
	}
	return Int(r.b[from:to])
}

// Close walks over what is left of the innermost object or array that was entered.
func (r *Reader) Close(k Kind) {
	for r.OK() {
		if k == Object {
			if _, _, ok := r.Key(); !ok {
				return
			}
		} else if !r.Item() {
			return
		}
		r.Skip()
	}
}

// End says whether nothing but blanks is left, which is a fault otherwise.
func (r *Reader) End() bool {
	if r.fault != Sound {
		return false
	}
	r.i = blanks(r.b, r.i)
	if r.i != len(r.b) {
		r.fail(Trailing, r.i)
		return false
	}
	return true
}

// Valid says whether b is one JSON document.
func Valid(b []byte) bool {
	end, f := value(b, blanks(b, 0), 0)
	return f == Sound && blanks(b, end) == len(b)
}

// Int reads a number as written when it is whole and fits.
func Int(raw []byte) (int64, bool) {
	neg := len(raw) > 0 && raw[0] == '-'
	digits := raw
	if neg {
		digits = raw[1:]
	}
	if len(digits) == 0 {
		return 0, false
	}
	var n int64
	for _, c := range digits {
		if c < '0' || c > '9' {
			return wholeFloat(raw)
		}
		if n > (math.MaxInt64-9)/10 {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	if neg {
		n = -n
	}
	return n, true
}

// Bytes cuts a range out of the document.
func (r *Reader) Bytes(from, to int) []byte { return r.b[from:to] }

// Document is the whole document that is being read.
func (r *Reader) Document() []byte { return r.b }
