package breaker

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestCoolDownsHoldLongest(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var c CoolDowns
		ends := map[string]time.Time{}
		models := rapid.SampledFrom([]string{"", "a", "b"})
		now := day
		for range rapid.IntRange(1, 40).Draw(t, "n") {
			now = now.Add(time.Duration(rapid.IntRange(0, 3).Draw(t, "pause")) * time.Second)
			m := models.Draw(t, "model")
			d := time.Duration(rapid.IntRange(0, 9).Draw(t, "rest")) * time.Second
			c.Rest(m, now, d)
			if end := now.Add(d); end.After(ends[m]) {
				ends[m] = end
			}
			for _, m := range []string{"a", "b", "c"} {
				want := ends[m]
				if ends[""].After(want) {
					want = ends[""]
				}
				until, resting := c.Until(m, now)
				require.Equal(t, want.After(now), resting, m)
				if resting {
					require.Equal(t, want, until, m)
				}
			}
		}
	})
}

func TestCoolDownsForgetWhatIsOver(t *testing.T) {
	var c CoolDowns
	for i := range 1000 {
		c.Rest(string(rune('a'+i)), day.Add(time.Duration(i)*time.Second), time.Second)
	}
	require.Len(t, c.models, 1)
}

func TestIsolationIsProbed(t *testing.T) {
	var i Isolation
	p, ok := i.Enter(day)
	require.True(t, ok)
	require.True(t, i.Isolate("invalid_api_key", "f1", day))
	require.False(t, i.Isolate("invalid_api_key", "f1", day))
	_, ended := i.Report(p, day, Good)
	require.False(t, ended, "an attempt from before ends nothing")

	now, wait := day, time.Minute
	for range 8 {
		s, until := i.Room(now)
		require.Equal(t, Open, s)
		require.Equal(t, wait, until.Sub(now))
		_, ok = i.Enter(until.Add(-1))
		require.False(t, ok)
		now = until
		s, _ = i.Room(now)
		require.Equal(t, HalfOpen, s)
		p, ok = i.Enter(now)
		require.True(t, ok)
		_, ok = i.Enter(now)
		require.False(t, ok, "one probe")
		_, ended = i.Report(p, now, Bad)
		require.False(t, ended)
		wait = min(2*wait, 30*time.Minute)
	}
	now = now.Add(wait)
	p, _ = i.Enter(now)
	i.Report(p, now, Neutral)
	p, ok = i.Enter(now)
	require.True(t, ok, "a neutral outcome frees the probe")
	f, ended := i.Report(p, now, Good)
	require.True(t, ended)
	require.Equal(t, Isolated{Reason: "invalid_api_key", Fingerprint: "f1", Since: day}, f)
	require.False(t, i.Active())
	s, _ := i.Room(now)
	require.Equal(t, Closed, s)
}

func TestIsolationRestored(t *testing.T) {
	for age, next := range map[time.Duration]time.Duration{
		-time.Hour: time.Minute, 0: time.Minute, 20 * time.Second: 40 * time.Second, time.Hour: 0,
	} {
		var i Isolation
		require.True(t, i.Restore(Isolated{Reason: "r", Fingerprint: "f", Since: day.Add(-age)}, day))
		f, ok := i.Fact(day)
		require.True(t, ok)
		require.Equal(t, next, f.Next.Sub(day), age)
		_, ok = i.End()
		require.True(t, ok)
		_, ok = i.End()
		require.False(t, ok)
	}
}
