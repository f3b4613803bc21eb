package json

import (
	"errors"
	"iter"
	"strconv"
)

// ErrInvalid is the error of Parse.
var ErrInvalid = errors.New("invalid JSON")

// Value is one JSON value without surrounding blanks. nil stands for a value that is absent;
// every method may be called on it. Comparing two values as bytes compares how they are written.
type Value []byte

// Kind is what a value is.
type Kind uint8

// The kinds.
const (
	Absent Kind = iota
	Null
	Bool
	Number
	String
	Array
	Object
)

// Parse checks that b is one JSON document and returns its value, which aliases b. Strings must
// be UTF-8. Half a surrogate pair, written as an escape, is accepted and decodes to U+FFFD. An
// object may name a key twice: the last one counts for Get. The error is ErrInvalid.
func Parse(b []byte) (Value, error) {
	from := blanks(b, 0)
	to := check(b, from, 0)
	if to < 0 || blanks(b, to) != len(b) {
		return nil, ErrInvalid
	}
	return Value(b[from:to:to]), nil
}

// Valid says whether Parse would accept b.
func Valid(b []byte) bool {
	_, err := Parse(b)
	return err == nil
}

// Kind tells what the value is by its first byte.
func (v Value) Kind() Kind {
	if len(v) == 0 {
		return Absent
	}
	switch c := v[0]; c {
	case '{':
		return Object
	case '[':
		return Array
	case '"':
		return String
	case 't', 'f':
		return Bool
	case 'n':
		return Null
	default:
		if c == '-' || c-'0' <= 9 {
			return Number
		}
	}
	return Absent
}

// IsNull says whether the value is absent or null.
func (v Value) IsNull() bool { return len(v) == 0 || v[0] == 'n' }

// IsObject says whether the value is an object.
func (v Value) IsObject() bool { return len(v) > 0 && v[0] == '{' }

// IsArray says whether the value is an array.
func (v Value) IsArray() bool { return len(v) > 0 && v[0] == '[' }

// IsString says whether the value is a string.
func (v Value) IsString() bool { return len(v) > 1 && v[0] == '"' }

// IsNumber says whether the value is a number.
func (v Value) IsNumber() bool { return v.Kind() == Number }

// Bool returns a boolean's value; ok is false when the value is none.
func (v Value) Bool() (value, ok bool) {
	if v.Kind() != Bool {
		return false, false
	}
	return v[0] == 't', true
}

// True says whether the value is true.
func (v Value) True() bool { return len(v) > 0 && v[0] == 't' }

// Int returns a number that is whole and fits; 1.0 and 1e3 are whole. ok is false otherwise.
func (v Value) Int() (n int64, ok bool) {
	if v.Kind() != Number {
		return 0, false
	}
	negative := v[0] == '-'
	u, ok := v.magnitude()
	switch {
	case !ok:
		return 0, false
	case negative && u <= 1<<63:
		return -int64(u), true
	case !negative && u < 1<<63:
		return int64(u), true
	}
	return 0, false
}

// Uint returns a number that is whole, not negative and fits. ok is false otherwise.
func (v Value) Uint() (n uint64, ok bool) {
	if v.Kind() != Number {
		return 0, false
	}
	n, ok = v.magnitude()
	if !ok || v[0] == '-' && n != 0 {
		return 0, false
	}
	return n, true
}

// Float returns a number, rounded to the nearest that fits; ok is false when there is none.
func (v Value) Float() (f float64, ok bool) {
	if v.Kind() != Number {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(v), 64)
	return f, err == nil
}

// magnitude reads a whole number without its sign.
func (v Value) magnitude() (uint64, bool) {
	digits := v
	if digits[0] == '-' {
		digits = digits[1:]
	}
	var n uint64
	for _, c := range digits {
		d := uint64(c - '0')
		if d > 9 {
			return whole(digits)
		}
		if n > (1<<64-1)/10 || n*10 > 1<<64-1-d {
			return 0, false
		}
		n = n*10 + d
	}
	return n, len(digits) > 0
}

// whole reads a number with a fraction or an exponent, exact to 2^53.
func whole(digits []byte) (uint64, bool) {
	if len(digits) > 40 {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(digits), 64)
	if err != nil || f < 0 || f > 1<<53 || f != float64(uint64(f)) {
		return 0, false
	}
	return uint64(f), true
}

// Members ranges over an object's members in order: the key decoded, and the value. Nothing is
// allocated unless a key has escapes. Of what is not an object there are none. It looks at every
// byte of the object once.
func (v Value) Members() iter.Seq2[[]byte, Value] {
	return func(yield func([]byte, Value) bool) { members(v, yield) }
}

func members(v Value, yield func([]byte, Value) bool) {
	if !v.IsObject() {
		return
	}
	for i := blanks(v, 1); i < len(v) && v[i] == '"'; {
		end, escaped := skipString(v, i)
		key := []byte(v[i+1 : max(i+1, end-1) : max(i+1, end-1)])
		if escaped {
			key = Value(v[i:end:end]).Text()
		}
		i = blanks(v, end)
		i = blanks(v, min(i+1, len(v))) // behind the colon
		end = skip(v, i)
		if !yield(key, v[i:end:end]) {
			return
		}
		if i = blanks(v, end); i >= len(v) || v[i] != ',' {
			return
		}
		i = blanks(v, i+1)
	}
}

// Items ranges over an array's elements in order. Of what is not an array there are none.
func (v Value) Items() iter.Seq[Value] {
	return func(yield func(Value) bool) { items(v, yield) }
}

func items(v Value, yield func(Value) bool) {
	if !v.IsArray() {
		return
	}
	for i := blanks(v, 1); i < len(v) && v[i] != ']'; {
		end := skip(v, i)
		if !yield(v[i:end:end]) {
			return
		}
		if i = blanks(v, end); i >= len(v) || v[i] != ',' {
			return
		}
		i = blanks(v, i+1)
	}
}

// Get returns the member with that key, nil when there is none or the value is no object. Each
// call looks at the whole object: where several keys are wanted, range over Members once.
func (v Value) Get(key string) (value Value) {
	for k, m := range v.Members() {
		if string(k) == key {
			value = m
		}
	}
	return value
}

// At follows keys through nested objects.
func (v Value) At(keys ...string) Value {
	for _, key := range keys {
		v = v.Get(key)
	}
	return v
}

// Empty says whether the value is absent, null, "", [] or {}.
func (v Value) Empty() bool {
	switch v.Kind() {
	case Object, Array:
		i := blanks(v, 1)
		return i < len(v) && (v[i] == '}' || v[i] == ']')
	case String:
		return len(v) == 2
	}
	return v.IsNull()
}
