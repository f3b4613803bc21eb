package server

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"

	"github.com/interlock-gateway/interlock/gateway/fault"
	"github.com/interlock-gateway/interlock/gateway/route"
	"github.com/interlock-gateway/interlock/gateway/route/breaker"
)

// late is how much later than asked a thing may be seen: the machine may be busy with other
// tests. What a case asks for is the bound without it.
const late = time.Second

// corpus returns the scripts of a case, by the provider's name.
func corpus(t *testing.T, folder, id string) map[string]string {
	t.Helper()
	archive, err := txtar.ParseFile(filepath.Join("..", "fault", "testdata", folder, id+".txtar"))
	require.NoError(t, err)
	scripts := map[string]string{}
	for _, f := range archive.Files {
		if name, ok := strings.CutSuffix(f.Name, ".fault"); ok {
			scripts[name] = string(f.Data)
		}
	}
	require.NotEmpty(t, scripts)
	return scripts
}

// requireEveryCase compares the cases that have a test with those that a page of the cases
// folder lists, where there is one.
func requireEveryCase[T any](t *testing.T, page string, id *regexp.Regexp, tests map[string]T) {
	t.Helper()
	for _, file := range []string{
		filepath.Join(os.Getenv("INTERLOCK_CASES"), page),
		filepath.Join("..", "..", "..", "shared", "cases", page),
	} {
		b, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		found := map[string]bool{}
		for _, m := range id.FindAllStringSubmatch(string(b), -1) {
			found[m[1]] = true
		}
		require.NotEmpty(t, found, "%s lists no case", page)
		for _, name := range sortedKeys(found) {
			require.Contains(t, tests, name, "case %s of %s has no test", name, page)
		}
		require.Len(t, tests, len(found), "a test has no case in %s", page)
		return
	}
	t.Skipf("%s is not here: set INTERLOCK_CASES to the folder of the cases", page)
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// with is text with one part of it replaced; the part has to be there.
func with(t *testing.T, text, old, replacement string) string {
	t.Helper()
	require.Contains(t, text, old)
	return strings.ReplaceAll(text, old, replacement)
}

// calls demands how many calls each provider got, name, count pairs.
func (st *stand) calls(want map[string]int) {
	st.t.Helper()
	got := map[string]int{}
	for name := range want {
		got[name] = st.providers[name].Count()
	}
	require.Equal(st.t, want, got, "upstream calls")
}

// entry is a request's record as the caller's API shows it, with more of it than record has.
type entry struct {
	Terminal string         `json:"terminal"`
	Status   int            `json:"status"`
	Cause    *string        `json:"cause"`
	Answered *string        `json:"answered_model"`
	Revision string         `json:"policy_revision"`
	Cost     *float64       `json:"cost_usd"`
	Usage    *entryUsage    `json:"usage"`
	Attempts []entryAttempt `json:"attempts"`

	raw string
}

type entryUsage struct {
	Input     *int64 `json:"input_tokens"`
	Output    *int64 `json:"output_tokens"`
	Estimated bool   `json:"estimated"`
}

type entryAttempt struct {
	Number       int         `json:"number"`
	Class        string      `json:"class"`
	Cause        string      `json:"cause"`
	Group        string      `json:"group"`
	Channel      string      `json:"channel"`
	Phase        string      `json:"phase"`
	Circuit      string      `json:"circuit"`
	Usage        *entryUsage `json:"usage"`
	Cost         *float64    `json:"cost_usd"`
	Billable     string      `json:"billable"`
	Sent         *int64      `json:"sent_ms"`
	Headers      *int64      `json:"headers_ms"`
	ProviderCode *string     `json:"provider_code"`
	Terminal     string      `json:"terminal"`
}

// entry reads a request's record.
func (st *stand) entry(id string) *entry {
	st.t.Helper()
	require.NotEmpty(st.t, id, "no request ID")
	req, err := http.NewRequest(http.MethodGet, "http://"+st.Addr().String()+"/interlock/v1/requests/"+id, nil)
	require.NoError(st.t, err)
	req.Header.Set("Authorization", "Bearer "+callersKey)
	resp, err := st.client.Do(req)
	require.NoError(st.t, err)
	defer resp.Body.Close()
	require.Equal(st.t, 200, resp.StatusCode)
	b, err := io.ReadAll(resp.Body)
	require.NoError(st.t, err)
	e := &entry{raw: string(b)}
	require.NoError(st.t, json.Unmarshal(b, e))
	return e
}

// tried is one attempt that a record must have: its channel and class ("" = it answered).
type tried struct{ channel, class string }

// requireRecord demands a request's terminal reason and its attempts, and returns the record.
func (st *stand) requireRecord(id, terminal string, attempts ...tried) *entry {
	st.t.Helper()
	e := st.entry(id)
	require.Equal(st.t, terminal, e.Terminal, e.raw)
	var got []tried
	for _, a := range e.Attempts {
		got = append(got, tried{a.Channel, a.Class})
	}
	require.Equal(st.t, attempts, got, e.raw)
	return e
}

// endedRequests are the IDs of requests that have ended, in that order, waited for until there are n.
func (st *stand) endedRequests(n int) []string {
	st.t.Helper()
	var ids []string
	require.Eventually(st.t, func() bool {
		ids = ids[:0]
		for line := range strings.Lines(st.logs.String()) {
			var v struct {
				Message string `json:"msg"`
				ID      string `json:"request_id"`
			}
			if json.Unmarshal([]byte(line), &v) == nil && v.Message == "request ended" {
				ids = append(ids, v.ID)
			}
		}
		return len(ids) >= n
	}, 10*time.Second, 5*time.Millisecond, "the log has not %d lines of requests that ended", n)
	return ids
}

// circuit is the state of the circuit of a channel's only route.
func (st *stand) circuit(channel string) breaker.State {
	st.t.Helper()
	c := st.status(channel)
	require.Len(st.t, c.Routes, 1)
	return c.Routes[0].Circuit
}

// status is how a channel is.
func (st *stand) status(channel string) route.ChannelStatus {
	st.t.Helper()
	for _, c := range st.Gateway().Generation().Table.Channels(time.Now()) {
		if c.Channel.Name == channel {
			return c
		}
	}
	require.Fail(st.t, "no channel "+channel)
	return route.ChannelStatus{}
}

// patience bounds a wait for something that has to happen.
func patience(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// closed waits until the connection of a provider's call is closed and returns the call.
func (st *stand) closed(provider string, call int) fault.Call {
	st.t.Helper()
	c, err := st.providers[provider].WaitClosed(patience(st.t), call)
	require.NoError(st.t, err)
	require.False(st.t, c.PeerClosed.IsZero(), "the gateway did not close the connection")
	return c
}

// script replaces what a provider does from now on.
func (st *stand) script(provider, text string) {
	st.t.Helper()
	s, errs := fault.Parse(provider+".fault", text)
	require.Empty(st.t, errs)
	st.providers[provider].SetScript(s)
}
