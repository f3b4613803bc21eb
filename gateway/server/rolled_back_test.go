package server

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// dearIsSlow changes a copy of the default bundle so that it passes every probe and never decides
// in time on a failure of the model "dear". It returns how to do so again.
func dearIsSlow(t *testing.T, dir string) (again func()) {
	t.Helper()
	path := filepath.Join(dir, "interlock", "failure.rego")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	rules := strings.Replace(string(text), "package interlock.failure\n", "package interlock.failure\n\nimport data.interlock.slow\n", 1)
	i := strings.Index(rules, "\ndecision :=")
	require.Positive(t, i)
	rules = rules[:i] + "\ndecision := {\"class\": \"unknown\", \"reason\": \"slow\"} if slow.slow\n" + rules[i:]
	again = func() {
		write(t, filepath.Join(dir, "interlock", "slow.rego"), `package interlock.slow

slow if {
	input.model == "dear"
	count([1 | some a in numbers.range(1, 100000); some b in numbers.range(1, 100000); a == b]) > 0
}
`)
		write(t, path, rules)
	}
	again()
	return again
}

// TestWhatWasRolledBackStaysOut: a policy that keeps timing out is taken back while callers are
// answered, and nothing but another content brings it into force again: no reload, no file that is
// written once more, and of a server's bundle no restart. Operators are told each time.
func TestWhatWasRolledBackStaysOut(t *testing.T) {
	t.Parallel()
	dir := policyDir(t)
	st := setUp(t, map[string]string{"a": "on chat\n  status 500\n", "b": ""}, strings.ReplaceAll(twoChannels, "{m: {", "{dear: {")+`
policy: {bundles: [{name: own, path: "`+dir+`"}]}
breaker: {consecutive_failures: 0, failure_ratio: 0}
`)
	body := `{"model":"dear","messages":[{"role":"user","content":"hi"}]}`
	got := st.chat(body)
	require.Equal(t, 200, got.Status, got.Body)
	require.Equal(t, "same_contract_fallback", got.Header.Get("interlock-cause"))
	first := st.policySeen()

	again := dearIsSlow(t, dir)
	require.Eventually(t, func() bool { return st.policySeen().Revision != first.Revision }, promised+late, 20*time.Millisecond)
	bad := st.policySeen().Revision
	failed := 0
	require.Eventually(t, func() bool { // each of them fails closed, until they are too many
		got := st.chat(body)
		if got.Status != 200 {
			failed++
			require.Equal(t, 502, got.Status, got.Body)
			require.Equal(t, bad, st.record(got.ID()).Decisions[0].Revision)
		}
		return got.Status == 200
	}, time.Minute, time.Millisecond)
	require.GreaterOrEqual(t, failed, 5)
	stays := func() {
		t.Helper()
		p := st.policySeen()
		require.Equal(t, first.Revision, p.Revision)
		require.Contains(t, *p.LastError, "rolled back: decisions of the revision "+bad)
		require.Contains(t, st.condition().Degraded["policy"], "not taken again until its content changes")
		require.Equal(t, 200, st.chat(body).Status)
		require.NotContains(t, st.metricsText(), "interlock_policy_refused_total{")
		require.Contains(t, st.metricsText(), "interlock_policy_rollbacks_total 1\n")
	}
	stays()

	told := func() int { return strings.Count(st.logs.String(), "policy bundle not taken; the one before stays") }
	for i := range 2 {
		require.Equal(t, 200, st.admin("POST", "/admin/v1/reload", "", nil))
		stays()
		require.Eventually(t, func() bool { return told() == i+1 }, 5*time.Second, time.Millisecond)
	}
	// Another configuration of the same bundle: it is followed anew.
	text, err := os.ReadFile(st.path)
	require.NoError(t, err)
	write(t, st.path, strings.Replace(string(text), "policy: {", "policy: {timeout: 249ms, ", 1))
	require.Equal(t, 200, st.admin("POST", "/admin/v1/reload", "", nil))
	stays()
	// The same bytes once more: the notice of the last file comes after those of the first.
	again()
	beside := filepath.Join(dir, "beside.rego")
	write(t, beside, "package beside\n\nand then {\n")
	require.Eventually(t, func() bool { return strings.Contains(*st.policySeen().LastError, "beside.rego") }, promised+late, 20*time.Millisecond)
	require.Equal(t, first.Revision, st.policySeen().Revision)
	require.NoError(t, os.Remove(beside))
	require.Eventually(t, func() bool { return strings.Contains(*st.policySeen().LastError, "rolled back") }, promised+late, 20*time.Millisecond)
	require.Equal(t, first.Revision, st.policySeen().Revision)

	// Repaired, it is another content.
	write(t, filepath.Join(dir, "interlock", "slow.rego"), "package interlock.slow\n\nslow if input.model == \"none\"\n")
	require.Eventually(t, func() bool { p := st.policySeen(); return p.Revision != first.Revision && p.LastError == nil }, promised+late, 20*time.Millisecond)
	require.Equal(t, 200, st.chat(body).Status)
	require.Empty(t, st.condition().Degraded)
}

// TestAServersBundleThatCannotBeKept: it is in force, and operators are told that a start without
// the server would not have it.
func TestAServersBundleThatCannotBeKept(t *testing.T) {
	t.Parallel()
	host := newBundleHost(t)
	dir, folder := policyDir(t), t.TempDir()
	host.build(dir, "v1", "")
	require.NoError(t, os.Mkdir(filepath.Join(folder, "data"), 0o700))
	write(t, filepath.Join(folder, "data", policyFolder), "a file where there should be a folder")
	st := setUpIn(t, folder, map[string]string{"a": "on chat\n  status 400 code context_length_exceeded\n", "b": ""}, twoChannels+`
data_dir: "`+filepath.Join(folder, "data")+`"
policy: {bundles: [{name: platform, url: "`+host.url+`", poll: 100ms, unsigned: true, token: bundles-canary-0007}]}
`)
	body := `{"model":"m","messages":[{"role":"user","content":"hi"}]}`
	require.Equal(t, 400, st.chat(body).Status)
	setCells(t, dir, "context_overflow before_headers same_contract_fallback yes\n")
	host.build(dir, "v2", "")
	require.Eventually(t, func() bool { return st.chat(body).Status == 200 }, promised+late, 20*time.Millisecond)
	require.Contains(t, st.condition().Degraded["policy_not_kept"], "platform: ")
	require.NotContains(t, st.condition().Degraded, "policy")
	require.NotEmpty(t, st.bundlesSeen().Bundles[0].NotKept)
	require.Contains(t, st.metricsText(), `interlock_policy_not_kept_total{bundle="platform"} 1`)
	require.Contains(t, st.logs.String(), "not kept on disk")
}
