package server

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestAPromotedPolicyThatKeepsTimingOutIsTakenBack: a promoted candidate is a new revision like
// another; the bundles before it decide again, by themselves.
func TestAPromotedPolicyThatKeepsTimingOutIsTakenBack(t *testing.T) {
	t.Parallel()
	dir := policyDir(t)
	dearIsSlow(t, dir)
	st := setUp(t, map[string]string{"a": "on chat\n  status 500\n", "b": ""}, strings.ReplaceAll(twoChannels, "{m: {", "{dear: {")+`
policy: {candidate: {path: "`+dir+`"}}
breaker: {consecutive_failures: 0, failure_ratio: 0}
`)
	before := st.policySeen()
	require.Equal(t, 200, st.admin("POST", "/admin/v1/policy/promote", `{"reason":"looks fine"}`, nil))
	bad := st.policySeen().Revision
	require.NotEqual(t, before.Revision, bad)

	body := `{"model":"dear","messages":[{"role":"user","content":"hi"}]}`
	failed := 0
	require.Eventually(t, func() bool { // each of them fails closed, until they are too many
		got := st.chat(body)
		if got.Status != 200 {
			failed++
			require.Equal(t, 502, got.Status, got.Body)
		}
		return got.Status == 200
	}, time.Minute, time.Millisecond)
	require.GreaterOrEqual(t, failed, 5)
	require.Equal(t, before.Revision, st.policySeen().Revision)
	c := st.candidateSeen()
	require.Equal(t, "rolled_back", c.State)
	require.Nil(t, c.Promoted)
	require.Equal(t, 200, st.chat(body).Status)
}
