package ledger

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/gateway/failure"
)

var update = flag.Bool("update", false, "rewrite the golden files")

const fullID = "req_01KB9Z7Y00G000000000000000"

// fillFull sets everything of a request but its attempts.
func fillFull(r *Record, at time.Time) {
	r.ID = fullID
	r.CorrelationID, r.UserAction, r.Key, r.Endpoint = "corr-\"1\"\n\u2028\x00\xff", "checkout-7", "web-app", "chat_completions"
	r.Alias, r.RequestedModel, r.AnsweredModel = "support-agent-v3", "m-large", "m-other"
	r.ContractVersion, r.Stream, r.ReceivedAt, r.FinishedAt = Some[int64](3), true, at, at.Add(4*time.Second+5*time.Nanosecond)
	r.CancelledAt = at.Add(3 * time.Second)
	r.Deadline, r.Terminal, r.Status, r.OutputStarted = Some(time.Minute), failure.Success, 200, true
	r.Cause, r.PolicyRevision, r.Overhead, r.ClientRetry = Some(failure.ModelSubstitution), "rev-1", Some(1234*time.Microsecond), Some[int64](2)
	r.Decisions = []Decision{
		{Point: "admission", Input: []byte(`{"key":{"name":"web-app"}}`), Output: []byte(`{"allow":true}`), Revision: "rev-1"},
		{Attempt: 1, Point: "replay", Input: []byte("{\n  \"a\": 1\n}"), Output: []byte(`{"actions":["model_substitution"]}`), Revision: "rev-1"},
	}
	r.ToolCalls = []ToolCall{{Attempt: 2, Choice: 0, Index: 1, CallID: "call_1", Name: "lookup", ArgumentsSHA256: [32]byte{1, 2, 3}}}
}

func fullRecord(at time.Time) *Record {
	r := &Record{}
	fillFull(r, at)
	r.Attempts = []Attempt{
		{
			Number: 1, Cause: failure.Initial, Group: "primary", Channel: "one", Provider: "acme", Model: "m-large", UpstreamModel: "m-large-2026",
			Endpoint: "chat_completions", Contract: "c0ffee", Unverified: true, Reason: "first_candidate", Circuit: "half_open",
			TimeLeft: Some(59 * time.Second), UpstreamAttempts: 3, OpenedAt: at.Add(time.Millisecond),
			Connected: Some(10 * time.Millisecond), Sent: Some(11 * time.Millisecond), Headers: Some(500 * time.Millisecond), Closed: Some(600 * time.Millisecond),
			Status: 429, Class: failure.RateLimited, Phase: Some(failure.BeforeHeaders), ProviderCode: "rate_limit_exceeded",
			UpstreamRequestID: "up-1", RetryAfter: Some(1500 * time.Millisecond), CostUSD: Some(0.0), Billable: BillableNo, End: failure.EndFailed,
		},
		{
			Number: 2, Cause: failure.ModelSubstitution, Group: "backup", Channel: "two", Provider: "other", Model: "m-other", UpstreamModel: "m-other",
			Endpoint: "chat_completions", Contract: "c0ffee", Reason: "substitute_approved", Delay: 250 * time.Millisecond, Circuit: "closed",
			TimeLeft: Some(50 * time.Second), OpenedAt: at.Add(time.Second),
			Connected: Some(time.Duration(0)), Sent: Some(time.Millisecond), Headers: Some(300 * time.Millisecond), FirstOutput: Some(400 * time.Millisecond),
			LastByte: Some(2 * time.Second), Closed: Some(2001 * time.Millisecond),
			Status: 200, Class: failure.None, Phase: Some(failure.AfterOutput), OutputStarted: true, Cancelled: true, UpstreamRequestID: "up-2",
			Usage:   Usage{Input: Some[int64](100), Output: Some[int64](20), Reasoning: Some[int64](0), Estimated: true},
			CostUSD: Some(0.0000375), Billable: BillableUnknown, SkippedEvents: 1, End: failure.EndSuccess,
		},
	}
	return r
}

func goldenRecords() map[string]*Record {
	at := time.Date(2026, 11, 30, 12, 0, 0, 123456789, time.UTC)
	running := &Record{ID: fullID, UserAction: fullID, Key: "k", Endpoint: "embeddings", RequestedModel: "m", ReceivedAt: at}
	a := running.NextAttempt()
	a.Group, a.Channel, a.OpenedAt = "g", "c", at
	denied := &Record{ID: fullID, Key: "k", ReceivedAt: at, FinishedAt: at, Terminal: failure.PolicyStop, Status: 403}
	return map[string]*Record{"full": fullRecord(at), "running": running, "denied": denied}
}

func TestGoldenJSON(t *testing.T) {
	for name, r := range goldenRecords() {
		got := r.AppendJSON(nil, true)
		require.True(t, json.Valid(got), string(got))
		require.NotContains(t, string(got), "\n")
		var pretty bytes.Buffer
		require.NoError(t, json.Indent(&pretty, got, "", "  "))
		golden(t, name+".json", pretty.Bytes())
		golden(t, name+".txt", r.AppendTimeline(nil))
	}
	calls := goldenRecords()["full"].AppendToolCallsJSON(nil)
	require.JSONEq(t, `[{"attempt":2,"choice":0,"index":1,"call_id":"call_1","tool":"lookup",
		"arguments_sha256":"0102030000000000000000000000000000000000000000000000000000000000"}]`, string(calls))
	page := Page{Requests: []*Record{goldenRecords()["denied"]}, Next: "abc"}.AppendJSON(nil)
	require.True(t, bytes.HasPrefix(page, []byte(`{"requests":[{"request_id":`)))
	require.True(t, bytes.HasSuffix(page, []byte(`],"next":"abc"}`)))
	require.NotContains(t, string(page), "decisions")
	require.Equal(t, `{"requests":[],"next":""}`, string(Page{}.AppendJSON(nil)))
}

// The keys are the contract, in every record and attempt.
func TestJSONHasEveryKey(t *testing.T) {
	request := strings.Fields(`request_id correlation_id user_action key endpoint alias requested_model answered_model stream
		received_at finished_at deadline_ms terminal status output_started cause client_retry amplification contract_version
		task_outcome policy_revision usage cost_usd overhead_us attempts decisions`)
	attempt := strings.Fields(`number cause group channel provider model upstream_model endpoint reason delay_ms circuit opened_at
		sent_ms headers_ms first_output_ms closed_ms status class phase provider_code output_started cancelled upstream_request_id
		contract unverified time_left_ms retry_after_ms connected_ms last_byte_ms usage cost_usd billable skipped_events terminal`)
	for name, r := range goldenRecords() {
		var got map[string]any
		require.NoError(t, json.Unmarshal(r.AppendJSON(nil, true), &got))
		require.ElementsMatch(t, request, keysOf(got), name)
		for _, a := range got["attempts"].([]any) {
			require.ElementsMatch(t, attempt, keysOf(a.(map[string]any)), name)
		}
	}
}

func keysOf(m map[string]any) (keys []string) {
	for k := range m {
		keys = append(keys, k)
	}
	return keys
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.MkdirAll("testdata", 0o750))
		require.NoError(t, os.WriteFile(path, got, 0o600))
		return
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "run the test with -update to make it")
	require.Equal(t, string(want), string(got))
}

func readCSV(t *testing.T, s string) [][]string {
	rows, err := csv.NewReader(strings.NewReader(s)).ReadAll()
	require.NoError(t, err)
	return rows
}
