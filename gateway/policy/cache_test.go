package policy

import (
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/gateway/failure"
)

func admissionInput() AdmissionInput {
	return AdmissionInput{
		Key: Key{Name: "web-app", Labels: LabelsOf(map[string]string{"team": "web"})},
		Request: Request{
			Endpoint: "chat_completions", Kind: "chat", Model: "some-model-5-mini", Modalities: ListOf("text"),
			StructuredOutput: FreeText, SideEffects: NoSideEffects, Stream: true, Idempotent: true,
		},
	}
}

func TestMemoised(t *testing.T) {
	r := builtin(t)
	ctx := testContext(t)
	for _, p := range Points() {
		require.True(t, r.Memoised(p), p)
	}
	in := admissionInput()
	first, meta := r.Admission(ctx, &in)
	require.NoError(t, meta.Err)
	require.False(t, meta.Cached)
	require.Positive(t, meta.Took)
	require.True(t, first.Allow)
	in.Detail = &Detail{BodyBytes: 12} // not read, so not part of the decision
	kept, later := r.Admission(ctx, &in)
	require.NoError(t, later.Err)
	require.True(t, later.Cached)
	require.Equal(t, first, kept)
	require.Same(t, meta.Record, later.Record)
	require.NotContains(t, string(meta.Record.Input), "detail")
	require.JSONEq(t, `{"allow": true, "reason": "allowed", "rule": "admission.default"}`, string(meta.Record.Output))
	require.Equal(t, r.ID(), meta.Record.Revision)

	in.Request.Stream = false
	_, meta = r.Admission(ctx, &in)
	require.False(t, meta.Cached, "another fact, another decision")
	require.NotEqual(t, later.Record.Hash, meta.Record.Hash)
}

func TestRecordHashIsTheSameEverywhere(t *testing.T) {
	in := admissionInput()
	_, a := builtin(t).Admission(testContext(t), &in)
	_, b := builtin(t).Admission(testContext(t), &in)
	require.NotSame(t, a.Record, b.Record)
	require.Equal(t, a.Record.Hash, b.Record.Hash)
}

func TestNotMemoised(t *testing.T) {
	for name, rule := range map[string]string{
		"free numbers":               `decision := {"allow": input.detail.body_bytes < 100, "reason": "size"}`,
		"all of the input":           `decision := {"allow": count(input) > 0, "reason": "size"}`,
		"some part of the input":     "decision := {\"allow\": true, \"reason\": \"size\"} if {\n\tsome name in [\"detail\", \"key\"]\n\tinput[name]\n}",
		"a helper's":                 "decision := {\"allow\": small(100), \"reason\": \"size\"}\n\nsmall(n) if input.detail.body_bytes < n\n\nsmall(n) := false if input.detail.body_bytes >= n",
		"chance in an else-branch":   "decision := {\"allow\": true, \"reason\": \"a\"} if input.request.stream\nelse := {\"allow\": true, \"reason\": uuid.rfc4122(\"x\")}",
		"a helper in an else-branch": "decision := {\"allow\": true, \"reason\": \"a\"} if input.request.stream\nelse := {\"allow\": small, \"reason\": \"b\"}\n\ndefault small := false\n\nsmall if input.detail.body_bytes < 100",
	} {
		t.Run(name, func(t *testing.T) {
			r := loadDir(t, copyBundle(t, map[string]string{"interlock/admission.rego": "package interlock.admission\n\n" + rule + "\n"}))
			require.False(t, r.Memoised(PointAdmission))
			require.True(t, r.Memoised(PointReplay), "the others still are")
			in := admissionInput()
			for range 2 {
				_, meta := r.Admission(testContext(t), &in)
				require.NoError(t, meta.Err)
				require.False(t, meta.Cached)
			}
		})
	}
}

func TestDetailReachesTheRules(t *testing.T) {
	r := loadDir(t, copyBundle(t, map[string]string{
		"interlock/admission.rego": "package interlock.admission\n\ndecision := {\"allow\": input.detail.body_bytes < 100, \"reason\": \"size\"}\n",
	}))
	in := admissionInput()
	in.Detail = &Detail{BodyBytes: 500}
	a, meta := r.Admission(testContext(t), &in)
	require.NoError(t, meta.Err)
	require.False(t, a.Allow)
	require.Contains(t, string(meta.Record.Input), `"body_bytes":500`)
	in.Detail.BodyBytes = 50
	a, _ = r.Admission(testContext(t), &in)
	require.True(t, a.Allow)
	in.Detail = nil
	_, meta = r.Admission(testContext(t), &in)
	require.NoError(t, meta.Err)
	require.Contains(t, string(meta.Record.Input), `"body_bytes":-1`)
}

func TestCacheIsBounded(t *testing.T) {
	r, err := Load(testContext(t), Builtin(), Options{Timeout: patient.Timeout, CacheSize: 32})
	require.NoError(t, err)
	in := admissionInput()
	for i := range 500 {
		in.Request.Model = fmt.Sprint("model-", i)
		_, meta := r.Admission(testContext(t), &in)
		require.NoError(t, meta.Err)
	}
	r.admission.cache.CleanUp()
	require.LessOrEqual(t, r.admission.cache.EstimatedSize(), 32)

	r, err = Load(testContext(t), Builtin(), Options{Timeout: patient.Timeout, CacheSize: -1})
	require.NoError(t, err)
	for range 2 {
		_, meta := r.Admission(testContext(t), &in)
		require.NoError(t, meta.Err)
		require.False(t, meta.Cached)
	}
}

// Requests decide while revisions are swapped under them: each decision is whole, and of the
// revision that was asked.
func TestHotSwap(t *testing.T) {
	ctx := testContext(t)
	a := builtin(t)
	b := loadDir(t, copyBundle(t, map[string]string{
		"interlock/matrix/data.json": edited(t, "interlock/matrix/data.json", `"same_route_retry": "once"`, `"same_route_retry": "last"`),
	}))
	wanted := map[string]actions{a.ID(): {again, elsewhere, other, stop}, b.ID(): {elsewhere, other, again, stop}}

	var active atomic.Pointer[Revision]
	active.Store(a)
	deadline := time.Now().Add(time.Second)
	var wg sync.WaitGroup
	wg.Go(func() {
		for time.Now().Before(deadline) {
			fresh, err := Load(ctx, Builtin(), patient)
			if err != nil {
				t.Error(err)
				return
			}
			active.Store(b)
			time.Sleep(time.Millisecond)
			active.Store(fresh)
		}
	})
	for worker := range 4 {
		wg.Go(func() {
			for i := 0; time.Now().Before(deadline); i++ {
				r := active.Load()
				in := openInput(failure.Network, failure.BeforeHeaders, true)
				in.Request.Alias = fmt.Sprint(worker, i%50)
				d, meta := r.Replay(ctx, &in)
				if meta.Err != nil || fmt.Sprint(d.Actions) != fmt.Sprint(wanted[r.ID()]) || meta.Record.Revision != r.ID() {
					t.Errorf("%s: %v %v", r.ID(), d, meta.Err)
					return
				}
			}
		})
	}
	wg.Wait()
}

func TestEvaluate(t *testing.T) {
	r := builtin(t)
	ctx := testContext(t)
	out, err := r.Evaluate(ctx, PointReplay, json.RawMessage(`{
		"failure": {"class": "network", "phase": "before_headers", "request_sent": true},
		"request": {"idempotent": true},
		"attempt": {"number": 1, "same_route": 1},
		"candidates": {"same_route": 1, "same_contract": 2}
	}`))
	require.NoError(t, err)
	require.JSONEq(t, `{"actions": ["same_route_retry", "same_contract_fallback", "stop"], "reason": "lone_failure", "rule": "matrix.network.before_headers"}`, string(out))

	out, err = r.Evaluate(ctx, PointFailure, json.RawMessage(`{"failure": {"status": 529}}`))
	require.NoError(t, err)
	require.Contains(t, string(out), `"overloaded"`)
	for _, p := range Points() {
		if p != PointReplay { // its class would be none, in a phase that has no row of its own to show
			_, err = r.Evaluate(ctx, p, nil)
			require.NoError(t, err, p)
		}
	}

	_, err = r.Evaluate(ctx, PointReplay, json.RawMessage(`{"failure": {"class": "netwrok"}, "fail": 1}`))
	var faults Errors
	require.ErrorAs(t, err, &faults)
	require.ErrorContains(t, err, "input/failure/class")
	require.ErrorContains(t, err, "'fail' not allowed")
	_, err = r.Evaluate(ctx, PointReplay, json.RawMessage(`{`))
	require.ErrorAs(t, err, &faults)
	_, err = r.Evaluate(ctx, PointReplay, json.RawMessage(`[]`))
	require.ErrorAs(t, err, &faults)

	_, err = trapped(t).Evaluate(ctx, PointReplay, json.RawMessage(`{"key": {"labels": {"trap": "conflict"}}}`))
	var failed *DecisionError
	require.ErrorAs(t, err, &failed)
	require.Equal(t, ErrorConflict, failed.Code)
	require.Equal(t, PointReplay, failed.Point)
}
