package server

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// promised is how soon a change of the policy folder is in force; late is the test machine's.
const promised = 2 * time.Second

// policySeen is what operators are told of the policy.
type policySeen struct {
	Revision  string  `json:"revision"`
	Source    string  `json:"source"`
	LastError *string `json:"last_error"`
}

func (st *stand) policySeen() (p policySeen) {
	st.t.Helper()
	require.Equal(st.t, http.StatusOK, st.admin("GET", "/admin/v1/policy", "", &p))
	return p
}

// TestAChangedCellIsInForceWithoutARestart changes the policy folder under a running gateway.
func TestAChangedCellIsInForceWithoutARestart(t *testing.T) {
	t.Parallel()
	dir := policyDir(t)
	st := setUp(t, map[string]string{"a": "on chat\n  status 400 code context_length_exceeded\n", "b": ""},
		twoChannels+"policy: {bundles: [{name: own, path: \""+dir+"\"}]}\n")
	body := `{"model":"m","messages":[{"role":"user","content":"hi"}]}`
	becomes := func(status int) {
		t.Helper()
		start := time.Now()
		require.Eventually(t, func() bool { return st.chat(body).Status == status }, promised+late, 20*time.Millisecond)
		t.Logf("in force after %v", time.Since(start))
	}
	require.Equal(t, 400, st.chat(body).Status)
	first := st.policySeen()
	require.Equal(t, "own", first.Source)
	require.Nil(t, first.LastError)
	setCells(t, dir, "context_overflow before_headers same_contract_fallback yes\n")
	becomes(200)
	second := st.policySeen()
	require.NotEqual(t, first.Revision, second.Revision)

	// What does not hold is refused as a whole, the old revision stays, and operators are told
	// which file is wrong: a word that no rule knows, a table that is no JSON, a rule that is
	// no Rego, an input that there is none of.
	rules := filepath.Join(dir, "interlock", "replay.rego")
	sound, err := os.ReadFile(rules)
	require.NoError(t, err)
	table := filepath.Join(dir, "interlock", "matrix", "data.json")
	for _, broken := range []struct {
		change func()
		says   string
	}{
		{func() { setCells(t, dir, "context_overflow before_headers same_contract_fallback perhaps\n") }, "context_overflow.before_headers.same_contract_fallback"},
		{func() { write(t, table, `{"network": `) }, "matrix/data.json"},
		{func() {
			require.NoError(t, os.Remove(table))
		}, "matrix"},
		{func() { write(t, rules, string(sound)+"\nand then {\n") }, "replay.rego"},
		{func() {
			write(t, rules, strings.ReplaceAll(string(sound), "input.failure.class", "input.failure.klass"))
		}, "klass"},
	} {
		before, err := os.ReadFile(table)
		require.NoError(t, err)
		broken.change()
		require.EventuallyWithT(t, func(c *assert.CollectT) {
			p := st.policySeen()
			if assert.NotNil(c, p.LastError) {
				assert.Contains(c, *p.LastError, broken.says)
			}
		}, promised+late, 20*time.Millisecond)
		require.Equal(t, second.Revision, st.policySeen().Revision)
		require.Eventually(t, func() bool { return strings.Contains(st.logs.String(), "policy refused; the one before stays") }, 5*time.Second, time.Millisecond)
		require.Equal(t, 200, st.chat(body).Status, "the revision before is in force")
		write(t, table, string(before))
		write(t, rules, string(sound))
	}
	setCells(t, dir, "context_overflow before_headers same_contract_fallback no\n")
	becomes(400)
	last := st.policySeen()
	require.NotEqual(t, second.Revision, last.Revision)
	require.Nil(t, last.LastError)
}

// write puts a file in place whole, so that a watcher never sees half of it.
func write(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(path+".new", []byte(text), 0o600))
	require.NoError(t, os.Rename(path+".new", path))
}
