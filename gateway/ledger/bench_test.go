package ledger

import (
	"context"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/gateway/failure"
	"github.com/interlock-gateway/interlock/gateway/storage"
)

// A request as the gateway records it: every field that a successful attempt has.
var (
	sampleInput  = []byte(`{"caller":{"budget":"interactive","substitution":"unknown"},"key":{"labels":{"team":"web"},"name":"web-app"},"request":{"alias":"","endpoint":"chat_completions","hosted_tools":false,"idempotent":true,"modalities":["text"],"model":"gpt-5-mini","parallel_tool_calls":false,"side_effects":"none","stream":true,"structured_output":"none","tools":false}}`)
	sampleOutput = []byte(`{"allow":true,"reason":"default","rule":"admission.default"}`)
)

func fillRequest(r *Record, at time.Time) {
	r.ID = NewID(at)
	r.CorrelationID = "c0ffee00-1234-5678-9abc-def012345678"
	r.UserAction = r.ID
	r.Key = "web-app"
	r.Endpoint = "chat_completions"
	r.RequestedModel = "gpt-5-mini"
	r.Stream = true
	r.ReceivedAt = at
	r.Deadline = Some(10 * time.Minute)
	r.PolicyRevision = "sha256:0123456789abcdef0123456789abcdef"
	r.ClientRetry = Some[int64](0)
	r.Decisions = append(r.Decisions, Decision{Point: "admission", Input: sampleInput, Output: sampleOutput, Revision: r.PolicyRevision})
	a := r.NextAttempt()
	a.Cause = failure.Initial
	a.Group, a.Channel, a.Provider = "primary", "main-eu", "acme"
	a.Model, a.UpstreamModel, a.Endpoint = "gpt-5-mini", "gpt-5-mini-2026-08-07", "chat_completions"
	a.Contract, a.Reason, a.Circuit = "f00dfeed", "first_candidate", "closed"
	a.TimeLeft = Some(10 * time.Minute)
}

func fillAnswer(r *Record) {
	a := r.Attempt(len(r.Attempts))
	a.Connected, a.Sent, a.Headers = Some(2*time.Millisecond), Some(3*time.Millisecond), Some(400*time.Millisecond)
	a.FirstOutput, a.LastByte = Some(500*time.Millisecond), Some(2*time.Second)
	a.Status, a.Phase, a.OutputStarted = 200, Some(failure.AfterOutput), true
	a.UpstreamRequestID = "req_0123456789abcdef0123456789abcdef"
	a.Usage = Usage{Input: Some[int64](1234), Output: Some[int64](567), Cached: Some[int64](0), Reasoning: Some[int64](128)}
	a.CostUSD, a.Billable, a.End = Some(0.0014425), BillableYes, failure.EndSuccess
	r.AnsweredModel, r.Terminal, r.Status, r.OutputStarted = "gpt-5-mini", failure.Success, 200, true
	r.Cause, r.Overhead = Some(failure.Initial), Some(310*time.Microsecond)
}

func benchLedger(b *testing.B, o Options) *Ledger {
	db, err := storage.Open(b.Context(), storage.Options{URL: "sqlite:" + filepath.Join(b.TempDir(), "b.db"), Sync: o.Durability == Sync})
	require.NoError(b, err)
	o.DB = db
	l, err := Open(b.Context(), o)
	require.NoError(b, err)
	b.Cleanup(func() {
		require.NoError(b, l.Close(context.Background()))
		require.NoError(b, db.Close())
	})
	return l
}

func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkRequest is the whole cost of a clean request: the caller's path and the
// writer. "merged" requests end before their group is committed, "apart" ones live
// through lag other requests, so that each is written twice. cpu-µs/req is what the
// process used, kernel and garbage collector included; run it with -benchtime 200000x.
func BenchmarkRequest(b *testing.B) {
	for _, lag := range []int{0, 1000} {
		b.Run("lag"+strconv.Itoa(lag), func(b *testing.B) {
			l := benchLedger(b, Options{})
			waiting := make([]*Record, 0, lag+1)
			now := time.Now()
			b.ReportAllocs()
			b.ResetTimer()
			before := cpu()
			for i := range b.N {
				r := l.Acquire()
				fillRequest(r, now.Add(time.Duration(i)*100*time.Microsecond))
				if err := l.OpenAttempt(r, 1, nil); err != nil {
					b.Fatal(err)
				}
				if waiting = append(waiting, r); len(waiting) > lag {
					at := 0
					if lag > 0 {
						at = (i * 7919) % (lag / 2) // they end in another order
					}
					done := waiting[at]
					waiting[at] = waiting[len(waiting)-1]
					waiting = waiting[:len(waiting)-1]
					fillAnswer(done)
					l.CloseAttempt(done, 1)
					l.CloseRequest(done)
				}
				if lag > 0 && i%100 == 0 {
					require.NoError(b, l.Flush(b.Context()))
				}
			}
			for _, r := range waiting {
				fillAnswer(r)
				l.CloseAttempt(r, 1)
				l.CloseRequest(r)
			}
			require.NoError(b, l.Flush(b.Context()))
			b.StopTimer()
			b.ReportMetric(float64((cpu()-before).Microseconds())/float64(b.N), "cpu-µs/req")
			used, err := l.db.Used(b.Context())
			require.NoError(b, err)
			b.ReportMetric(float64(used)/float64(b.N), "bytes/req")
			b.ReportMetric(float64(l.Status().Written)/float64(b.N), "rows/req")
		})
	}
}

// BenchmarkCallerPath is what a request itself spends in the ledger: copies and the
// queue. ledger-ns/req is the figure; the rest is the benchmark's own.
func BenchmarkCallerPath(b *testing.B) {
	l := benchLedger(b, Options{})
	now := time.Now()
	var records [256]*Record
	var spent time.Duration
	b.ReportAllocs()
	for b.Loop() {
		for i := range records {
			records[i] = l.Acquire()
			fillRequest(records[i], now)
		}
		begin := time.Now()
		for _, r := range records {
			if err := l.OpenAttempt(r, 1, nil); err != nil {
				b.Fatal(err)
			}
		}
		spent += time.Since(begin)
		for _, r := range records {
			fillAnswer(r)
		}
		begin = time.Now()
		for _, r := range records {
			l.CloseAttempt(r, 1)
			l.CloseRequest(r)
		}
		spent += time.Since(begin)
		require.NoError(b, l.Flush(b.Context()))
	}
	b.ReportMetric(float64(spent.Nanoseconds())/float64(b.N*len(records)), "ledger-ns/req")
}

func BenchmarkEncode(b *testing.B) {
	r := &Record{}
	fillRequest(r, time.Now())
	fillAnswer(r)
	e := encoder{}
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		buf, _ = e.record(buf[:0], r)
	}
	b.ReportMetric(float64(len(buf)), "portable-bytes")
}

func BenchmarkAppendJSON(b *testing.B) {
	r := &Record{}
	fillRequest(r, time.Now())
	fillAnswer(r)
	var buf []byte
	b.ReportAllocs()
	for b.Loop() {
		buf = r.AppendJSON(buf[:0], true)
	}
}
