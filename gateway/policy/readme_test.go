package policy

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/gateway/failure"
)

// The examples of the bundle's README do what it says.
func TestReadme(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(bundleDir, "README.md"))
	require.NoError(t, err)
	example := func(language string) string {
		found := regexp.MustCompile("(?s)```" + language + "\n(.*?)```").FindStringSubmatch(string(text))
		require.NotNil(t, found, language)
		return found[1]
	}
	const branch = "verdict := {\"actions\": [\"stop\"], \"reason\": \"not_replayed\", \"rule\": rule} if {\n\tcells == nothing\n}"
	r := loadDir(t, copyBundle(t, map[string]string{
		"interlock/overrides/data.json": example("json"),
		"interlock/replay.rego":         edited(t, "interlock/replay.rego", branch, strings.TrimSpace(example("rego"))),
	}))
	ctx := testContext(t)

	in := openInput(failure.Network, failure.BeforeHeaders, true)
	d, meta := r.Replay(ctx, &in)
	require.NoError(t, meta.Err)
	require.Equal(t, again, d.Actions[0])
	in.Request.Alias = "support"
	d, _ = r.Replay(ctx, &in)
	require.Equal(t, elsewhere, d.Actions[0])
	in.Request.Release, in.Budget.TimeLeft = ReleaseBuffered, ShortTime
	d, _ = r.Replay(ctx, &in)
	require.Equal(t, actions{stop}, d.Actions)
	require.Equal(t, "too_late_to_start_over", d.Reason)

	free := LabelsOf(map[string]string{"tier": "free"})
	a, meta := r.Admission(ctx, &AdmissionInput{Key: Key{Labels: free}})
	require.NoError(t, meta.Err)
	require.True(t, a.Allow)
	require.Equal(t, []string{"eu"}, a.Regions)
	require.Equal(t, Deny, a.Substitution)
	s, meta := r.Substitution(ctx, &SubstitutionInput{
		Labels: free, Request: Request{SideEffects: NoSideEffects}, Candidate: Candidate{Evidence: NoEvidence}, Class: failure.ServerError,
	})
	require.NoError(t, meta.Err)
	require.False(t, s.Approve)

	f, meta := r.Failure(ctx, &FailureInput{Failure: FailureFacts{Status: 498}, Channel: Channel{Provider: "pool-eu"}})
	require.NoError(t, meta.Err)
	require.Equal(t, failure.Overloaded, f.Class)
	f, _ = r.Failure(ctx, &FailureInput{
		Failure: FailureFacts{Status: 400, ProviderCode: "engine_cold"}, Channel: Channel{Provider: "pool-eu"},
	})
	require.Equal(t, failure.ModelUnavailable, f.Class)
	require.Equal(t, failure.Neutral, f.Effect())
	f, _ = r.Failure(ctx, &FailureInput{Failure: FailureFacts{Status: 429}, Channel: Channel{Provider: "pool-eu"}})
	require.Equal(t, ScopeAccount, f.Scope)
	require.Equal(t, failure.Cools, f.Effect())

	// The cell of the first example.
	row := `"before_headers": {"same_route_retry": "no", "same_contract_fallback": "yes"`
	require.Contains(t, string(text), `"malformed_answer"`)
	matrix := edited(t, matrixFile, `"malformed_answer": {`, `"malformed_answer": {`)
	at := strings.Index(matrix, `"malformed_answer": {`)
	r = loadDir(t, copyBundle(t, map[string]string{
		matrixFile: matrix[:at] + strings.Replace(matrix[at:], row, strings.Replace(row, `"no"`, `"last"`, 1), 1),
	}))
	in = openInput(failure.MalformedAnswer, failure.BeforeHeaders, true)
	d, meta = r.Replay(ctx, &in)
	require.NoError(t, meta.Err)
	require.Equal(t, actions{elsewhere, other, again, stop}, d.Actions)
}
