package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
)

// candidate is the candidate policy as the admin API prints it.
type candidate struct {
	State       string  `json:"state"`
	Path        *string `json:"path"`
	Percent     float64 `json:"percent"`
	Revision    *string `json:"revision"`
	Active      string  `json:"active"`
	LastError   *string `json:"last_error"`
	SwitchedOff bool    `json:"switched_off"`
	Promoted    *struct {
		Revision, Over, Who, Reason string
		At                          time.Time
	} `json:"promoted"`
	Comparison *struct {
		compared
		Dropped  int64               `json:"dropped"`
		ByPoint  map[string]compared `json:"by_point"`
		ByClass  map[string]compared `json:"by_class"`
		ByKey    map[string]compared `json:"by_key"`
		Examples []struct {
			RequestID string          `json:"request_id"`
			Point     string          `json:"point"`
			Class     string          `json:"class"`
			Key       string          `json:"key"`
			Active    json.RawMessage `json:"active"`
			Candidate json.RawMessage `json:"candidate"`
		} `json:"examples"`
	} `json:"comparison"`
}

type compared struct {
	Compared int64 `json:"compared"`
	Differ   int64 `json:"differ"`
}

// shownExamples is how many decisions that differ are printed; JSON has all that the gateway keeps.
const shownExamples = 5

// newCandidateCommands are the policy commands that speak to a running gateway.
func newCandidateCommands() []*cobra.Command {
	return []*cobra.Command{
		newPolicyCandidate(),
		newCandidateChange("promote", "Put the candidate of a running gateway in force",
			"Put the candidate in force, for requests that begin from now on, over restarts too. It is in force until\n"+
				"the configured bundles change or it is rolled back. No file of yours is written: the gateway keeps a copy\n"+
				"in its data_dir."),
		newCandidateChange("rollback", "Take a promoted candidate, or one that is tried, back",
			"Put the configured bundles in force again where the candidate was promoted; else end its trial. It is not\n"+
				"tried again until its content changes."),
	}
}

func newPolicyCandidate() *cobra.Command {
	var f adminFlags
	c := &cobra.Command{
		Use:   "candidate",
		Short: "Show the candidate of a running gateway, and which decisions it makes differently",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			a, err := f.client()
			if err != nil {
				return err
			}
			var seen candidate
			raw, err := a.get(c.Context(), adminPath("policy", "candidate"), &seen)
			if err != nil {
				return err
			}
			if f.json {
				return printJSON(c.OutOrStdout(), raw)
			}
			return seen.print(c.OutOrStdout())
		},
	}
	f.add(c)
	return c
}

func newCandidateChange(name, short, long string) *cobra.Command {
	var f adminFlags
	var reason string
	c := &cobra.Command{
		Use: name, Short: short, Long: long, Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			a, err := f.client()
			if err != nil {
				return err
			}
			body := struct {
				Reason string `json:"reason"`
			}{reason}
			var after candidate
			raw, err := a.do(c.Context(), http.MethodPost, adminPath("policy", name), body, &after)
			if err != nil {
				return err
			}
			if f.json {
				return printJSON(c.OutOrStdout(), raw)
			}
			_, err = fmt.Fprintf(c.OutOrStdout(), "%s is in force.\n", printable(after.Active))
			return err
		},
	}
	f.add(c)
	c.Flags().StringVar(&reason, "reason", "", "why; kept with the change")
	return c
}

func (s *candidate) print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	row := func(label, text string) { fmt.Fprintf(w, "%s\t%s\n", label, printable(text)) }
	state := s.State
	if s.State == "canary" {
		state += fmt.Sprintf(", for %g %% of the keys", s.Percent)
	}
	if s.SwitchedOff {
		state += ", switched off"
	}
	row("state", state)
	row("in force", s.Active)
	if s.Revision != nil {
		row("candidate", *s.Revision)
	}
	if s.LastError != nil {
		row("refused", *s.LastError)
	}
	if p := s.Promoted; p != nil {
		row("promoted", p.Revision+" at "+p.At.Format(time.RFC3339)+" by "+orDash(p.Who)+": "+orDash(p.Reason))
	}
	c := s.Comparison
	if c == nil {
		return w.Flush()
	}
	row("compared", fmt.Sprintf("%d decisions, %d differ, %d were too many at once", c.Compared, c.Differ, c.Dropped))
	fmt.Fprintln(w, "\nOF\tCOMPARED\tDIFFER")
	for _, by := range []struct {
		of     string
		counts map[string]compared
	}{{"point", c.ByPoint}, {"class", c.ByClass}, {"key", c.ByKey}} {
		for _, name := range slices.Sorted(maps.Keys(by.counts)) {
			if n := by.counts[name]; n.Differ > 0 {
				fmt.Fprintf(w, "%s %s\t%d\t%d\n", by.of, printable(name), n.Compared, n.Differ)
			}
		}
	}
	for i, e := range c.Examples {
		if i == shownExamples {
			break
		}
		fmt.Fprintf(w, "\n%s\t%s, %s, key %s\n", printable(e.RequestID), printable(e.Point), printable(e.Class), printable(e.Key))
		fmt.Fprintf(w, "  in force\t%s\n", printable(string(e.Active)))
		fmt.Fprintf(w, "  candidate\t%s\n", printable(string(e.Candidate)))
	}
	return w.Flush()
}
