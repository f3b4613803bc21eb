package server

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/gateway/ledger"
)

// TestRequestsDuringSwaps: 500 requests a second come in, whether or not the ones before are
// answered, while a bundle server's policy changes as fast as it is taken. Each is answered, by
// the revision that it pinned; no decision fails.
func TestRequestsDuringSwaps(t *testing.T) {
	const each = 2 * time.Millisecond
	count, swaps := 1000, int64(2)
	if testing.Short() || raceDetector {
		count = 300
	}
	host := newBundleHost(t)
	refuses, recovers := policyDir(t), policyDir(t)
	setCells(t, refuses, "server_error before_headers same_route_retry no\nserver_error before_headers same_contract_fallback no\n")
	setCells(t, recovers, "server_error before_headers same_route_retry no\n")
	host.build(refuses, "refuses", "")
	archives := [][]byte{host.body}
	host.build(recovers, "recovers", "")
	archives = append(archives, host.body)
	st := setUp(t, map[string]string{"a": "on chat\n  status 500\n", "b": ""}, strings.ReplaceAll(twoChannels, "models: {m:", "max_concurrency: 10000, models: {m:")+`
policy: {timeout: 20s, bundles: [{name: platform, url: "`+host.url+`", poll: 100ms, unsigned: true, token: bundles-canary-0007}]}
breaker: {consecutive_failures: 0, failure_ratio: 0}
log: {level: error}
`)
	begun, end := context.WithTimeout(t.Context(), 2*time.Minute)
	defer end()
	revision := func() string { return st.gateway.Generation().Policy.ID() }
	var swapped atomic.Int64
	over, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for i := 0; ; i++ {
			host.publish(archives[i%2])
			name := []string{"@refuses-", "@recovers-"}[i%2]
			for !strings.Contains(revision(), name) {
				select {
				case <-over:
					return
				case <-begun.Done():
					return
				case <-time.After(time.Millisecond):
				}
			}
			swapped.Add(1)
		}
	}()

	transport := &http.Transport{MaxIdleConnsPerHost: 256}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	var answers sync.Map // request ID to status
	var failed atomic.Int64
	var group sync.WaitGroup
	start, sent, total := time.Now(), 0, 0
	arrive := func() {
		if early := time.Until(start.Add(time.Duration(sent) * each)); early > 0 { // what a busy machine missed is made up for
			<-time.After(early)
		}
		sent++
		group.Go(func() {
			status, id, err := askOnce(begun, client, st)
			if err != nil {
				failed.Add(1)
				t.Errorf("a request was not answered: %v", err)
				return
			}
			if _, twice := answers.LoadOrStore(id, status); twice {
				t.Errorf("two answers have the ID %q", id)
			}
		})
	}
	for total == 0 || swapped.Load() < swaps && begun.Err() == nil && failed.Load() == 0 {
		for start, sent = time.Now(), 0; sent < count; {
			arrive()
		}
		total += sent
		group.Wait() // a machine that is too slow for it is given time to swap, too
	}
	close(over)
	<-ended
	require.Zero(t, failed.Load())
	require.NoError(t, st.ledger.Flush(t.Context()))
	t.Logf("%d requests during %d swaps", total, swapped.Load())

	seen, by := 0, map[int]int{}
	for filter := (ledger.Filter{Limit: 1000}); ; {
		page, err := st.ledger.Reader().List(t.Context(), filter)
		require.NoError(t, err)
		for _, r := range page.Requests {
			status, ok := answers.Load(r.ID)
			require.True(t, ok, r.ID)
			seen++
			by[status.(int)]++
			switch {
			case strings.HasPrefix(r.PolicyRevision, "platform@refuses-"):
				require.Equal(t, http.StatusBadGateway, status)
				require.Len(t, r.Attempts, 1)
			case strings.HasPrefix(r.PolicyRevision, "platform@recovers-"):
				require.Equal(t, http.StatusOK, status)
				require.Len(t, r.Attempts, 2)
			default:
				require.Fail(t, "a decision of no revision", "%q", r.PolicyRevision)
			}
			if seen%50 == 0 {
				for _, d := range st.record(r.ID).Decisions {
					require.Equal(t, r.PolicyRevision, d.Revision)
				}
			}
		}
		if filter.Cursor = page.Next; page.Next == "" {
			break
		}
	}
	require.Equal(t, total, seen)
	require.Positive(t, by[http.StatusOK])
	require.Positive(t, by[http.StatusBadGateway])
	metrics := st.metricsText()
	require.NotContains(t, metrics, "policy_error")
	require.NotContains(t, metrics, "policy_unavailable")
	require.NotContains(t, metrics, "interlock_policy_refused_total{")
}

// askOnce makes one request that both revisions end with at once.
func askOnce(ctx context.Context, client *http.Client, st *stand) (status int, id string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+st.Addr().String()+"/v1/chat/completions",
		strings.NewReader(`{"model":"m","messages":[{"role":"user","content":"hi"}]}`))
	if err != nil {
		return 0, "", err
	}
	req.Header.Set("Authorization", "Bearer "+callersKey)
	resp, err := client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return 0, "", err
	}
	if resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusBadGateway {
		return 0, "", errors.New(resp.Status)
	}
	return resp.StatusCode, resp.Header.Get("x-request-id"), nil
}
