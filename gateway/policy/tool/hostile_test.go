package tool

import (
	"encoding/json"
	"html"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/gateway/failure"
	"github.com/interlock-gateway/interlock/gateway/policy"
)

// hostile is what somebody may call a bundle, an alias or a reason.
const hostile = "a|b`c``<script>alert(1)</script>\x1b[31m\nnext\t![x](http://h) @team *b* \\| & é"

func write(t *testing.T, do func(w *strings.Builder) error) string {
	t.Helper()
	var w strings.Builder
	require.NoError(t, do(&w))
	return w.String()
}

// harmless holds a text to what no terminal takes for a command.
func harmless(t *testing.T, text string) {
	t.Helper()
	require.NotContains(t, text, "\x1b")
	for _, r := range text {
		require.True(t, r == '\n' || r >= ' ', "%q", r)
	}
}

// columns counts the cells of a Markdown table's row.
func columns(line string) int {
	return len(regexp.MustCompile(`[^\\]\|`).FindAllString(strings.ReplaceAll(line, `\\`, ""), -1))
}

func hostileCells() []policy.MatrixCell {
	var cells []policy.MatrixCell
	for _, left := range policy.Lefts() {
		cells = append(cells, policy.MatrixCell{
			Class: failure.Network, Phase: failure.BeforeHeaders, Idempotent: true, Left: left,
			Actions: []failure.Action{failure.RetrySameRoute, failure.Stop}, Reason: hostile, Rule: hostile,
		})
	}
	return cells
}

func TestMatrixOfHostileNames(t *testing.T) {
	cells := hostileCells()
	form := func(form string) string {
		return write(t, func(w *strings.Builder) error { return Matrix(w, form, hostile, cells) })
	}
	harmless(t, form("table"))

	page := form("markdown")
	harmless(t, page)
	require.NotContains(t, page, "<script>alert(1)</script>\n|", "not outside of code")
	lines := strings.Split(page, "\n")
	require.Equal(t, "| --- ", lines[3][:6])
	require.Equal(t, columns(lines[2]), columns(lines[4]), lines[4])
	require.NotContains(t, lines[4], "<")
	require.NotContains(t, lines[4], "![x](")
	require.NotContains(t, lines[4], "@team")

	page = form("html")
	require.NotContains(t, page, "<script>alert")
	require.Contains(t, html.UnescapeString(page), "<script>alert(1)</script>")

	var read struct {
		Revision string
		Cells    []struct{ Class, Phase, Left, Reason, Rule string }
	}
	require.NoError(t, json.Unmarshal([]byte(form("json")), &read))
	require.Equal(t, hostile, read.Revision)
	require.Len(t, read.Cells, len(cells))
	require.Equal(t, hostile, read.Cells[0].Reason)
	require.Equal(t, []string{"network", "before_headers", "everything"}, []string{read.Cells[0].Class, read.Cells[0].Phase, read.Cells[0].Left})
}

func TestDifferenceOfHostileNames(t *testing.T) {
	value, err := json.Marshal(hostile)
	require.NoError(t, err)
	d := &policy.Difference{
		Kinds: []policy.KindChange{{Kind: hostile, Old: "never", New: "always"}},
		Changes: []policy.Change{
			{
				Point: policy.PointReplay, When: []policy.Fact{{Name: "request.alias", Values: []json.RawMessage{value}}},
				Old: policy.Verdict{Does: "stop", Reason: hostile, Rule: hostile}, New: policy.Verdict{Does: hostile, Reason: "r", Rule: "x"},
				Situations: 2, Example: json.RawMessage(`{}`),
			},
			{Point: policy.PointReplay, Same: true, Old: policy.Verdict{Does: "stop", Reason: hostile}, New: policy.Verdict{Does: "stop", Reason: "r"}, Situations: 1},
		},
		Points: []policy.Coverage{{Point: policy.PointReplay, Inputs: 3, Fields: []string{"request.alias"}}},
	}
	form := func(form string) string {
		return write(t, func(w *strings.Builder) error { return Difference(w, form, hostile, hostile, d) })
	}
	harmless(t, form("text"))
	page := form("markdown")
	harmless(t, page)
	rows := 0
	for _, line := range strings.Split(page, "\n")[1:] {
		if !strings.HasPrefix(line, "| ") {
			continue
		}
		rows++
		require.Equal(t, 6, columns(line), line)
		require.NotContains(t, line, "<script")
	}
	require.Equal(t, 5, rows)
	var read struct {
		Old, New string
		Changes  []struct {
			Kind string
			When map[string][]string
			Old  policy.Verdict
		}
	}
	require.NoError(t, json.Unmarshal([]byte(form("json")), &read))
	require.Equal(t, hostile, read.Old)
	require.Equal(t, []string{hostile}, read.Changes[0].When["request.alias"])
	require.Equal(t, []string{"decision", "record"}, []string{read.Changes[0].Kind, read.Changes[1].Kind})
}

// What is code in Markdown is one piece of code, whatever stands in it.
func TestCodeOfBackticks(t *testing.T) {
	for text, want := range map[string]string{"a": "`a`", "`": "`` ` ``", "a``b": "``` a``b ```", "a\nb": "`a�b`"} {
		require.Equal(t, want, code(text))
	}
	require.Equal(t, `a\|b \\\| &lt;i&gt; \[x\](y) same_route_retry`, markdown(`a|b \| <i> [x](y) same_route_retry`))
}
