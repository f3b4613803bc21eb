package server

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// candidateSeen is what operators are told of the candidate.
type candidateSeen struct {
	State      string  `json:"state"`
	Revision   *string `json:"revision"`
	Active     string  `json:"active"`
	LastError  *string `json:"last_error"`
	Off        bool    `json:"switched_off"`
	Comparison *struct {
		Compared, Differ int
		ByPoint          map[string]struct{ Compared, Differ int } `json:"by_point"`
		ByClass          map[string]struct{ Compared, Differ int } `json:"by_class"`
		ByKey            map[string]struct{ Compared, Differ int } `json:"by_key"`
		Examples         []struct {
			Point, Class, Key string
			RequestID         string `json:"request_id"`
			Active, Candidate struct{ Actions []string }
		}
	}
	Promoted *struct{ Revision, Over, Who, Reason string }
}

func (st *stand) candidateSeen() (c candidateSeen) {
	st.t.Helper()
	require.Equal(st.t, http.StatusOK, st.admin("GET", "/admin/v1/policy/candidate", "", &c))
	return c
}

func (st *stand) metricsText() string {
	st.t.Helper()
	resp, err := st.client.Get("http://" + st.AdminAddr().String() + "/metrics")
	require.NoError(st.t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	require.NoError(st.t, err)
	return string(b)
}

// TestCandidate tells the story of one: compared, deciding for a share, taken back, promoted,
// broken, and over restarts. Its matrix has one cell more than the active one: another channel
// may answer after a context overflow.
func TestCandidate(t *testing.T) {
	t.Parallel()
	next, dir := policyDir(t), t.TempDir()
	setCells(t, next, "context_overflow before_headers same_contract_fallback yes\n")
	const before, after = 400, 200 // what the caller gets from which of the two
	configured := func(candidate string) string { return twoChannels + "policy: {candidate: {" + candidate + "}}\n" }
	shadow := `path: "` + next + `"`
	st := setUpIn(t, dir, map[string]string{"a": "on chat\n  status 400 code context_length_exceeded\n", "b": ""}, configured(shadow))
	body := `{"model":"m","messages":[{"role":"user","content":"hi"}]}`
	ask := func() int { return st.chat(body).Status }

	// Shadow: nothing changes but what is counted.
	first := st.candidateSeen()
	require.Equal(t, "shadow", first.State)
	require.True(t, strings.HasPrefix(*first.Revision, "candidate@"))
	require.True(t, strings.HasPrefix(first.Active, "builtin@"))
	got := st.chat(body)
	require.Equal(t, before, got.Status)
	require.Eventually(t, func() bool { return st.candidateSeen().Comparison.Compared >= 3 }, promised+late, 10*time.Millisecond)
	c := st.candidateSeen().Comparison
	require.Equal(t, 1, c.Differ)
	require.Equal(t, 1, c.ByPoint["replay"].Differ)
	require.Equal(t, 1, c.ByPoint["admission"].Compared)
	require.Zero(t, c.ByPoint["admission"].Differ)
	require.Equal(t, 1, c.ByClass["context_overflow"].Differ)
	require.Equal(t, 1, c.ByKey["k"].Differ)
	require.Len(t, c.Examples, 1)
	require.Equal(t, got.ID(), c.Examples[0].RequestID)
	require.Equal(t, []string{"stop"}, c.Examples[0].Active.Actions)
	require.Equal(t, "same_contract_fallback", c.Examples[0].Candidate.Actions[0])
	require.Contains(t, st.metricsText(), `interlock_policy_candidate_differences_total{class="context_overflow",key="k",point="replay"} 1`)

	// Canary: it decides, the ledger says so, and the switch holds it at once.
	reload := func(candidate string) {
		t.Helper()
		st.configure(configured(candidate))
		require.Equal(t, 200, st.admin("POST", "/admin/v1/reload", "", nil))
	}
	reload(shadow + ", mode: canary, percent: 100")
	require.Equal(t, "canary", st.candidateSeen().State)
	got = st.chat(body)
	require.Equal(t, after, got.Status)
	var ledgered struct {
		PolicyRevision string `json:"policy_revision"`
	}
	require.Equal(t, 200, st.admin("GET", "/admin/v1/requests/"+got.ID(), "", &ledgered))
	require.Equal(t, *first.Revision, ledgered.PolicyRevision)
	require.Eventually(t, func() bool { return st.candidateSeen().Comparison.Differ == 1 }, promised+late, 10*time.Millisecond)
	require.Equal(t, []string{"stop"}, st.candidateSeen().Comparison.Examples[0].Active.Actions, "the active one is asked beside it")
	require.Equal(t, 200, st.admin("PUT", "/admin/v1/switches/policy/candidate", `{"reason":"an incident"}`, nil))
	require.Equal(t, before, ask())
	require.True(t, st.candidateSeen().Off)
	require.Equal(t, 200, st.admin("DELETE", "/admin/v1/switches/policy/candidate", "", nil))
	require.Equal(t, after, ask())

	// Rolled back: not tried until it has another content, whatever is reloaded or restarted.
	require.Equal(t, 200, st.admin("POST", "/admin/v1/policy/rollback", `{"reason":"too bold"}`, nil))
	require.Equal(t, before, ask())
	require.Equal(t, "rolled_back", st.candidateSeen().State)
	require.Equal(t, 404, st.admin("POST", "/admin/v1/policy/rollback", "", nil))
	st.end()
	st.begin()
	require.Equal(t, "rolled_back", st.candidateSeen().State)
	require.Equal(t, before, ask())

	// Promoted: for everybody, at once, and over a restart.
	var promoted candidateSeen
	require.Equal(t, 200, st.admin("POST", "/admin/v1/policy/promote", `{"reason":"it is good"}`, &promoted))
	require.Equal(t, after, ask())
	require.Equal(t, "in_force", promoted.State)
	require.Equal(t, *first.Revision, promoted.Active)
	require.Equal(t, "it is good", promoted.Promoted.Reason)
	require.Equal(t, 409, st.admin("POST", "/admin/v1/policy/promote", "", nil))
	require.Equal(t, *first.Revision, st.policySeen().Revision)

	// What is broken, or gone, is told, and what was promoted stays: it is a copy.
	write(t, filepath.Join(next, "interlock", "replay.rego"), "package interlock.replay\n\nand then {\n")
	require.Eventually(t, func() bool {
		c := st.candidateSeen()
		return c.LastError != nil && strings.Contains(*c.LastError, "replay.rego")
	}, promised+late, 20*time.Millisecond)
	require.Equal(t, after, ask())
	require.NoError(t, os.RemoveAll(next))
	st.end()
	st.begin()
	require.Equal(t, after, ask())
	require.Equal(t, "refused", st.candidateSeen().State)
	require.Equal(t, *first.Revision, st.candidateSeen().Promoted.Revision)

	// Rolled back: the configured bundles are in force again.
	require.Equal(t, 200, st.admin("POST", "/admin/v1/policy/rollback", "", nil))
	require.Equal(t, before, ask())
	require.Nil(t, st.candidateSeen().Promoted)
	var changes struct {
		Changes []struct{ What, Reason string }
	}
	require.Equal(t, 200, st.admin("GET", "/admin/v1/changes", "", &changes))
	var told []string
	for _, c := range changes.Changes {
		told = append(told, c.What)
	}
	require.Equal(t, []string{
		"policy/rollback", "policy/promote", "policy/rollback", "switch/policy/candidate", "switch/policy/candidate",
	}, filter(told, "reload"))
}

func filter(list []string, without string) (kept []string) {
	for _, s := range list {
		if s != without {
			kept = append(kept, s)
		}
	}
	return kept
}

// TestPromotionEndsWithOtherBundles: what the operator configures after it counts.
func TestPromotionEndsWithOtherBundles(t *testing.T) {
	t.Parallel()
	next, own := policyDir(t), policyDir(t)
	setCells(t, next, "context_overflow before_headers same_contract_fallback yes\n")
	st := setUp(t, map[string]string{"a": "on chat\n  status 400 code context_length_exceeded\n", "b": ""},
		twoChannels+`policy: {bundles: [{name: own, path: "`+own+`"}], candidate: {path: "`+next+`"}}`+"\n")
	body := `{"model":"m","messages":[{"role":"user","content":"hi"}]}`
	require.Equal(t, 400, st.chat(body).Status)
	require.Equal(t, 200, st.admin("POST", "/admin/v1/policy/promote", "", nil))
	require.Equal(t, 200, st.chat(body).Status)
	setCells(t, own, "rate_limited before_headers same_route_retry no\n")
	require.Eventually(t, func() bool { return st.candidateSeen().Promoted == nil }, promised+late, 20*time.Millisecond)
	require.Equal(t, 400, st.chat(body).Status)
	require.Contains(t, st.policySeen().Revision, "own@")
	require.Equal(t, "shadow", st.candidateSeen().State, "it is tried again")
}
