package recovery

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/gateway/failure"
)

// What more attempts would have allowed is told apart from what routes and time forbid, and
// asking changes nothing.
func TestUnlimited(t *testing.T) {
	now := time.Now()
	for name, c := range map[string]struct {
		perRoute int
		deadline time.Time
		want     bool
	}{
		"the route may be asked again": {2, now.Add(time.Minute), true},
		"its attempts are spent too":   {1, now.Add(time.Minute), false},
		"no time is left":              {2, now, false},
	} {
		t.Run(name, func(t *testing.T) {
			l := Limits{MaxAttempts: 1, MaxPerRoute: c.perRoute, MaxPerGroup: 9, Deadline: c.deadline.Add(time.Millisecond), MinUseful: time.Second}
			l.UserAction.Counted, l.UserAction.Left = true, 1
			var m Machine
			m.Reset(l)
			require.False(t, m.ActionSpent())
			cands := []Candidate{{State: Ready, Recorded: true, Permit: true}}
			require.Equal(t, NoInterlock, m.Start(now, failure.Initial, &cands[0]))
			require.True(t, m.Close(now, Failure{Class: failure.ServerError, Phase: failure.BeforeHeaders}))
			require.True(t, m.ActionSpent())
			verdict := Verdict{Actions: []failure.Action{failure.RetrySameRoute}}
			require.Equal(t, c.want, m.Unlimited().Decide(now, cands, verdict, 0).Go)
			require.Zero(t, m.Open(now, cands).AttemptsLeft)
			require.False(t, m.Decide(now, cands, verdict, 0).Go)
		})
	}
}
