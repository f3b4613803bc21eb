package tool

import (
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/interlock-gateway/interlock/gateway/failure"
	"github.com/interlock-gateway/interlock/gateway/policy"
)

// leftTitles say what is left, as columns of the matrix.
var leftTitles = map[policy.Left]string{
	policy.LeftAll:            "first failure",
	policy.LeftAskedAgain:     "asked again",
	policy.LeftNoTimeToWait:   "no time to wait",
	policy.LeftNoEqualRoute:   "no equal route",
	policy.LeftOnlySubstitute: "only a substitute",
	policy.LeftNothing:        "nothing",
}

// The acts as the tables for people have them.
var shortActs = map[failure.Action]string{
	failure.RetrySameRoute: "retry", failure.FallBackSameContract: "fallback", failure.SubstituteModel: "substitute", failure.Stop: "stop",
}

const matrixLegend = "retry: the same route again · fallback: another route of the same model · substitute: an approved other model\n" +
	"First choice first. What is left: everything after the route's first failure · the same after its second · the route asks\n" +
	"for a wait that does not fit · no untried equal route · nothing but a substitute · nothing."

// MatrixRow is one row for people: a class and phase whose cells are all the same for the
// phases that it names.
type MatrixRow struct {
	Class      string
	Phases     []string
	Idempotent string // "yes", "no" or "either"
	Acts       []string
	Why        string // the reason and the rule with everything left
}

// Rows gathers cells into rows for people: one for all phases of a class, and for both
// answers to whether it is idempotent, where they do the same.
func Rows(cells []policy.MatrixCell) []MatrixRow {
	var rows []MatrixRow
	for len(cells) > 0 {
		n := 1
		for n < len(cells) && cells[n].Class == cells[0].Class && cells[n].Phase == cells[0].Phase && cells[n].Idempotent == cells[0].Idempotent {
			n++
		}
		first := cells[0]
		class := first.Class.String()
		if first.Class == failure.None {
			class = "none"
		}
		row := MatrixRow{Class: class, Phases: []string{first.Phase.String()}, Idempotent: yesNo(first.Idempotent), Why: first.Reason}
		for _, c := range cells[:n] {
			row.Acts = append(row.Acts, shortActions(c.Actions))
		}
		cells = cells[n:]
		rows = append(rows, row)
	}
	rows = join(rows, func(a, b *MatrixRow) bool {
		return a.Idempotent != b.Idempotent && slices.Equal(a.Phases, b.Phases)
	}, func(a, _ *MatrixRow) { a.Idempotent = "either" })
	return join(rows, func(a, b *MatrixRow) bool { return a.Idempotent == b.Idempotent },
		func(a, b *MatrixRow) { a.Phases = append(a.Phases, b.Phases...) })
}

// join lays rows of one class together that do the same.
func join(rows []MatrixRow, may func(a, b *MatrixRow) bool, into func(a, b *MatrixRow)) []MatrixRow {
	var all []MatrixRow
next:
	for _, row := range rows {
		for i := range all {
			a := &all[i]
			if a.Class == row.Class && slices.Equal(a.Acts, row.Acts) && a.Why == row.Why && may(a, &row) {
				into(a, &row)
				continue next
			}
		}
		all = append(all, row)
	}
	return all
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func shortActions(actions []failure.Action) string {
	var words []string
	for _, a := range actions {
		if a != failure.Stop || len(actions) == 1 {
			words = append(words, shortActs[a])
		}
	}
	return strings.Join(words, " → ")
}

// phaseText names the phases of a row.
func (r *MatrixRow) phaseText() string {
	if len(r.Phases) == len(failure.Phases()) {
		return "any"
	}
	return strings.Join(r.Phases, ", ")
}

func matrixHead() []string {
	head := []string{"class", "phase", "idempotent"}
	for _, left := range policy.Lefts() {
		head = append(head, leftTitles[left])
	}
	return append(head, "reason")
}

func (r *MatrixRow) cells() []string {
	return append(append([]string{r.Class, r.phaseText(), r.Idempotent}, r.Acts...), r.Why)
}

// MatrixForms are the forms that Matrix writes.
var MatrixForms = []string{"table", "markdown", "json", "html"}

// Matrix writes the failure matrix of a revision in one of the forms.
func Matrix(w io.Writer, form, revision string, cells []policy.MatrixCell) error {
	switch form {
	case "json":
		return matrixJSON(w, revision, cells)
	case "markdown":
		return markdownTable(w, "Failure matrix of "+code(revision), matrixHead(), Rows(cells), matrixLegend)
	case "html":
		return matrixPage.Execute(w, struct {
			Revision string
			Head     []string
			Rows     [][]string
			Legend   string
		}{revision, matrixHead(), rowsOf(Rows(cells)), matrixLegend})
	default:
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		fmt.Fprintln(t, strings.ToUpper(strings.Join(matrixHead(), "\t")))
		for _, row := range rowsOf(Rows(cells)) {
			for i, c := range row {
				row[i] = printed(c)
			}
			fmt.Fprintln(t, strings.Join(row, "\t"))
		}
		if err := t.Flush(); err != nil {
			return err
		}
		_, err := fmt.Fprintf(w, "\n%s\n\n%s\n", matrixLegend, printed(revision))
		return err
	}
}

func rowsOf(rows []MatrixRow) [][]string {
	all := make([][]string, len(rows))
	for i := range rows {
		all[i] = rows[i].cells()
	}
	return all
}

type jsonCell struct {
	Class      string   `json:"class"`
	Phase      string   `json:"phase"`
	Idempotent bool     `json:"idempotent"`
	Left       string   `json:"left"`
	Actions    []string `json:"actions"`
	Reason     string   `json:"reason"`
	Rule       string   `json:"rule"`
}

func matrixJSON(w io.Writer, revision string, cells []policy.MatrixCell) error {
	all := make([]jsonCell, len(cells))
	for i, c := range cells {
		class := c.Class.String()
		if c.Class == failure.None {
			class = "none"
		}
		actions := make([]string, len(c.Actions))
		for j, a := range c.Actions {
			actions[j] = a.String()
		}
		all[i] = jsonCell{class, c.Phase.String(), c.Idempotent, c.Left.String(), actions, c.Reason, c.Rule}
	}
	return writeJSON(w, struct {
		Revision string     `json:"revision"`
		Cells    []jsonCell `json:"cells"`
	}{revision, all})
}

func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

func markdownTable(w io.Writer, title string, head []string, rows []MatrixRow, legend string) error {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n\n", title)
	line := func(cells []string) {
		for _, c := range cells {
			b.WriteString("| " + markdown(c) + " ")
		}
		b.WriteString("|\n")
	}
	line(head)
	line(slices.Repeat([]string{"---"}, len(head)))
	for _, row := range rowsOf(rows) {
		line(row)
	}
	fmt.Fprintf(&b, "\n%s\n", legend)
	_, err := io.WriteString(w, b.String())
	return err
}

var matrixPage = template.Must(template.New("matrix").Parse(`<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Failure matrix of {{.Revision}}</title>
<style>
body { font: 14px/1.4 system-ui, sans-serif; margin: 2em; }
table { border-collapse: collapse; }
th, td { border: 1px solid #ccc; padding: .3em .6em; text-align: left; vertical-align: top; }
th { background: #f4f4f4; position: sticky; top: 0; }
p { white-space: pre-line; color: #555; }
</style>
<h1>Failure matrix of <code>{{.Revision}}</code></h1>
<table>
<thead><tr>{{range .Head}}<th>{{.}}</th>{{end}}</tr></thead>
<tbody>
{{- range .Rows}}
<tr>{{range .}}<td>{{.}}</td>{{end}}</tr>
{{- end}}
</tbody>
</table>
<p>{{.Legend}}</p>
</html>
`))
