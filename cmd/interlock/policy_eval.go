package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/interlock-gateway/interlock/gateway/policy"
)

const maxPolicyInput = 1 << 20

// policyEval are the flags of one evaluation.
type policyEval struct {
	ledgerFlags
	bundle, explain, request, point string
	attempt                         int
}

func newPolicyEval(f *policyFlags) *cobra.Command {
	var e policyEval
	c := &cobra.Command{
		Use:   "eval POINT [INPUT.json|-]",
		Short: "Decide on an input, or on a recorded one, and say why",
		Long: "Decide on an input at a point: admission, failure, substitution or replay. Fields that the point has\n" +
			"and the input leaves out are unknown, false, 0 or empty, as in the admin API's evaluate.\n\n" +
			"With --from-ledger the inputs are those of a request's recorded decisions; what was decided then is\n" +
			"shown beside what the bundle decides now. The ledger is a running gateway's (--admin), or the storage\n" +
			"itself (--db).\n\n" +
			"--explain prints the rules that gave something, in the order in which they were done; --explain=full\n" +
			"prints every expression that was looked at.",
		Example: "  echo '{\"failure\": {\"class\": \"network\"}, \"request\": {\"idempotent\": true}}' | interlock policy eval replay - --explain\n" +
			"  interlock policy eval failure input.json --bundle ours\n" +
			"  interlock policy eval --from-ledger req_01KB9Z7Y00G000000000000000 --attempt 1 --point replay --explain",
		Args: cobra.MaximumNArgs(2),
		RunE: func(c *cobra.Command, args []string) error { return e.do(c, f, args) },
	}
	p := c.Flags()
	p.StringVar(&e.bundle, "bundle", builtinBundle, "the bundle that decides: a folder, a .tar.gz or builtin")
	p.StringVar(&e.explain, "explain", "", "say which rules fired: rules or full")
	p.Lookup("explain").NoOptDefVal = "rules"
	p.StringVar(&e.request, "from-ledger", "", "the request whose recorded inputs are decided on")
	p.IntVar(&e.attempt, "attempt", -1, "with --from-ledger: only decisions about this attempt; 0: before the first")
	p.StringVar(&e.point, "point", "", "with --from-ledger: only decisions of this point")
	e.admin.add(c)
	p.StringVar(&e.db, "db", "", "with --from-ledger: read the storage itself: sqlite:PATH")
	return c
}

func (e *policyEval) do(c *cobra.Command, f *policyFlags, args []string) error {
	if e.explain != "" && e.explain != "rules" && e.explain != "full" {
		return &exitError{status: 2, message: fmt.Sprintf("--explain=%s: allowed are rules and full", printable(e.explain))}
	}
	if e.request != "" {
		if len(args) > 0 {
			return &exitError{status: 2, message: "a point and an input, or --from-ledger, not both"}
		}
		return e.fromLedger(c, f)
	}
	if len(args) != 2 {
		return &exitError{status: 2, message: "a point and an input are required, or --from-ledger"}
	}
	if e.attempt >= 0 || e.point != "" || e.db != "" {
		return &exitError{status: 2, message: "--attempt, --point and --db are for --from-ledger"}
	}
	point, err := parsePoint(args[0])
	if err != nil {
		return err
	}
	input, err := readInput(c.InOrStdin(), args[1])
	if err != nil {
		return err
	}
	r, err := f.load(c.Context(), e.bundle)
	if err != nil {
		return err
	}
	d, err := e.decide(c, r, point, input)
	if err != nil {
		return err
	}
	if e.admin.json {
		return encodeIndented(c.OutOrStdout(), d)
	}
	return d.print(c.OutOrStdout())
}

func parsePoint(name string) (policy.Point, error) {
	p, ok := policy.ParsePoint(name)
	if !ok {
		var names []string
		for _, p := range policy.Points() {
			names = append(names, p.String())
		}
		return 0, &exitError{status: 2, message: fmt.Sprintf("%q is no decision point: allowed are %s", printable(name), strings.Join(names, ", "))}
	}
	return p, nil
}

func readInput(stdin io.Reader, name string) ([]byte, error) {
	if name != "-" {
		return readBounded(name, maxPolicyInput)
	}
	b, err := io.ReadAll(io.LimitReader(stdin, maxPolicyInput+1))
	if err == nil && len(b) > maxPolicyInput {
		err = fmt.Errorf("the input is larger than %s", bytesText(maxPolicyInput))
	}
	return b, err
}

// decided is one decision, with why.
type decided struct {
	Revision string          `json:"revision"`
	Point    string          `json:"point"`
	Attempt  *int            `json:"attempt,omitempty"`
	Output   json.RawMessage `json:"output,omitempty"`
	Failed   string          `json:"failed,omitempty"` // why there is none
	Fired    []policy.Fired  `json:"fired,omitempty"`
	Then     *then           `json:"recorded,omitempty"`
	trace    string
}

// then is what was decided when it was recorded.
type then struct {
	Revision string          `json:"revision"`
	Output   json.RawMessage `json:"output"`
	Same     bool            `json:"same"` // the gateway would do the same now
}

// decide decides. A decision that cannot be made is a result: the gateway fails closed then.
func (e *policyEval) decide(c *cobra.Command, r *policy.Revision, point policy.Point, input []byte) (*decided, error) {
	d := &decided{Revision: r.ID(), Point: point.String()}
	var err error
	if e.explain == "" {
		d.Output, err = r.Evaluate(c.Context(), point, input)
	} else {
		var trace bytes.Buffer
		var to io.Writer
		if e.explain == "full" {
			to = &trace
		}
		d.Output, d.Fired, err = r.Explain(c.Context(), point, input, to)
		d.trace = trace.String()
	}
	var failed *policy.DecisionError
	if errors.As(err, &failed) {
		d.Failed = failed.Error()
		return d, nil
	}
	return d, err
}

func (d *decided) print(w io.Writer) error {
	var b bytes.Buffer
	if d.Then != nil {
		fmt.Fprintf(&b, "%s", d.Point)
		if d.Attempt != nil {
			fmt.Fprintf(&b, ", attempt %d", *d.Attempt)
		}
		fmt.Fprintf(&b, "\n  then %s  by %s\n  now  %s  by %s\n", compactText(d.Then.Output), printable(d.Then.Revision), d.now(), d.Revision)
	} else if d.Failed == "" {
		if err := printJSON(&b, d.Output); err != nil {
			return err
		}
	} else {
		fmt.Fprintln(&b, d.now())
	}
	if len(d.Fired) > 0 {
		b.WriteString("\nrules that gave something:\n")
		for _, f := range d.Fired {
			fmt.Fprintf(&b, "  %s:%d: %s = %s\n", f.File, f.Line, f.Rule, firedText(f.Value))
		}
	}
	if d.trace != "" {
		b.WriteString("\n" + d.trace)
	}
	_, err := w.Write(b.Bytes())
	return err
}

func (d *decided) now() string {
	if d.Failed != "" {
		return "no decision, so it fails closed: " + printable(d.Failed)
	}
	return compactText(d.Output)
}

func firedText(v json.RawMessage) string {
	const most = 200
	s := printable(string(v))
	switch {
	case s == "":
		return "?"
	case len(s) > most:
		return strings.ToValidUTF8(s[:most], "") + "…"
	}
	return s
}

func compactText(v json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, v) != nil {
		return "?"
	}
	return printable(b.String())
}

// fromLedger decides again what was recorded for one request.
func (e *policyEval) fromLedger(c *cobra.Command, f *policyFlags) error {
	if e.point != "" {
		if _, err := parsePoint(e.point); err != nil {
			return err
		}
	}
	var raw []byte
	err := e.with(c, func(from evidence) (err error) {
		raw, err = from.show(c.Context(), e.request, false)
		return err
	})
	if err != nil {
		return err
	}
	decisions, err := decisionsOf(raw)
	if err != nil {
		return err
	}
	r, err := f.load(c.Context(), e.bundle)
	if err != nil {
		return err
	}
	all := []*decided{}
	for _, d := range decisions {
		about := 0
		if d.Attempt != nil {
			about = *d.Attempt
		}
		if e.attempt >= 0 && e.attempt != about || e.point != "" && e.point != d.Point {
			continue
		}
		point, ok := policy.ParsePoint(d.Point)
		if !ok { // a guard's: no policy decided it
			continue
		}
		if isNothing(d.Input) {
			return fmt.Errorf("the input of a %s decision is no longer kept", printable(d.Point))
		}
		now, err := e.decide(c, r, point, d.Input)
		if err != nil {
			return err
		}
		now.Attempt = d.Attempt
		now.Then = &then{Revision: d.Revision, Output: d.Output}
		was, err1 := policy.VerdictOf(point, d.Output)
		is, err2 := policy.VerdictOf(point, now.Output)
		now.Then.Same = errors.Join(err1, err2) == nil && was.Does == is.Does
		all = append(all, now)
	}
	if len(all) == 0 {
		return fmt.Errorf("the ledger has no such decision of request %q", printable(e.request))
	}
	if e.admin.json {
		return encodeIndented(c.OutOrStdout(), struct {
			Decisions []*decided `json:"decisions"`
		}{all})
	}
	for i, d := range all {
		if i > 0 {
			fmt.Fprintln(c.OutOrStdout())
		}
		if err := d.print(c.OutOrStdout()); err != nil {
			return err
		}
	}
	return nil
}

func encodeIndented(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// outputForm reads -o of a command that has text and json.
func outputForm(form string) (asJSON bool, err error) {
	if forms := []string{"text", "json"}; !slices.Contains(forms, form) {
		return false, allowedForm(form, forms)
	}
	return form == "json", nil
}
