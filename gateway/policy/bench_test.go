package policy

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/gateway/failure"
)

// questions are one decision of each point, as a request brings them about.
func questions(ctx context.Context, r *Revision) map[Point]func() Meta {
	admission := admissionInput()
	failed := FailureInput{
		Failure: FailureFacts{Status: 503, RequestSent: true}, Channel: Channel{Group: "g", Name: "c", Provider: "p"}, Model: "m",
	}
	substitution := SubstitutionInput{
		Request: Request{SideEffects: NoSideEffects}, Class: failure.ServerError, Candidate: Candidate{Evidence: NoEvidence},
	}
	replay := openInput(failure.ServerError, failure.BeforeHeaders, true)
	return map[Point]func() Meta{
		PointAdmission:    func() Meta { _, m := r.Admission(ctx, &admission); return m },
		PointFailure:      func() Meta { _, m := r.Failure(ctx, &failed); return m },
		PointSubstitution: func() Meta { _, m := r.Substitution(ctx, &substitution); return m },
		PointReplay:       func() Meta { _, m := r.Replay(ctx, &replay); return m },
	}
}

// forgetful is the default bundle without a cache.
func forgetful(tb testing.TB) *Revision {
	r, err := Load(testContext(tb), Builtin(), Options{Timeout: patient.Timeout, CacheSize: -1})
	require.NoError(tb, err)
	return r
}

// A kept decision costs no allocation: admission is on every request's path. One that is made
// costs about as much as the library's machinery does.
func TestAllocations(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector allocates")
	}
	ctx := testContext(t)
	for p, ask := range questions(ctx, builtin(t)) {
		require.NoError(t, ask().Err)
		require.True(t, ask().Cached)
		require.Zero(t, testing.AllocsPerRun(100, func() { ask() }), p)
	}
	most := map[Point]float64{PointAdmission: 280, PointFailure: 480, PointSubstitution: 350, PointReplay: 620}
	for p, ask := range questions(ctx, forgetful(t)) {
		require.NoError(t, ask().Err)
		made := testing.AllocsPerRun(100, func() { ask() })
		t.Logf("%s: %.0f allocations", p, made)
		require.LessOrEqual(t, made, most[p], p)
	}
	activate := func() {
		_, err := Load(ctx, Builtin(), patient)
		require.NoError(t, err)
	}
	activation := testing.AllocsPerRun(2, func() { forget(); activate() })
	t.Logf("a first activation: %.0f allocations", activation)
	require.LessOrEqual(t, activation, 230_000.0)
	activation = testing.AllocsPerRun(2, activate)
	t.Logf("activation with known rules: %.0f allocations", activation)
	require.LessOrEqual(t, activation, 180_000.0)
}

// Callers and providers choose names. None of them makes the cache grow past its bound, in
// number or in size, or has others' decisions forgotten for good.
func TestHostileInputsDoNotGrowTheCache(t *testing.T) {
	const bound = 64
	ctx := testContext(t)
	r, err := Load(ctx, Builtin(), Options{Timeout: patient.Timeout, CacheSize: bound})
	require.NoError(t, err)
	var wg sync.WaitGroup
	for worker := range 4 {
		wg.Go(func() {
			for i := range 250 {
				name := fmt.Sprintf("hostile-%d-%d", worker, i)
				a := admissionInput()
				a.Request.Model, a.Request.Alias, a.Caller.Budget = name, name, name
				f := FailureInput{Failure: FailureFacts{Status: 400 + i, ProviderCode: name, ProviderType: name}, Model: name}
				s := SubstitutionInput{Request: Request{Model: name}, Alias: Alias{Name: name}, Candidate: Candidate{Model: name}}
				p := openInput(failure.Network, failure.BeforeHeaders, true)
				p.Request.Alias, p.Labels = name, LabelsOf(map[string]string{"user": name})
				_, one := r.Admission(ctx, &a)
				_, two := r.Failure(ctx, &f)
				_, three := r.Substitution(ctx, &s)
				_, four := r.Replay(ctx, &p)
				for _, meta := range []Meta{one, two, three, four} {
					if meta.Err != nil {
						t.Error(meta.Err)
					}
				}
			}
		})
	}
	wg.Wait()
	sizes := map[Point]int{}
	r.admission.cache.CleanUp()
	r.failure.cache.CleanUp()
	r.substitution.cache.CleanUp()
	r.replay.cache.CleanUp()
	sizes[PointAdmission] = r.admission.cache.EstimatedSize()
	sizes[PointFailure] = r.failure.cache.EstimatedSize()
	sizes[PointSubstitution] = r.substitution.cache.EstimatedSize()
	sizes[PointReplay] = r.replay.cache.EstimatedSize()
	for p, size := range sizes {
		require.Positive(t, size, p)
		require.LessOrEqual(t, size, bound, p)
	}

	in := admissionInput()
	require.Eventually(t, func() bool { _, meta := r.Admission(ctx, &in); return meta.Cached }, 10*time.Second, time.Millisecond)
	in.Request.Model = strings.Repeat("x", maxKeptInput)
	for range 3 {
		_, meta := r.Admission(ctx, &in)
		require.NoError(t, meta.Err)
		require.False(t, meta.Cached, "what is that long is not kept")
	}
}

func BenchmarkCached(b *testing.B) {
	for p, ask := range questions(testContext(b), builtin(b)) {
		b.Run(p.String(), func(b *testing.B) {
			b.ReportAllocs()
			burnt := processorTime(b)
			for b.Loop() {
				ask()
			}
			b.ReportMetric(float64(processorTime(b)-burnt)/float64(b.N), "cpu-ns/op")
		})
	}
}

func BenchmarkUncached(b *testing.B) {
	for p, ask := range questions(testContext(b), forgetful(b)) {
		b.Run(p.String(), func(b *testing.B) {
			b.ReportAllocs()
			burnt := processorTime(b)
			for b.Loop() {
				ask()
			}
			b.ReportMetric(float64(processorTime(b)-burnt)/float64(b.N), "cpu-ns/op")
		})
	}
}

// large is a bundle with 100,000 rows of data beside the default's: exceptions for aliases.
func large(tb testing.TB) Source {
	var rows strings.Builder
	rows.WriteString("{")
	for i := range 100_000 {
		if i > 0 {
			rows.WriteString(",")
		}
		fmt.Fprintf(&rows, `"alias-%d":{"substitution":"deny"}`, i)
	}
	rows.WriteString("}")
	dir := tb.TempDir()
	writeFile(tb, dir+"/.manifest", `{"roots": ["interlock/overrides/aliases"]}`)
	writeFile(tb, dir+"/interlock/overrides/aliases/data.json", rows.String())
	return Path("large", dir)
}

func BenchmarkActivation(b *testing.B) {
	ctx := testContext(b)
	for name, src := range map[string]Source{"first": Builtin(), "default": Builtin(), "rows": large(b)} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			burnt := processorTime(b)
			for b.Loop() {
				if name == "first" {
					forget()
				}
				_, err := Load(ctx, src, patient)
				require.NoError(b, err)
			}
			b.ReportMetric(float64(processorTime(b)-burnt)/float64(b.N)/1e6, "cpu-ms/op")
		})
	}
}

// BenchmarkWhileActivating decides 500 times a second, each time something new, while bundles
// are activated one after another.
func BenchmarkWhileActivating(b *testing.B) {
	ctx := testContext(b)
	var active atomic.Pointer[Revision]
	active.Store(builtin(b))
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
			}
			r, err := Load(ctx, Builtin(), patient)
			if err != nil {
				b.Error(err)
				return
			}
			active.Store(r)
		}
	}()
	in := openInput(failure.ServerError, failure.BeforeHeaders, true)
	took := make([]time.Duration, 0, b.N)
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for i := 0; b.Loop(); i++ {
		<-tick.C
		in.Request.Alias = fmt.Sprint("alias-", i)
		start := time.Now()
		_, meta := active.Load().Replay(ctx, &in)
		took = append(took, time.Since(start))
		require.NoError(b, meta.Err)
	}
	close(stop)
	<-stopped
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2]), "p50-ns")
	b.ReportMetric(float64(took[len(took)*99/100]), "p99-ns")
	b.ReportMetric(float64(took[len(took)-1]), "max-ns")
}

// processorTime is what the process has used of the processors: unlike the clock it says the
// same on a machine that does other things, too.
func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
