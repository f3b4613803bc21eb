package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/gateway/catalog"
	"github.com/interlock-gateway/interlock/gateway/config"
)

// anyPort keeps tests off the addresses that a person's own demonstration may use.
var anyPort = []string{"--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"}

// output is a command's output, read while it runs.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

func runDemo(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	t.Setenv("TMPDIR", t.TempDir())
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var out, errs output
	status = run(ctx, append(append([]string{"demo", "--once"}, anyPort...), args...), &out, &errs)
	return status, out.String(), errs.String()
}

func TestDemoGoesAsTold(t *testing.T) {
	status, out, errs := runDemo(t)
	require.Zero(t, status, out+errs)
	require.Empty(t, errs)
	require.NotContains(t, out, "NOT AS TOLD")
	require.NotContains(t, out, "\x1b", "nobody looks at a terminal")
	for _, act := range []string{
		" initial ", " same_route_retry ", " same_contract_fallback ", " model_substitution ",
		" stop ", "interlock-substitution: approved", "error partial_stream", "error invalid_value",
		"error outcome_unknown", "error routes_exhausted", "upstream_auth", "half_open", "then leaves",
	} {
		require.Contains(t, out, act)
	}
	left, err := os.ReadDir(os.Getenv("TMPDIR"))
	require.NoError(t, err)
	require.Empty(t, left, "the demonstration leaves nothing behind")
}

// Another policy makes other things happen, which the demonstration must notice.
func TestDemoNoticesWhatIsNotAsTold(t *testing.T) {
	dir := copyPolicies(t)
	changeCell(t, dir, `"once", "same_contract_fallback": "yes"`, `"no", "same_contract_fallback": "yes"`)
	status, out, errs := runDemo(t, "--policy", dir)
	require.Equal(t, 1, status, out+errs)
	require.Contains(t, out, "NOT AS TOLD: the cause is same_contract_fallback, not same_route_retry")
	require.Contains(t, errs, "did not go as told")
}

func TestDemoRefusesABrokenPolicy(t *testing.T) {
	dir := copyPolicies(t)
	changeCell(t, dir, `"once"`, `"twice"`)
	status, out, errs := runDemo(t, "--policy", dir)
	require.Equal(t, 1, status)
	require.Empty(t, out)
	require.Contains(t, errs, "matrix/data.json")
}

func TestDemoTakesAnotherPortWhereOneIsTaken(t *testing.T) {
	taken, err := listenNear("127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	other, err := listenNear(taken.Addr().String())
	require.NoError(t, err)
	require.NotEqual(t, taken.Addr().String(), other.Addr().String())
	require.NoError(t, other.Close())
	_, err = listenNear("nowhere")
	require.ErrorContains(t, err, "HOST:PORT")
}

func TestDemoConfigurationIsSound(t *testing.T) {
	o, err := demoFiles.ReadFile("demo/interlock.yaml")
	require.NoError(t, err)
	text := strings.NewReplacer("{{key}}", "${env:KEY}", "{{policy}}", "", "{{north}}", "http://127.0.0.1:1",
		"{{south}}", "http://127.0.0.1:2", "{{east}}", "http://127.0.0.1:3").Replace(string(o))
	path := filepath.Join(t.TempDir(), "interlock.yaml")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	_, r := catalog.Load(path, config.Env{Lookup: func(string) (string, bool) { return "ik-0123456789", true }})
	require.NoError(t, r.Err())
}

// copyPolicies copies the default bundle, as the README tells a person to.
func copyPolicies(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "policies")
	require.NoError(t, os.CopyFS(dir, os.DirFS("../../policies")))
	return dir
}

// changeCell replaces words in the copied matrix.
func changeCell(t *testing.T, dir, before, after string) {
	t.Helper()
	path := filepath.Join(dir, "interlock/matrix/data.json")
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Contains(t, string(b), before)
	require.NoError(t, os.WriteFile(path, []byte(strings.ReplaceAll(string(b), before, after)), 0o600))
}
