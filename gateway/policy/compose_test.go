package policy

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/policies"
)

// folder writes a bundle of these files.
func folder(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for path, text := range files {
		writeFile(t, filepath.Join(dir, path), text)
	}
	return dir
}

func text(t testing.TB, path string) string {
	t.Helper()
	b, err := policies.Files.ReadFile(path)
	require.NoError(t, err)
	return string(b)
}

// A team owns a table, the default bundle owns the rest.
func TestATeamsTable(t *testing.T) {
	team := folder(t, map[string]string{
		".manifest": `{"roots": ["interlock/matrix"], "revision": "v3"}`,
		matrixFile:  lastInsteadOfOnce(t),
	})
	r, err := LoadAll(testContext(t), []Source{Path("team", team)}, patient)
	require.NoError(t, err)
	require.Equal(t, elsewhere, firstAction(t, r))
	parts := r.Parts()
	require.Len(t, parts, 2)
	require.Equal(t, "builtin", parts[1].Bundle.Source().Name())
	require.NotContains(t, parts[1].Roots, "interlock/matrix")
	require.Contains(t, parts[1].Roots, "interlock/replay")
	require.Contains(t, parts[1].Roots, "interlock/kinds")
	require.Regexp(t, `^team@v3-[0-9a-f]{12},builtin@[0-9a-f]{12}$`, r.ID())
}

// … or one row of it.
func TestATeamsRow(t *testing.T) {
	team := folder(t, map[string]string{
		".manifest": `{"roots": ["interlock/matrix/network/before_headers"]}`,
		"interlock/matrix/network/before_headers/data.json": `{"same_route_retry": "no", "same_contract_fallback": "yes", "model_substitution": "no"}`,
	})
	r, err := LoadAll(testContext(t), []Source{Path("team", team)}, patient)
	require.NoError(t, err)
	require.Equal(t, elsewhere, firstAction(t, r))
}

// The platform's rules and a team's matrix; neither may say anything about the other's.
func TestDisjointRoots(t *testing.T) {
	platform := folder(t, map[string]string{
		".manifest":             `{"roots": ["interlock/replay"]}`,
		"interlock/replay.rego": text(t, "interlock/replay.rego"),
	})
	matrix := map[string]string{".manifest": `{"roots": ["interlock/matrix"]}`, matrixFile: lastInsteadOfOnce(t)}
	r, err := LoadAll(testContext(t), []Source{Path("platform", platform), Path("team", folder(t, matrix))}, patient)
	require.NoError(t, err)
	require.Equal(t, elsewhere, firstAction(t, r))
	require.Len(t, r.Parts(), 3)

	for name, c := range map[string]struct {
		change map[string]string
		says   []string
	}{
		"the same root":     {map[string]string{".manifest": `{"roots": ["interlock/replay", "interlock/matrix"]}`}, []string{"platform and team", `"interlock/replay"`}},
		"a root around it":  {map[string]string{".manifest": `{"roots": ["interlock"]}`}, []string{"platform and team", "overlap"}},
		"no roots: all":     {map[string]string{".manifest": `{}`}, []string{"platform and team", `""`}},
		"data outside":      {map[string]string{"interlock/kinds/data.json": `{}`}, []string{"data.interlock.kinds", "outside", "kinds/data.json"}},
		"a package outside": {map[string]string{"x.rego": "package interlock.failure\n\nx := 1\n"}, []string{"outside", "x.rego:1"}},
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{}
			for path, text := range matrix {
				files[path] = text
			}
			for path, text := range c.change {
				files[path] = text
			}
			_, err := LoadAll(testContext(t), []Source{Path("platform", platform), Path("team", folder(t, files))}, patient)
			for _, want := range c.says {
				require.ErrorContains(t, err, want)
			}
		})
	}
}

// A bundle that owns everything gets nothing from the default one.
func TestOwnerOfAll(t *testing.T) {
	message := refusal(t, map[string]string{"interlock/admission.rego": ""})
	require.Contains(t, message, "there is no rule data.interlock.admission.decision")
	r := loadDir(t, copyBundle(t, nil))
	require.Len(t, r.Parts(), 1)
	require.False(t, strings.Contains(r.ID(), "builtin"))
}
