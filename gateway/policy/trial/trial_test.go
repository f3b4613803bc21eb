package trial

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/interlock-gateway/interlock/gateway/failure"
	"github.com/interlock-gateway/interlock/gateway/policy"
	"github.com/interlock-gateway/interlock/policies"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const soon = 20 * time.Second

// load loads the default bundle with one text of a file replaced.
func load(t *testing.T, file, from, to string) *policy.Revision {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, policies.Files))
	if file != "" {
		path := filepath.Join(dir, filepath.FromSlash(file))
		b, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Contains(t, string(b), from)
		require.NoError(t, os.WriteFile(path, []byte(strings.Replace(string(b), from, to, 1)), 0o600))
	}
	r, err := policy.Load(context.Background(), policy.Path("test", dir), policy.Options{Timeout: soon})
	require.NoError(t, err)
	return r
}

func admission(key string) *policy.AdmissionInput {
	return &policy.AdmissionInput{
		Key:     policy.Key{Name: key},
		Request: policy.Request{Endpoint: "chat_completions", Kind: "chat", Model: "m", Modalities: policy.ListOf("text"), Idempotent: true},
	}
}

func decide(t *Trial, deciding, beside *policy.Revision, key string) {
	in := admission(key)
	in.Detail = &policy.Detail{Now: time.Unix(1, 0)}
	d, meta := deciding.Admission(context.Background(), in)
	t.Admission(beside, Asker{RequestID: "req_1", Key: key}, in, d, &meta)
	*in.Detail = policy.Detail{BodyBytes: 1 << 40} // the request's space is used for the next
}

func TestDifferencesAreCountedAndExplained(t *testing.T) {
	active, other := load(t, "", "", ""), load(t, "interlock/admission.rego", "package interlock.admission", "package interlock.admission\n\n# the same")
	var compared, differ []string
	tr := New(Options{
		Active: active, Candidate: other,
		Compared: func(p string) { compared = append(compared, p) },
		Differs:  func(p, class, key string) { differ = append(differ, p+class+key) },
	})
	for i := range 30 {
		decide(tr, active, other, fmt.Sprint("key-", i))
	}
	require.Eventually(t, func() bool { return tr.Report().Compared == 30 }, soon, time.Millisecond)
	tr.Close()
	require.Zero(t, tr.Report().Differ, "a comment is no difference")
	require.Len(t, compared, 30)
	require.Empty(t, differ)
	require.Empty(t, tr.Report().Examples)
	decide(tr, active, other, "late")
	require.EqualValues(t, 30, tr.Report().Compared, "nothing is looked at after the end")
}

func TestLatestExamplesStay(t *testing.T) {
	y := newTally()
	for i := range 3 * maxExamples {
		y.add(&seen{
			point: policy.PointReplay, class: failure.Overloaded, asker: Asker{fmt.Sprint("req_", i), "k"},
			active:    &policy.Record{Input: []byte(`{}`), Output: []byte(`{"actions":["stop"]}`)},
			candidate: &policy.Record{Output: []byte(`{"actions":["same_route_retry","stop"]}`)},
		})
	}
	r := (&Trial{tally: y}).Report()
	require.Len(t, r.Examples, maxExamples)
	require.Equal(t, fmt.Sprint("req_", 3*maxExamples-1), r.Examples[0].RequestID)
	require.Equal(t, fmt.Sprint("req_", 2*maxExamples), r.Examples[maxExamples-1].RequestID)
	require.Equal(t, Count{3 * maxExamples, 3 * maxExamples}, r.ByClass["overloaded"])
}

func TestKeysAreBounded(t *testing.T) {
	y := newTally()
	for i := range 3 * maxKeys {
		y.add(&seen{same: true, asker: Asker{Key: fmt.Sprint(i)}})
	}
	require.Len(t, y.report.ByKey, maxKeys+1)
	require.EqualValues(t, 2*maxKeys, y.report.ByKey[otherKeys].Compared)
}

// The share of keys is stable, grows with the percentage and is about as large as it says.
func TestShareOfKeys(t *testing.T) {
	share := func(percent float64) map[string]bool {
		tr := &Trial{options: Options{Canary: true, Percent: percent}}
		keys := map[string]bool{}
		for i := range 10_000 {
			if name := fmt.Sprint("team-", i); tr.Decides(name) {
				keys[name] = true
			}
		}
		return keys
	}
	before := share(0)
	require.Empty(t, before)
	for _, percent := range []float64{0.5, 5, 20, 50, 100} {
		now := share(percent)
		require.InDelta(t, percent*100, len(now), 30+percent*5)
		for name := range before {
			require.True(t, now[name], "%s is no longer in the share", name)
		}
		before = now
	}
	require.Len(t, before, 10_000)
	require.False(t, (&Trial{options: Options{Percent: 100}}).Decides("team-1"), "a shadow decides nothing")
}
