package policy

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/format"
	"github.com/open-policy-agent/opa/v1/tester"
	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/gateway/failure"
)

const examplesDir = "../../examples/policies"

// decisions of an example, and of the default bundle for the same inputs.
type decisions struct {
	t      *testing.T
	own    *Revision
	before *Revision
}

func (d *decisions) replay(in ReplayInput, want actions) {
	d.t.Helper()
	got, meta := d.own.Replay(testContext(d.t), &in)
	require.NoError(d.t, meta.Err)
	require.Equal(d.t, want, got.Actions)
}

// untouched holds an input to which the example does not speak to the default's decision.
func (d *decisions) untouched(in ReplayInput) {
	d.t.Helper()
	got, meta := d.before.Replay(testContext(d.t), &in)
	require.NoError(d.t, meta.Err)
	require.NotEqual(d.t, actions{stop}, got.Actions, "nothing would be seen to change")
	d.replay(in, got.Actions)
}

func (d *decisions) admission(labels map[string]string) Admission {
	d.t.Helper()
	got, meta := d.own.Admission(testContext(d.t), &AdmissionInput{Key: Key{Name: "k", Labels: LabelsOf(labels)}})
	require.NoError(d.t, meta.Err)
	require.True(d.t, got.Allow)
	return got
}

func (d *decisions) failure(provider, code string) Failure {
	d.t.Helper()
	got, meta := d.own.Failure(testContext(d.t), &FailureInput{
		Failure: FailureFacts{AdapterClass: failure.ClientInvalid, Status: 400, ProviderCode: code, RequestSent: true},
		Channel: Channel{Group: "g", Name: "c", Provider: provider}, Model: "m",
	})
	require.NoError(d.t, meta.Err)
	return got
}

var promises = map[string]func(d *decisions){
	"embeddings-once": func(d *decisions) {
		for _, class := range append(failure.Classes(), failure.None) {
			in := openInput(class, failure.BeforeHeaders, true)
			in.Request.Kind, in.Request.Endpoint = "embeddings", "embeddings"
			d.replay(in, actions{stop})
		}
		d.untouched(openInput(failure.Network, failure.BeforeHeaders, true))
	},
	"regulated-no-substitution": func(d *decisions) {
		require.Equal(d.t, Deny, d.admission(map[string]string{"regulated": "hipaa"}).Substitution)
		require.Equal(d.t, Unspecified, d.admission(map[string]string{"team": "hipaa"}).Substitution)
		in := SubstitutionInput{
			Request: Request{SideEffects: NoSideEffects}, Candidate: Candidate{Evidence: NoEvidence}, Class: failure.ServerError,
		}
		for labels, approved := range map[Object]bool{LabelsOf(map[string]string{"regulated": "x"}): false, {}: true} {
			in.Labels = labels
			got, meta := d.own.Substitution(testContext(d.t), &in)
			require.NoError(d.t, meta.Err)
			require.Equal(d.t, approved, got.Approve)
		}
	},
	"provider-400-fallback": func(d *decisions) {
		cold := d.failure("acme", "engine_cold")
		require.Equal(d.t, failure.ModelUnavailable, cold.Class)
		require.Equal(d.t, failure.Neutral, cold.Effect(), "no caller takes a route out by what it sends")
		require.Equal(d.t, failure.ClientInvalid, d.failure("acme", "bad_parameter").Class)
		require.Equal(d.t, failure.ClientInvalid, d.failure("other", "engine_cold").Class)
	},
	"batch-patience": func(d *decisions) {
		labels := map[string]string{"workload": "batch"}
		require.Equal(d.t, "patient", d.admission(labels).Budget)
		require.Empty(d.t, d.admission(map[string]string{"workload": "chat"}).Budget)
		in := openInput(failure.Network, failure.BeforeHeaders, true)
		in.Attempt.Number, in.Attempt.SameRoute = 3, 3
		d.untouched(in)
		in.Labels = LabelsOf(labels)
		d.replay(in, actions{elsewhere, other, again, stop})
	},
	"region-pinning": func(d *decisions) {
		require.Equal(d.t, []string{"eu", "ch"}, d.admission(map[string]string{"residency": "eu"}).Regions)
		require.Equal(d.t, []string{"ch"}, d.admission(map[string]string{"residency": "ch"}).Regions)
		require.Nil(d.t, d.admission(nil).Regions)
	},
	"alias-without-failover": func(d *decisions) {
		in := openInput(failure.ServerError, failure.BeforeHeaders, true)
		d.untouched(in)
		in.Request.Alias = "checkout"
		d.replay(in, actions{again, stop})
		in.Failure.Class = failure.UpstreamAuth
		d.replay(in, actions{stop})
		in.Request.Alias = "support"
		d.untouched(in)
	},
}

// Every example decides as it says, loaded over the default bundle, and its Rego tests hold.
func TestExamples(t *testing.T) {
	entries, err := os.ReadDir(examplesDir)
	require.NoError(t, err)
	before, told := builtin(t), 0
	for _, entry := range entries {
		if !entry.IsDir() {
			continue
		}
		told++
		t.Run(entry.Name(), func(t *testing.T) {
			dir := filepath.Join(examplesDir, entry.Name())
			promise := promises[entry.Name()]
			require.NotNil(t, promise, "an example without a test")
			require.FileExists(t, filepath.Join(dir, "README.md"))
			promise(&decisions{t, overDefault(t, dir), before})
			regoTests(t, bundleDir, dir)
			eachFile(t, dir, ".rego", func(path string, text []byte) {
				formatted, err := format.SourceWithOpts(path, text, format.Opts{RegoVersion: ast.RegoV1})
				require.NoError(t, err)
				if os.Getenv("UPDATE") != "" {
					require.NoError(t, os.WriteFile(path, formatted, 0o644))
					return
				}
				require.Equal(t, string(formatted), string(text), path)
			})
		})
	}
	require.Len(t, promises, told)
}

// Examples own different corners: all of them may be in force together.
func TestExamplesTogether(t *testing.T) {
	var dirs []string
	for name := range promises {
		dirs = append(dirs, filepath.Join(examplesDir, name))
	}
	slices.Sort(dirs)
	all, before := overDefault(t, dirs...), builtin(t)
	for _, promise := range promises {
		promise(&decisions{t, all, before})
	}
}

// overDefault loads bundles that own a corner each, with the default bundle for the rest.
func overDefault(t *testing.T, dirs ...string) *Revision {
	t.Helper()
	var sources []Source
	for _, dir := range dirs {
		sources = append(sources, Path(filepath.Base(dir), dir))
	}
	r, err := LoadAll(testContext(t), sources, patient)
	require.NoError(t, err)
	return r
}

// regoTests does what `opa test DIR …` does.
func regoTests(t *testing.T, dirs ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	modules, store, err := tester.LoadWithParserOptions(dirs, nil, ast.ParserOptions{RegoVersion: ast.RegoV1})
	require.NoError(t, err)
	txn, err := store.NewTransaction(ctx)
	require.NoError(t, err)
	defer store.Abort(ctx, txn)
	results, err := tester.NewRunner().SetStore(store).SetModules(modules).
		SetCompiler(ast.NewCompiler().WithStrict(true)).SetTimeout(30*time.Second).RunTests(ctx, txn)
	require.NoError(t, err)
	passed := 0
	for result := range results {
		require.True(t, result.Pass(), "%v", result)
		passed++
	}
	require.Positive(t, passed)
}
