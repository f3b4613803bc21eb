package failure

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestEveryWordParsesBack(t *testing.T) {
	require.Len(t, Classes(), 19)
	for _, c := range Classes() {
		got, ok := ParseClass(c.String())
		require.True(t, ok)
		require.Equal(t, c, got)
	}
	for _, p := range Phases() {
		got, ok := ParsePhase(p.String())
		require.True(t, ok)
		require.Equal(t, p, got)
	}
	for _, tr := range Transports() {
		got, ok := ParseTransport(tr.String())
		require.True(t, ok)
		require.Equal(t, tr, got)
	}
	for _, w := range []string{"", "retry", "Network", "network "} {
		_, ok := ParseClass(w)
		require.False(t, ok, w)
	}
	require.Equal(t, "invalid", Class(200).String())
}

func TestActionsStartTheirCause(t *testing.T) {
	for _, a := range []Action{RetrySameRoute, FallBackSameContract, SubstituteModel} {
		require.Equal(t, a.String(), a.Cause().String())
	}
}

// Every class × phase has one terminal reason, and only a delivered answer is a success.
func TestTerminalOf(t *testing.T) {
	for _, c := range Classes() {
		for _, p := range Phases() {
			for _, ranOut := range []bool{false, true} {
				got := TerminalOf(c, p, ranOut)
				switch {
				case c == Refusal:
					require.Equal(t, Success, got)
				case c == Cancelled:
					require.Equal(t, CallerLeft, got)
				case p == AfterOutput:
					require.Equal(t, Partial, got, "%v", c)
				case c.Health() == Neutral:
					require.Equal(t, PolicyStop, got, "%v", c)
				case ranOut:
					require.Equal(t, Exhausted, got, "%v", c)
				default:
					require.Equal(t, PolicyStop, got, "%v", c)
				}
			}
		}
	}
}

func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, tc := range []struct {
		name, seconds, ms, date string
		want                    time.Duration
		ok                      bool
	}{
		{name: "nothing"},
		{name: "seconds", seconds: "7", want: 7 * time.Second, ok: true},
		{name: "zero", seconds: "0", ok: true},
		{name: "fraction", seconds: "1.5", want: 1500 * time.Millisecond, ok: true},
		{name: "blanks", seconds: " 3 ", want: 3 * time.Second, ok: true},
		{name: "milliseconds", ms: "250", want: 250 * time.Millisecond, ok: true},
		{name: "the longest holds", seconds: "1", ms: "2500", want: 2500 * time.Millisecond, ok: true},
		{name: "date", seconds: "Fri, 02 Jan 2026 03:04:15 GMT", want: 10 * time.Second, ok: true},
		{
			name: "date against the answer's own", seconds: "Fri, 02 Jan 2026 03:04:15 GMT",
			date: "Fri, 02 Jan 2026 03:04:11 GMT", want: 4 * time.Second, ok: true,
		},
		{name: "past date", seconds: "Fri, 02 Jan 2026 03:04:00 GMT"},
		{name: "far date", seconds: "Fri, 09 Jan 2026 03:04:00 GMT"},
		{name: "negative", seconds: "-1"},
		{name: "over a day", seconds: "86401"},
		{name: "a day", seconds: "86400", want: 24 * time.Hour, ok: true},
		{name: "text", seconds: "soon"},
		{name: "hex", seconds: "0x10"},
		{name: "exponent", seconds: "1e3"},
		{name: "infinity", seconds: "inf"},
		{name: "overflow", seconds: "99999999999999999999999"},
		{name: "one bad, one good", seconds: "soon", ms: "40", want: 40 * time.Millisecond, ok: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, ok := RetryAfter(tc.seconds, tc.ms, tc.date, now)
			require.Equal(t, tc.ok, ok)
			require.Equal(t, tc.want, got)
		})
	}
}

func FuzzRetryAfter(f *testing.F) {
	f.Add("7", "", "")
	f.Add("Fri, 02 Jan 2026 03:04:15 GMT", "1.5", "Fri, 02 Jan 2026 03:04:11 GMT")
	f.Add("-0", "..", "x")
	f.Fuzz(func(t *testing.T, s, ms, date string) {
		d, ok := RetryAfter(s, ms, date, time.Unix(1e9, 0))
		if d < 0 || d > MaxRetryAfter || !ok && d != 0 {
			t.Fatalf("%q %q %q: %v %v", s, ms, date, d, ok)
		}
	})
}
