package main

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/gateway/failure"
	"github.com/interlock-gateway/interlock/gateway/ledger"
	"github.com/interlock-gateway/interlock/gateway/server"
	"github.com/interlock-gateway/interlock/gateway/storage"
)

const operatorsConfig = `
version: 1
watch: false
listen: {address: 127.0.0.1:0, drain_delay: 0s}
admin: {listen: 127.0.0.1:0, token: tok-admin}
data_dir: {{dir}}
storage: {url: "sqlite:{{dir}}/i.db"}
providers:
  p: {adapter: openai, base_url: "http://127.0.0.1:1/v1"}
groups:
  - name: g
    channels:
      - {name: c, provider: p, credential: sk-canary-0001, models: {org/m: {}}}
keys:
  - {name: web, key: caller-canary-1, groups: [g]}
`

// operate runs one of the commands that speak to a gateway.
func operate(t *testing.T, args ...string) (string, error) {
	t.Helper()
	root := &cobra.Command{Use: "interlock", SilenceUsage: true, SilenceErrors: true}
	root.AddCommand(newLedgerCommand(), newKeyCommand(), newSwitchCommand())
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetErr(&out)
	root.SetArgs(args)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	err := root.ExecuteContext(ctx)
	return out.String(), err
}

// running starts a gateway that keeps one request in its ledger, and stops it with the test.
// It returns the request's ID and how to stop earlier.
func running(t *testing.T) (id, dir string, stop func()) {
	t.Helper()
	dir = t.TempDir()
	path := filepath.Join(dir, "interlock.yaml")
	require.NoError(t, os.WriteFile(path, []byte(strings.ReplaceAll(operatorsConfig, "{{dir}}", dir)), 0o600))
	id = keptRequest(t, dir)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	s, err := server.New(ctx, server.Options{Path: path})
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx, nil) }()
	stopped := false
	stop = func() {
		if !stopped {
			stopped = true
			cancel()
			require.NoError(t, <-ended)
		}
	}
	t.Cleanup(stop)
	t.Setenv(adminVariable, "http://"+s.AdminAddr().String())
	t.Setenv(adminTokenVariable, "tok-admin")
	return id, dir, stop
}

// keptRequest writes a request with two attempts and hostile texts into a ledger.
func keptRequest(t *testing.T, dir string) string {
	t.Helper()
	ctx := context.Background()
	db, err := storage.Open(ctx, storage.Options{URL: "sqlite:" + filepath.Join(dir, "i.db")})
	require.NoError(t, err)
	l, err := ledger.Open(ctx, ledger.Options{DB: db})
	require.NoError(t, err)
	r := l.Acquire()
	r.ReceivedAt = time.Now()
	r.ID = ledger.NewID(r.ReceivedAt)
	id := r.ID
	r.Key, r.Endpoint, r.RequestedModel, r.UserAction = "web", "chat_completions", "odd\x1b[2Jmodel", "act"
	for n, cause := range []failure.Cause{failure.Initial, failure.SameRouteRetry} {
		a := r.NextAttempt()
		a.Cause, a.Group, a.Channel, a.Model, a.Reason = cause, "g", "c", "org/m", "because"
		require.NoError(t, l.OpenAttempt(r, n+1, nil))
		r.Attempt(n+1).End, r.Attempt(n+1).Class = failure.EndFailed, failure.RateLimited
		l.CloseAttempt(r, n+1)
	}
	r.Terminal, r.Status = failure.Exhausted, 429
	l.CloseRequest(r)
	require.NoError(t, l.Close(ctx))
	require.NoError(t, db.Close())
	return id
}

func TestLedgerCommandReadsAGatewayAndItsFileAlike(t *testing.T) {
	id, dir, _ := running(t)
	db := "--db=sqlite:" + filepath.Join(dir, "i.db")
	for _, args := range [][]string{
		{"list"},
		{"list", "--json"},
		{"list", "--key", "web", "--since", "1h", "--class", "rate_limited", "--user-action", "act", "--limit", "1"},
		{"list", "--key", "nobody"},
		{"show", id},
		{"show", id, "--json"},
		{"export"},
		{"export", "--format", "csv"},
		{"export", "--until", "2020-01-01"},
	} {
		args = append([]string{"ledger"}, args...)
		remote, err := operate(t, args...)
		require.NoError(t, err, args)
		stored, err := operate(t, append(args, db)...)
		require.NoError(t, err, args)
		require.Equal(t, remote, stored, args)
		if !strings.Contains(strings.Join(args, " "), "csv") { // data for a file, as it is
			require.NotContains(t, remote+stored, "\x1b", args)
		}
	}
	list, err := operate(t, "ledger", "list")
	require.NoError(t, err)
	require.Contains(t, list, id)
	require.Contains(t, list, "2 (rate_limited, rate_limited)")
	shown, err := operate(t, "ledger", "show", id)
	require.NoError(t, err)
	require.Contains(t, shown, "attempt 2  same_route_retry")
	raw, err := operate(t, "ledger", "show", id, "--json")
	require.NoError(t, err)
	var record struct {
		ID        string           `json:"request_id"`
		Decisions []map[string]any `json:"decisions"`
	}
	require.NoError(t, json.Unmarshal([]byte(raw), &record))
	require.Equal(t, id, record.ID)
	csv, err := operate(t, "ledger", "export", "--format", "csv")
	require.NoError(t, err)
	require.Equal(t, 3, strings.Count(csv, "\n"))
}

func TestLedgerCommandSaysWhatIsWrong(t *testing.T) {
	_, dir, _ := running(t)
	db := "--db=sqlite:" + filepath.Join(dir, "i.db")
	for want, args := range map[string][]string{
		"no request":          {"show", "req_none"},
		"ledger has no":       {"show", "req_none", db},
		"allowed are jsonl":   {"export", "--format", "xml"},
		"not both":            {"list", db, "--admin", "http://x"},
		"--since":             {"list", "--since", "soon"},
		"1 to 1000":           {"list", "--limit", "0"},
		"allowed is a number": {"list", "--limit", "1001", db},
		"terminal":            {"list", "--terminal", "dead"},
		"no such file":        {"list", "--db", "sqlite:" + filepath.Join(dir, "none.db")},
		"sqlite:PATH":         {"list", "--db", "mysql:x"},
		"no address":          {"list", "--admin", "127.0.0.1:8081"},
		"no gateway at":       {"list", "--admin", "http://127.0.0.1:1"},
	} {
		_, err := operate(t, append([]string{"ledger"}, args...)...)
		require.ErrorContains(t, err, want, args)
	}
	_, err := os.Stat(filepath.Join(dir, "none.db"))
	require.ErrorIs(t, err, os.ErrNotExist, "reading creates nothing")
}

func TestKeyAndSwitchCommands(t *testing.T) {
	running(t)
	out, err := operate(t, "key", "create", "mobile", "--group", "g", "--model", "org/*", "--rpm", "5", "--label", "team=m")
	require.NoError(t, err)
	require.Regexp(t, `ilk_[0-9A-Za-z]{32}`, out)
	raw, err := operate(t, "key", "list", "--json")
	require.NoError(t, err)
	var list struct {
		Keys []struct{ ID, Name string }
	}
	require.NoError(t, json.Unmarshal([]byte(raw), &list))
	require.Len(t, list.Keys, 2)
	out, err = operate(t, "key", "list")
	require.NoError(t, err)
	require.Contains(t, out, "mobile")
	require.NotContains(t, out, "ilk_")
	_, err = operate(t, "key", "create", "mobile", "--group", "g")
	require.ErrorContains(t, err, "name_taken")
	_, err = operate(t, "key", "create", "other", "--group", "h")
	require.ErrorContains(t, err, `no group "h"`)
	_, err = operate(t, "key", "delete", list.Keys[1].ID, "--reason", "gone")
	require.NoError(t, err)
	_, err = operate(t, "key", "delete", list.Keys[1].ID)
	require.ErrorContains(t, err, "not_found")

	for _, name := range []string{"model/org/m", "channel/g/c", "action/same_route_retry"} {
		out, err = operate(t, "switch", "set", name, "--reason", "burning", "--until", "2h")
		require.NoError(t, err)
		require.Contains(t, out, name+" is switched off, until 2")
		out, err = operate(t, "switch", "list")
		require.NoError(t, err)
		require.Contains(t, out, name)
		require.Contains(t, out, "burning")
		_, err = operate(t, "switch", "clear", name, "--reason", "out")
		require.NoError(t, err)
	}
	out, err = operate(t, "switch", "list")
	require.NoError(t, err)
	require.Contains(t, out, "No switch")
	for want, args := range map[string][]string{
		"--reason is required": {"set", "group/g"},
		"is no switch":         {"set", "group", "--reason", "r"},
		"--until":              {"set", "group/g", "--reason", "r", "--until", "soon"},
		"has no group":         {"set", "group/h", "--reason", "r"},
		"not set":              {"clear", "group/g"},
	} {
		_, err := operate(t, append([]string{"switch"}, args...)...)
		require.ErrorContains(t, err, want, args)
	}

	t.Setenv(adminTokenVariable, "")
	_, err = operate(t, "switch", "list")
	require.ErrorContains(t, err, "set "+adminTokenVariable)
}

func TestTheTokenGoesNowhereElse(t *testing.T) {
	t.Setenv(adminTokenVariable, "tok-admin")
	var elsewhere int
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere++ }))
	defer other.Close()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
	}))
	defer s.Close()
	_, err := operate(t, "switch", "list", "--admin", s.URL)
	require.ErrorContains(t, err, "not like the admin API")
	require.NotContains(t, err.Error(), "tok-admin")
	require.Zero(t, elsewhere)
}

func TestAnExportThatBreaksOffFails(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("{}\n"))
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}))
	defer s.Close()
	_, err := operate(t, "ledger", "export", "--admin", s.URL)
	require.ErrorContains(t, err, "broke off")
}
