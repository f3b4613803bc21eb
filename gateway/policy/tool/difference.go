package tool

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/interlock-gateway/interlock/gateway/policy"
)

// DifferenceForms are the forms that Difference writes.
var DifferenceForms = []string{"text", "json", "markdown"}

// Difference writes what differs between two revisions in one of the forms.
func Difference(w io.Writer, form, a, b string, d *policy.Difference) error {
	switch form {
	case "json":
		return differenceJSON(w, a, b, d)
	case "markdown":
		return differenceMarkdown(w, a, b, d)
	default:
		return differenceText(w, a, b, d)
	}
}

// Nothing reports whether nothing differs.
func Nothing(d *policy.Difference) bool { return len(d.Changes)+len(d.Kinds) == 0 }

// counted counts the changes of what the gateway does, the kinds of request included, and of
// what only the record says.
func counted(d *policy.Difference) (decisions, records int) {
	for _, c := range d.Changes {
		if c.Same {
			records++
		} else {
			decisions++
		}
	}
	return decisions + len(d.Kinds), records
}

func differenceText(w io.Writer, a, b string, d *policy.Difference) error {
	var out strings.Builder
	fmt.Fprintf(&out, "--- %s\n+++ %s\n", printed(a), printed(b))
	for _, k := range d.Kinds {
		fmt.Fprintf(&out, "\nkinds  %s\n  - %s\n  + %s\n", printed(k.Kind), k.Old, k.New)
	}
	for _, c := range d.Changes {
		if c.Same {
			continue
		}
		fmt.Fprintf(&out, "\n%s  %s\n  - %s\n  + %s\n    %s\n    in %s\n", c.Point, printed(whenText(c.When)), printed(c.Old.Does),
			printed(c.New.Does), whyText(c.Old, c.New), plural(c.Situations, "situation"))
	}
	for _, r := range rewordings(d) {
		fmt.Fprintf(&out, "\n%s\n    in %s\n", r.text, plural(r.situations, "situation"))
	}
	out.WriteString("\n")
	if decisions, records := counted(d); Nothing(d) {
		out.WriteString("No decision differs.\n")
	} else {
		fmt.Fprintf(&out, "%s; %s of the reason or rule only.\n", plural(decisions, "changed decision"), plural(records, "change"))
	}
	for _, p := range d.Points {
		out.WriteString(coverageText(p) + "\n")
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// rewording is decisions of a point that only have another reason or rule.
type rewording struct {
	text       string
	situations int
}

// rewordings gathers what only the record sees, whatever is decided.
func rewordings(d *policy.Difference) []rewording {
	var all []rewording
	for _, c := range d.Changes {
		if !c.Same {
			continue
		}
		text := fmt.Sprintf("%s  the same decisions\n    %s", c.Point, whyText(c.Old, c.New))
		i := slices.IndexFunc(all, func(r rewording) bool { return r.text == text })
		if i < 0 {
			i = len(all)
			all = append(all, rewording{text: text})
		}
		all[i].situations += c.Situations
	}
	return all
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func coverageText(p policy.Coverage) string {
	if p.Equal {
		return fmt.Sprintf("%s: the same rules and tables", p.Point)
	}
	s := fmt.Sprintf("%s: %s asked of both", p.Point, plural(p.Inputs, "input"))
	if len(p.Apart) > 0 {
		s += "; one at a time, since all together are too many: " + strings.Join(p.Apart, ", ")
	}
	return s
}

// whenText says what must be so.
func whenText(when []policy.Fact) string {
	if len(when) == 0 {
		return "always"
	}
	facts := make([]string, len(when))
	for i, f := range when {
		values := make([]string, len(f.Values))
		for j, v := range f.Values {
			values[j] = bare(v)
		}
		facts[i] = f.Name + " = " + strings.Join(values, "|")
	}
	return strings.Join(facts, ", ")
}

// bare shows a JSON string without quotes, where that cannot be taken for something else.
func bare(v json.RawMessage) string {
	var s string
	if json.Unmarshal(v, &s) == nil && s != "" && !strings.ContainsAny(s, " ,|=\"\\") && printed(s) == s {
		return s
	}
	return string(v)
}

func whyText(a, b policy.Verdict) string {
	pair := func(x, y string) string {
		if x == y {
			return printed(x)
		}
		return printed(x) + " → " + printed(y)
	}
	why := pair(a.Reason, b.Reason)
	if a.Rule != "" || b.Rule != "" {
		why += " by " + pair(a.Rule, b.Rule)
	}
	return why
}

type jsonChange struct {
	Point      string                       `json:"point"`
	Kind       string                       `json:"kind"` // decision or record
	When       map[string][]json.RawMessage `json:"when"`
	Old        policy.Verdict               `json:"old"`
	New        policy.Verdict               `json:"new"`
	Situations int                          `json:"situations"`
	Example    json.RawMessage              `json:"example"`
}

type jsonKind struct {
	Kind string `json:"kind"`
	Old  string `json:"old"`
	New  string `json:"new"`
}

type jsonCoverage struct {
	Point  string   `json:"point"`
	Equal  bool     `json:"equal"`
	Inputs int      `json:"inputs"`
	Fields []string `json:"fields"`
	Apart  []string `json:"apart"`
}

func differenceJSON(w io.Writer, a, b string, d *policy.Difference) error {
	changes, points, kinds := []jsonChange{}, []jsonCoverage{}, []jsonKind{}
	for _, k := range d.Kinds {
		kinds = append(kinds, jsonKind(k))
	}
	for _, c := range d.Changes {
		kind := "decision"
		if c.Same {
			kind = "record"
		}
		when := map[string][]json.RawMessage{}
		for _, f := range c.When {
			when[f.Name] = f.Values
		}
		changes = append(changes, jsonChange{c.Point.String(), kind, when, c.Old, c.New, c.Situations, c.Example})
	}
	for _, p := range d.Points {
		points = append(points, jsonCoverage{p.Point.String(), p.Equal, p.Inputs, p.Fields, p.Apart})
	}
	return writeJSON(w, struct {
		Old     string         `json:"old"`
		New     string         `json:"new"`
		Changes []jsonChange   `json:"changes"`
		Kinds   []jsonKind     `json:"kinds"`
		Points  []jsonCoverage `json:"points"`
	}{a, b, changes, kinds, points})
}

func differenceMarkdown(w io.Writer, a, b string, d *policy.Difference) error {
	var out strings.Builder
	fmt.Fprintf(&out, "# %s → %s\n\n", code(a), code(b))
	if Nothing(d) {
		out.WriteString("No decision differs.\n")
	} else {
		out.WriteString("| point | when | old | new | reason and rule | situations |\n| --- | --- | --- | --- | --- | --- |\n")
		for _, k := range d.Kinds {
			fmt.Fprintf(&out, "| kinds | %s | %s | %s | | |\n", markdown(k.Kind), k.Old, k.New)
		}
		for _, c := range d.Changes {
			new := c.New.Does
			if c.Same {
				new = "(the same)"
			}
			fmt.Fprintf(&out, "| %s | %s | %s | %s | %s | %d |\n", c.Point, markdown(whenText(c.When)), markdown(c.Old.Does), markdown(new), markdown(whyText(c.Old, c.New)), c.Situations)
		}
	}
	out.WriteString("\n")
	for _, p := range d.Points {
		out.WriteString("- " + markdown(coverageText(p)) + "\n")
	}
	_, err := io.WriteString(w, out.String())
	return err
}
