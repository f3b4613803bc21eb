package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/interlock-gateway/interlock/gateway/policy"
	"github.com/interlock-gateway/interlock/gateway/policy/tool"
)

func newPolicyCheck(f *policyFlags) *cobra.Command {
	var fix, asJSON bool
	c := &cobra.Command{
		Use:   "check [DIR]",
		Short: "List everything that a gateway would refuse a bundle for",
		Long: "Check a bundle, and list everything that is wrong with it, each with file, line, column and what is\n" +
			"allowed: Rego and data that do not parse, the strict compiler's errors, functions that bundles may not\n" +
			"call, input fields that do not exist or are another point's, words that a field never is, tables that\n" +
			"are missing or of another shape, missing decisions, and the decisions on the whole failure matrix and\n" +
			"the other points' domains. Tests must compile, and Rego must be formatted as OPA does; --fix does that.\n\n" +
			"The exit status is 0 where nothing is wrong, 1 where something is, 2 where it cannot be read.",
		Example: "  interlock policy check ours\n" +
			"  interlock policy check ours --fix\n" +
			"  interlock policy check team --beside platform.tar.gz",
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			dir := argOr(args, ".")
			faults, err := policy.Check(c.Context(), f.sources(dir), policy.Options{Grants: f.grants})
			if err != nil {
				return &exitError{status: 2, message: err.Error()}
			}
			if isFolder(dir) {
				more, fixed, err := tool.Format(c.Context(), dir, fix)
				if err != nil {
					return &exitError{status: 2, message: err.Error()}
				}
				for _, path := range fixed {
					fmt.Fprintln(c.ErrOrStderr(), "formatted "+path)
				}
				faults = append(faults, more...)
			}
			if asJSON {
				if err := printFaultsJSON(c.OutOrStdout(), faults); err != nil {
					return err
				}
			} else {
				printFaults(c.OutOrStdout(), faults)
			}
			if len(faults) > 0 {
				return &exitError{status: 1, message: fmt.Sprintf("%s: %s", dir, plural(len(faults), "fault"))}
			}
			if !asJSON {
				fmt.Fprintln(c.OutOrStdout(), dir+": valid")
			}
			return nil
		},
	}
	c.Flags().BoolVar(&fix, "fix", false, "rewrite Rego files that are not formatted")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// policyTest are the flags of one run of tests.
type policyTest struct {
	coverage, verbose bool
	threshold         float64
	junit, run        string
}

func newPolicyTest(f *policyFlags) *cobra.Command {
	var t policyTest
	c := &cobra.Command{
		Use:   "test [DIR]",
		Short: "Run a bundle's Rego tests",
		Long: "Run the tests of a bundle: the rules whose names begin with test_ in its files that end in _test.rego,\n" +
			"with what the bundle leaves open taken from the default bundle, as in the gateway. A test whose name\n" +
			"begins with todo_test_ is left out.\n\n" +
			"The exit status is 0 where all passed, 1 where one failed, none was there or too little was covered,\n" +
			"2 where they cannot be run.",
		Example: "  interlock policy test ours\n" +
			"  interlock policy test ours -v --run checkout\n" +
			"  interlock policy test ours --coverage --threshold 90 --junit report.xml",
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if c.Flags().Changed("threshold") {
				t.coverage = true
			}
			return t.do(c, f, argOr(args, "."))
		},
	}
	c.Flags().BoolVar(&t.coverage, "coverage", false, "say which lines of the bundle's own rules no test reached")
	c.Flags().Float64Var(&t.threshold, "threshold", 0, "fail where less than so many percent of the lines are covered; sets --coverage")
	c.Flags().StringVar(&t.junit, "junit", "", "write the results as JUnit XML to this file")
	c.Flags().StringVar(&t.run, "run", "", "only tests whose package.name matches this regular expression")
	c.Flags().BoolVarP(&t.verbose, "verbose", "v", false, "show each test, and what it printed")
	return c
}

func (t *policyTest) do(c *cobra.Command, f *policyFlags, dir string) error {
	if t.threshold < 0 || t.threshold > 100 {
		return &exitError{status: 2, message: "--threshold: allowed is a number from 0 to 100"}
	}
	if _, err := regexp.Compile(t.run); err != nil {
		return &exitError{status: 2, message: "--run: " + err.Error()}
	}
	r, err := policy.Rehearse(c.Context(), f.sources(dir), policy.RehearseOptions{Run: t.run, Coverage: t.coverage, Grants: f.grants})
	if err != nil {
		return &exitError{status: 2, message: err.Error()}
	}
	if t.junit != "" {
		if err := writeFile(t.junit, func(w io.Writer) error { return tool.JUnit(w, r) }); err != nil {
			return &exitError{status: 2, message: err.Error()}
		}
	}
	t.print(c.OutOrStdout(), r)
	passed, failed, skipped := r.Passed()
	switch {
	case failed > 0:
		return &exitError{status: 1, message: fmt.Sprintf("%d of %s failed", failed, plural(passed+failed, "test"))}
	case passed+skipped == 0:
		return &exitError{status: 1, message: dir + ": no test was run"}
	case t.coverage && r.Percent < t.threshold:
		return &exitError{status: 1, message: fmt.Sprintf("%.1f %% of the lines are covered, and %g %% are wanted", r.Percent, t.threshold)}
	}
	return nil
}

func (t *policyTest) print(w io.Writer, r *policy.Rehearsal) {
	for i := range r.Tests {
		one := &r.Tests[i]
		result := "ok"
		switch {
		case one.Skipped:
			result = "skipped"
		case one.Failed():
			result = "FAIL"
		}
		if one.Failed() || t.verbose {
			fmt.Fprintf(w, "%-7s  %s.%s\n", result, one.Package, one.Name)
			if one.Failed() {
				fmt.Fprintf(w, "         %s:%d: %s\n", one.File, one.Line, strings.ReplaceAll(one.Wrong, "\n", "\n         "))
			}
			for _, line := range strings.Split(strings.TrimRight(one.Output, "\n"), "\n") {
				if line != "" {
					fmt.Fprintf(w, "         %s\n", printable(line))
				}
			}
		}
	}
	passed, failed, skipped := r.Passed()
	fmt.Fprintf(w, "%d passed, %d failed, %d skipped\n", passed, failed, skipped)
	if !t.coverage {
		return
	}
	for _, file := range r.Coverage {
		fmt.Fprintf(w, "%5.1f %%  %s%s\n", file.Percent, file.File, missedText(file.Missed))
	}
	if len(r.Coverage) == 0 {
		fmt.Fprintln(w, "the bundle has no rules of its own to cover")
		return
	}
	fmt.Fprintf(w, "%5.1f %%  of all lines\n", r.Percent)
}

func missedText(missed []policy.Lines) string {
	if len(missed) == 0 {
		return ""
	}
	var lines []string
	for _, m := range missed {
		s := fmt.Sprint(m.From)
		if m.To > m.From {
			s += fmt.Sprintf("-%d", m.To)
		}
		lines = append(lines, s)
	}
	return ", not line " + strings.Join(lines, ", ")
}

// writeFile writes a file, and leaves nothing of one that could not be written whole.
func writeFile(path string, write func(io.Writer) error) error {
	out, err := os.Create(path) // #nosec G304 -- the user names it
	if err != nil {
		return err
	}
	if err := errors.Join(write(out), out.Close()); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return nil
}
