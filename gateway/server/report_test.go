package server

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestBundlesAreReported: what becomes of a server's bundle reaches a collector of OPA's status and
// its decisions one of OPA's decision logs, each shown the token that is meant for it.
func TestBundlesAreReported(t *testing.T) {
	t.Parallel()
	host := newBundleHost(t)
	dir := policyDir(t)
	host.build(dir, "v1", "")
	type bundle struct {
		Revision string `json:"active_revision"`
		Code     string
		Message  string
		HTTPCode int `json:"http_code"`
	}
	var mu sync.Mutex
	var latest bundle
	logged := 0
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		switch r.URL.Path + " " + r.Header.Get("Authorization") {
		case "/status Bearer status-canary-0008":
			var report struct{ Bundles map[string]bundle }
			b, _ := io.ReadAll(r.Body)
			if json.Unmarshal(b, &report) != nil {
				w.WriteHeader(http.StatusBadRequest)
			}
			latest = report.Bundles["platform"]
		case "/logs Bearer logs-canary-0009":
			logged++
		default:
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	defer collector.Close()
	is := func(what string, ok func(bundle) bool) {
		t.Helper()
		require.Eventually(t, func() bool { mu.Lock(); defer mu.Unlock(); return ok(latest) }, 20*time.Second, 10*time.Millisecond, what)
	}
	st := setUp(t, map[string]string{"a": "", "b": ""}, twoChannels+`
policy:
  bundles: [{name: platform, url: "`+host.url+`", poll: 100ms, unsigned: true, token: bundles-canary-0007}]
  status: {url: "`+collector.URL+`", token: status-canary-0008, console: true}
  decision_log: {url: "`+collector.URL+`", token: logs-canary-0009}
`)
	is("the first one", func(b bundle) bool { return strings.HasPrefix(b.Revision, "platform@v1-") && b.Code == "" })
	require.Equal(t, 200, st.chat(`{"model":"m","messages":[{"role":"user","content":"hi"}]}`).Status)
	host.publish([]byte("no archive"))
	is("a refused one", func(b bundle) bool {
		return strings.HasPrefix(b.Revision, "platform@v1-") && b.Code == "bundle_error" && strings.Contains(b.Message, "gzip")
	})
	host.leave()
	is("a server that is away", func(b bundle) bool { return b.HTTPCode == http.StatusServiceUnavailable })
	require.Eventually(t, func() bool { mu.Lock(); defer mu.Unlock(); return logged > 0 }, 20*time.Second, 10*time.Millisecond)
	require.Contains(t, st.logs.String(), "openpolicyagent.org/status")
	require.NotContains(t, st.logs.String(), "-canary-000")
}
