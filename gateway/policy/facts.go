package policy

import "time"

// Tools' and answers' facts that a policy sees are small closed lists of words. The zero
// value of each is the word "unknown", unless its comment says otherwise.

// StructuredOutput is what shape of answer the request promised.
type StructuredOutput uint8

// The structured outputs.
const (
	UnknownOutput StructuredOutput = iota
	FreeText
	JSONObject
	JSONSchema
)

var structuredOutputs = []string{"unknown", "none", "json_object", "json_schema"}

func (s StructuredOutput) String() string { return word(structuredOutputs, s) }

// SideEffects says whether doing the request twice may do something twice.
type SideEffects uint8

// The side effects.
const (
	UnknownEffects SideEffects = iota
	NoSideEffects
	PossibleSideEffects
)

var sideEffects = []string{"unknown", "none", "possible"}

func (s SideEffects) String() string { return word(sideEffects, s) }

// Wish is what a caller, or an admission, says about model substitution. The zero value is
// "unspecified".
type Wish uint8

// The wishes.
const (
	Unspecified Wish = iota
	Allow
	Deny
)

var wishes = []string{"unspecified", "allow", "deny"}

func (w Wish) String() string { return word(wishes, w) }

// Release says when a stream's output goes to the caller.
type Release uint8

// The releases.
const (
	UnknownRelease Release = iota
	ReleaseStream
	ReleaseBuffered
)

var releases = []string{"unknown", "stream", "buffered"}

func (r Release) String() string { return word(releases, r) }

// TimeLeft is the quantised time until the request's deadline.
type TimeLeft uint8

// The times left.
const (
	UnknownTime TimeLeft = iota
	NoTime               // less than 500 ms
	ShortTime            // less than 2 s
	SomeTime             // less than 30 s
	AmpleTime            // 30 s or more, or no deadline
)

var timesLeft = []string{"unknown", "none", "short", "some", "ample"}

func (t TimeLeft) String() string { return word(timesLeft, t) }

// QuantiseTimeLeft returns the word for the time until the deadline.
func QuantiseTimeLeft(d time.Duration) TimeLeft {
	switch {
	case d < 500*time.Millisecond:
		return NoTime
	case d < 2*time.Second:
		return ShortTime
	case d < 30*time.Second:
		return SomeTime
	default:
		return AmpleTime
	}
}

// RetryAfter is the quantised wait that the provider asked for. The zero value is "none":
// it asked for none.
type RetryAfter uint8

// The waits.
const (
	NoRetryAfter    RetryAfter = iota
	ShortRetryAfter            // up to 5 s
	LongRetryAfter             // more
)

var retryAfters = []string{"none", "short", "long"}

func (r RetryAfter) String() string { return word(retryAfters, r) }

// QuantiseRetryAfter returns the word for a provider's Retry-After; present is false where
// there was none, or none that is valid.
func QuantiseRetryAfter(d time.Duration, present bool) RetryAfter {
	switch {
	case !present:
		return NoRetryAfter
	case d <= 5*time.Second:
		return ShortRetryAfter
	default:
		return LongRetryAfter
	}
}

// Window compares a substitute's context window with the requested model's.
type Window uint8

// The windows.
const (
	UnknownWindow Window = iota
	SmallerWindow
	EqualWindow
	LargerWindow
)

var windows = []string{"unknown", "smaller", "equal", "larger"}

func (w Window) String() string { return word(windows, w) }

// CompareWindows returns the word for a substitute with that context window in tokens; 0 is
// not known.
func CompareWindows(substitute, requested int) Window {
	switch {
	case substitute <= 0 || requested <= 0:
		return UnknownWindow
	case substitute > requested:
		return LargerWindow
	case substitute == requested:
		return EqualWindow
	default:
		return SmallerWindow
	}
}
