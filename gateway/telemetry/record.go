package telemetry

import (
	"strconv"
	"sync"
	"time"
	"unicode/utf8"
)

// record is one line of the log in the making. Lines that come with every request are
// written by hand in the form of slog's JSON handler: building them out of attributes costs a
// tenth of a request's processor time.
type record struct{ b []byte }

var records = sync.Pool{New: func() any { return &record{b: make([]byte, 0, 1024)} }}

// beginRecord starts an info line. It ends with into.
func beginRecord(now time.Time, message string) *record {
	r := records.Get().(*record)
	r.b = append(r.b[:0], `{"time":"`...)
	r.b = now.AppendFormat(r.b, time.RFC3339Nano)
	r.b = append(r.b, `","level":"INFO","msg":"`...)
	r.b = append(append(r.b, message...), '"')
	return r
}

// into hands the line over and gives the record's memory back.
func (r *record) into(s *sink) {
	r.b = append(r.b, '}', '\n')
	_, _ = s.Write(r.b)
	records.Put(r)
}

func (r *record) name(s string) {
	r.b = append(append(append(r.b, ',', '"'), s...), '"', ':')
}

func (r *record) text(name, v string) {
	r.name(name)
	r.b = appendQuoted(r.b, v)
}

func (r *record) int(name string, v int64) {
	r.name(name)
	r.b = strconv.AppendInt(r.b, v, 10)
}

// optional is null below zero.
func (r *record) optional(name string, v int) {
	if v < 0 {
		r.name(name)
		r.b = append(r.b, "null"...)
		return
	}
	r.int(name, int64(v))
}

// appendQuoted appends a JSON string. What is no UTF-8 becomes U+FFFD.
func appendQuoted(dst []byte, s string) []byte {
	const digits = "0123456789abcdef"
	dst = append(dst, '"')
	plain := 0
	for i := 0; i < len(s); {
		c := s[i]
		if plainByte[c] {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			if r, n := utf8.DecodeRuneInString(s[i:]); r != utf8.RuneError || n > 1 {
				i += n
				continue
			}
			dst = append(append(dst, s[plain:i]...), `\ufffd`...)
		} else {
			dst = append(dst, s[plain:i]...)
			switch c {
			case '"', '\\':
				dst = append(dst, '\\', c)
			case '\n':
				dst = append(dst, '\\', 'n')
			case '\r':
				dst = append(dst, '\\', 'r')
			case '\t':
				dst = append(dst, '\\', 't')
			default:
				dst = append(dst, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
			}
		}
		i++
		plain = i
	}
	return append(append(dst, s[plain:]...), '"')
}

// plainByte holds the bytes that need nothing in a JSON string.
var plainByte = func() (t [256]bool) {
	for c := 0x20; c < utf8.RuneSelf; c++ {
		t[c] = c != '"' && c != '\\'
	}
	return t
}()
