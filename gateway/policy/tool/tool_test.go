package tool

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/gateway/failure"
	"github.com/interlock-gateway/interlock/gateway/policy"
)

var patient = policy.Options{Timeout: 10 * time.Second, CacheSize: -1}

var builtin = sync.OnceValues(func() (*policy.Revision, error) {
	return policy.Load(context.Background(), policy.Builtin(), patient)
})

// Rows that do the same are one: of all phases, and whether idempotent or not. Others stay apart.
func TestRowsAreJoined(t *testing.T) {
	cell := func(class failure.Class, phase failure.Phase, idempotent bool, first failure.Action, reason string) policy.MatrixCell {
		actions := []failure.Action{first}
		if first != failure.Stop {
			actions = append(actions, failure.Stop)
		}
		return policy.MatrixCell{Class: class, Phase: phase, Idempotent: idempotent, Actions: actions, Reason: reason}
	}
	var cells []policy.MatrixCell
	for _, phase := range failure.Phases() {
		for _, idempotent := range []bool{true, false} {
			first, reason := failure.RetrySameRoute, "again"
			if !idempotent {
				first, reason = failure.Stop, "once"
			}
			cells = append(cells, cell(failure.Network, phase, idempotent, first, reason))
		}
	}
	for i, phase := range failure.Phases() {
		for _, idempotent := range []bool{true, false} {
			reason := "r"
			if i == 2 {
				reason = "another"
			}
			cells = append(cells, cell(failure.None, phase, idempotent, failure.Stop, reason))
		}
	}
	rows := Rows(cells)
	var got []string
	for i := range rows {
		got = append(got, strings.Join(rows[i].cells(), " "))
	}
	require.Equal(t, []string{
		"network any yes retry again",
		"network any no stop once",
		"none before_headers, before_output either stop r",
		"none after_output either stop another",
	}, got)
}

// Each form has every cell of the matrix.
func TestMatrixForms(t *testing.T) {
	r, err := builtin()
	require.NoError(t, err)
	cells, err := policy.Matrix(t.Context(), r)
	require.NoError(t, err)
	for _, form := range MatrixForms {
		text := write(t, func(w *strings.Builder) error { return Matrix(w, form, r.ID(), cells) })
		require.Contains(t, text, r.ID(), form)
		text = strings.ToLower(text)
		for _, class := range failure.Classes() {
			require.Contains(t, text, class.String(), form)
		}
		if form != "json" {
			require.Contains(t, text, "retry → fallback → substitute", form)
			require.Contains(t, text, "no time to wait", form)
		}
	}
	page := write(t, func(w *strings.Builder) error { return Matrix(w, "html", r.ID(), cells) })
	require.NoError(t, wellFormed(page))
}

// wellFormed reads a page as XML reads it: every element that begins ends.
func wellFormed(page string) error {
	d := xml.NewDecoder(strings.NewReader(page))
	d.Strict, d.AutoClose, d.Entity = false, []string{"meta"}, xml.HTMLEntity
	for {
		if _, err := d.Token(); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// A difference says what the gateway does otherwise, and apart from it what only the record says.
func TestDifference(t *testing.T) {
	nothing := &policy.Difference{Points: []policy.Coverage{{Point: policy.PointReplay, Equal: true}}}
	require.True(t, Nothing(nothing))
	require.Contains(t, write(t, func(w *strings.Builder) error { return Difference(w, "text", "a", "b", nothing) }), "No decision differs.\nreplay: the same rules and tables")

	verdict := func(does, reason string) policy.Verdict {
		return policy.Verdict{Does: does, Reason: reason, Rule: "rule." + reason}
	}
	d := &policy.Difference{
		Changes: []policy.Change{
			{Point: policy.PointReplay, Old: verdict("stop", "a"), New: verdict("same_route_retry", "b"), Situations: 1, When: []policy.Fact{
				{Name: "failure.class", Values: []json.RawMessage{[]byte(`"network"`), []byte(`"a b"`)}},
				{Name: "candidates.same_route", Values: []json.RawMessage{[]byte(`1`)}},
			}},
			{Point: policy.PointReplay, Same: true, Old: verdict("stop", "c"), New: verdict("stop", "d"), Situations: 2},
			{Point: policy.PointReplay, Same: true, Old: verdict("x", "c"), New: verdict("x", "d"), Situations: 3},
			{Point: policy.PointAdmission, Old: verdict("deny", "e"), New: verdict("allow", "e"), Situations: 7},
		},
		Kinds:  []policy.KindChange{{Kind: "audio", Old: "never", New: "declared"}},
		Points: []policy.Coverage{{Point: policy.PointReplay, Inputs: 1234, Apart: []string{"attempt.number"}}},
	}
	require.False(t, Nothing(d))
	require.Equal(t, `--- a
+++ b

kinds  audio
  - never
  + declared

replay  failure.class = network|"a b", candidates.same_route = 1
  - stop
  + same_route_retry
    a → b by rule.a → rule.b
    in 1 situation

admission  always
  - deny
  + allow
    e by rule.e
    in 7 situations

replay  the same decisions
    c → d by rule.c → rule.d
    in 5 situations

3 changed decisions; 2 changes of the reason or rule only.
replay: 1234 inputs asked of both; one at a time, since all together are too many: attempt.number
`, write(t, func(w *strings.Builder) error { return Difference(w, "text", "a", "b", d) }))
	page := write(t, func(w *strings.Builder) error { return Difference(w, "markdown", "a", "b", d) })
	require.Contains(t, page, "# `a` → `b`\n")
	require.Contains(t, page, "| kinds | audio | never | declared | | |\n")
	require.Contains(t, page, `| replay | failure.class = network\|"a b", candidates.same_route = 1 | stop | same_route_retry |`)
	require.Contains(t, page, "| replay | always | stop | (the same) |")
}

const asked = `{"failure":{"class":"network","phase":"before_headers","request_sent":true},"request":{"alias":%q,"idempotent":true,"kind":"chat"},` +
	`"attempt":{"number":1,"same_route":1},"candidates":{"same_route":1,"same_contract":1}}`

// exported is a line of the ledger's export.
func exported(id string, decisions ...string) string {
	return fmt.Sprintf(`{"request_id":%q,"status":200,"decisions":[%s]}`, id, strings.Join(decisions, ","))
}

func replayDecision(alias, output string) string {
	return fmt.Sprintf(`{"attempt":1,"point":"replay","input":%s,"output":%s}`, fmt.Sprintf(asked, alias), output)
}

func replayed(t *testing.T, lines ...string) *Replayed {
	t.Helper()
	r, err := builtin()
	require.NoError(t, err)
	result, err := Replay(t.Context(), r, strings.NewReader(strings.Join(lines, "\n")))
	require.NoError(t, err)
	return result
}

const (
	asNow   = `{"actions":["same_route_retry","same_contract_fallback","stop"],"reason":"lone_failure","rule":"matrix.network.before_headers"}`
	renamed = `{"actions":["same_route_retry","same_contract_fallback","stop"],"reason":"lone_failure","rule":"old.rule"}`
	stopped = `{"actions":["stop"],"reason":"not_replayed","rule":"old.rule"}`
)

// What differs in one way is one group, with how often and some of the requests.
func TestReplayGroups(t *testing.T) {
	var lines []string
	for i := range 8 {
		lines = append(lines, exported(fmt.Sprint("req_", i), replayDecision("", asNow), replayDecision(fmt.Sprint("alias-", i%2), stopped)))
	}
	lines = append(lines, "", exported("req_reworded", replayDecision("", renamed), replayDecision("", renamed)), exported("req_none"))
	result := replayed(t, lines...)
	require.Equal(t, Replayed{Requests: 10, Decisions: 18, Distinct: 3, Differ: 8, Reworded: 2, Groups: result.Groups}, *result)
	require.Len(t, result.Groups, 2)
	differ, reworded := result.Groups[0], result.Groups[1]
	require.Equal(t, []string{"decision", "record"}, []string{differ.Kind, reworded.Kind})
	require.Equal(t, 8, differ.Decisions)
	require.Equal(t, []string{"req_0", "req_1", "req_2", "req_3", "req_4"}, differ.Requests)
	require.Equal(t, []string{"req_reworded"}, reworded.Requests)
	require.Equal(t, "stop", differ.Old.Does)
	require.Equal(t, "same_route_retry → same_contract_fallback", differ.New.Does)
	require.JSONEq(t, fmt.Sprintf(asked, "alias-0"), string(differ.Example))

	text := write(t, func(w *strings.Builder) error { return result.Write(w, false, "rev") })
	require.Contains(t, text, "18 decisions of 10 requests, decided again by rev\n8 would differ, 2 would only have another reason or rule\n3 distinct inputs evaluated\n")
	require.Contains(t, text, "replay  8 decisions\n  - stop\n  + same_route_retry → same_contract_fallback\n")
	var read struct {
		Revision string
		Differ   int
		Groups   []ReplayGroup
	}
	require.NoError(t, json.Unmarshal([]byte(write(t, func(w *strings.Builder) error { return result.Write(w, true, "rev") })), &read))
	require.Equal(t, []any{"rev", 8, 2}, []any{read.Revision, read.Differ, len(read.Groups)})
}

// A guard's decision is no policy's: it is not counted. What a policy decided and cannot be read
// any more is.
func TestReplayCountsOnlyPolicyDecisions(t *testing.T) {
	guard := `{"point":"guard","input":{"guard":"words"},"output":{"verdict":"pass"}}`
	result := replayed(t, exported("req_a", guard, replayDecision("", asNow), guard), exported("req_b", guard))
	require.Equal(t, Replayed{Requests: 2, Decisions: 1, Distinct: 1, Groups: []ReplayGroup{}}, *result)

	result = replayed(t, exported("req_a",
		`{"point":"replay","input":null,"output":null}`,
		`{"point":"replay","input":{},"output":{"actions":["jump"],"reason":"r"}}`,
		`{"point":"replay","input":{"was":{"here":1}},"output":`+asNow+`}`,
	))
	require.Equal(t, Replayed{Requests: 1, Decisions: 3, Unread: 3, Groups: []ReplayGroup{}}, *result)
	require.Contains(t, write(t, func(w *strings.Builder) error { return result.Write(w, false, "rev") }), "3 could not be: their texts are gone, or of another version")
}

func TestReplayOfWhatIsNoExport(t *testing.T) {
	r, err := builtin()
	require.NoError(t, err)
	_, err = Replay(t.Context(), r, strings.NewReader("<html>\n"))
	require.ErrorContains(t, err, "not an export of the ledger")
	result := replayed(t, "")
	require.Equal(t, Replayed{Groups: []ReplayGroup{}}, *result)
}

// JUnit's XML has every test under its package, and what was wrong, whatever stands in it.
func TestJUnit(t *testing.T) {
	r := &policy.Rehearsal{Tests: []policy.Tested{
		{Package: "a_test", Name: "test_one", File: "a_test.rego", Line: 3, Took: 1500 * time.Microsecond},
		{Package: "a_test", Name: "test_two", Wrong: `it does not hold: "<&>"` + "\x1b", Output: "said ]]> this", Took: time.Millisecond},
		{Package: "b_test", Name: "todo_test_three", Skipped: true},
	}}
	text := write(t, func(w *strings.Builder) error { return JUnit(w, r) })
	require.True(t, strings.HasPrefix(text, xml.Header))
	var read junitSuites
	require.NoError(t, xml.Unmarshal([]byte(text), &struct {
		XMLName xml.Name      `xml:"testsuites"`
		Suites  *[]junitSuite `xml:"testsuite"`
	}{Suites: &read.Suites}))
	require.Len(t, read.Suites, 2)
	a, b := read.Suites[0], read.Suites[1]
	require.Equal(t, []any{"a_test", 2, 1, 0, "0.002500"}, []any{a.Name, a.Tests, a.Failures, a.Skipped, a.Time})
	require.Equal(t, []any{"b_test", 1, 0, 1}, []any{b.Name, b.Tests, b.Failures, b.Skipped})
	require.Equal(t, []any{"test_one", "a_test", "a_test.rego", 3, "0.001500"}, []any{a.Cases[0].Name, a.Cases[0].Class, a.Cases[0].File, a.Cases[0].Line, a.Cases[0].Time})
	require.Contains(t, text, `<failure message="it does not hold: &#34;&lt;&amp;&gt;&#34;`)
	require.Contains(t, text, "<system-out>said ]]&gt; this</system-out>")
	require.NotContains(t, text, "\x1b")
	require.Contains(t, text, "<skipped>")
}

func put(t *testing.T, path, text string, mode os.FileMode) string {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(t, os.WriteFile(path, []byte(text), mode))
	require.NoError(t, os.Chmod(path, mode))
	return path
}

// Formatting names the place, rewrites only what departs from it, and leaves the rest alone.
func TestFormat(t *testing.T) {
	const ugly, fine = "package a\n\nx := 1\ny  :=  2\n", "package a\n\nx := 1\ny := 2\n"
	dir := t.TempDir()
	first := put(t, filepath.Join(dir, "b", "ugly.rego"), ugly, 0o640)
	elsewhere := put(t, filepath.Join(t.TempDir(), "real.rego"), ugly, 0o600)
	link := filepath.Join(dir, "link.rego")
	require.NoError(t, os.Symlink(elsewhere, link))
	require.NoError(t, os.Symlink(filepath.Join(dir, "nothing"), filepath.Join(dir, "dangling.rego")))
	kept := map[string]string{
		put(t, filepath.Join(dir, "fine.rego"), fine, 0o600):                    fine,
		put(t, filepath.Join(dir, "broken.rego"), "package a\n\nx := {", 0o600): "package a\n\nx := {",
		put(t, filepath.Join(dir, ".git", "hidden.rego"), ugly, 0o600):          ugly,
		put(t, filepath.Join(dir, "text.txt"), ugly, 0o600):                     ugly,
	}
	faults, fixed, err := Format(t.Context(), dir, false)
	require.NoError(t, err)
	require.Empty(t, fixed)
	require.Len(t, faults, 2)
	require.Equal(t, policy.Fault{File: first, Line: 4, Column: 3, Message: "not formatted as OPA does; --fix rewrites it"}, faults[0])
	require.Equal(t, link, faults[1].File)

	faults, fixed, err = Format(t.Context(), dir, true)
	require.NoError(t, err)
	require.Empty(t, faults)
	require.Equal(t, []string{first, link}, fixed)
	for _, path := range []string{first, elsewhere} {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, fine, string(text))
	}
	info, err := os.Stat(first)
	require.NoError(t, err)
	require.EqualValues(t, 0o640, info.Mode().Perm())
	info, err = os.Lstat(link)
	require.NoError(t, err)
	require.NotZero(t, info.Mode()&os.ModeSymlink, "the link stays one")
	for path, want := range kept {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, want, string(text))
	}
	_, _, err = Format(t.Context(), filepath.Join(dir, "none"), false)
	require.ErrorIs(t, err, os.ErrNotExist)
}

// A new bundle has no fault, passes its own tests, and changes one cell.
func TestScaffold(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "deep", "ours")
	require.NoError(t, Scaffold(dir))
	sources := []policy.Source{policy.Path("ours", dir)}
	faults, err := policy.Check(t.Context(), sources, patient)
	require.NoError(t, err)
	require.Empty(t, faults)
	faults, _, err = Format(t.Context(), dir, false)
	require.NoError(t, err)
	require.Empty(t, faults)
	tests, err := policy.Rehearse(t.Context(), sources, policy.RehearseOptions{})
	require.NoError(t, err)
	passed, failed, skipped := tests.Passed()
	require.Equal(t, []int{0, 0}, []int{failed, skipped})
	require.Positive(t, passed)

	require.ErrorContains(t, Scaffold(dir), "not empty")
	empty := t.TempDir()
	require.NoError(t, Scaffold(empty), "an empty folder is taken")
}

// A start that fails leaves what was there, and nothing else.
func TestScaffoldLeavesNothingBehind(t *testing.T) {
	blocked := put(t, filepath.Join(t.TempDir(), "file"), "x", 0o600)
	require.Error(t, Scaffold(filepath.Join(blocked, "ours")))
	if os.Geteuid() == 0 {
		return // a folder that cannot be written to is none to root
	}
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o500))
	require.Error(t, Scaffold(dir))
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, entries)
}
