package failure

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// MaxRetryAfter is the longest time that a provider is believed to mean.
const MaxRetryAfter = 24 * time.Hour

// RetryAfter reads how long an answer asks to be left alone, from its headers Retry-After
// (a number of seconds, or an HTTP date, RFC 9110 section 10.2.3) and retry-after-ms (a
// number of milliseconds). A date is read against date, the answer's own Date header, so
// that two clocks that differ do no harm; without a valid one, against now. The longest of
// the valid values holds. What is negative, past, over MaxRetryAfter or no number is
// ignored; ok says whether a valid one was there, zero included.
func RetryAfter(retryAfter, retryAfterMS, date string, now time.Time) (d time.Duration, ok bool) {
	if v, valid := number(retryAfter, time.Second); valid {
		d, ok = v, true
	} else if v, valid := untilDate(retryAfter, date, now); valid {
		d, ok = v, true
	}
	if v, valid := number(retryAfterMS, time.Millisecond); valid {
		d, ok = max(d, v), true
	}
	return d, ok
}

func number(s string, unit time.Duration) (time.Duration, bool) {
	s = strings.TrimSpace(s)
	if s == "" || len(s) > 24 || s[0] != '.' && (s[0] < '0' || s[0] > '9') {
		return 0, false // ParseFloat would take signs, hex and names too
	}
	for i := range len(s) {
		if c := s[i]; c != '.' && (c < '0' || c > '9') {
			return 0, false
		}
	}
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsInf(v, 0) || v*float64(unit) > float64(MaxRetryAfter) {
		return 0, false
	}
	return time.Duration(v * float64(unit)), true
}

func untilDate(s, date string, now time.Time) (time.Duration, bool) {
	at, err := http.ParseTime(strings.TrimSpace(s))
	if err != nil {
		return 0, false
	}
	if own, err := http.ParseTime(strings.TrimSpace(date)); err == nil {
		now = own
	}
	d := at.Sub(now)
	if d <= 0 || d > MaxRetryAfter {
		return 0, false
	}
	return d, true
}
