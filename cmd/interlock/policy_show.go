package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/interlock-gateway/interlock/gateway/policy"
	"github.com/interlock-gateway/interlock/gateway/policy/tool"
)

func newPolicyMatrix(f *policyFlags) *cobra.Command {
	form := "table"
	c := &cobra.Command{
		Use:   "matrix [BUNDLE]",
		Short: "Show what is done after which failure",
		Long: "Show the failure matrix: for each class of failure, phase and idempotency, and for what is left, which\n" +
			"acts are allowed and in which order. It is found by asking the rules, not by reading the table, for a\n" +
			"chat request that was sent, without an alias or labels.",
		Example: "  interlock policy matrix\n" +
			"  interlock policy matrix ours -o html > matrix.html",
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := allowedForm(form, tool.MatrixForms); err != nil {
				return err
			}
			r, err := f.load(c.Context(), argOr(args, builtinBundle))
			if err != nil {
				return err
			}
			cells, err := policy.Matrix(c.Context(), r)
			if err != nil {
				return err
			}
			return tool.Matrix(c.OutOrStdout(), form, r.ID(), cells)
		},
	}
	c.Flags().StringVarP(&form, "output", "o", form, strings.Join(tool.MatrixForms, ", "))
	return c
}

func allowedForm(form string, forms []string) error {
	if slices.Contains(forms, form) {
		return nil
	}
	return &exitError{status: 2, message: fmt.Sprintf("-o %q: allowed are %s", printable(form), strings.Join(forms, ", "))}
}

func newPolicyDiff(f *policyFlags) *cobra.Command {
	form := "text"
	c := &cobra.Command{
		Use:   "diff A B",
		Short: "Show each decision that differs between two bundles",
		Long: "Ask the rules of two bundles about the whole domain that they can tell apart, and show each decision\n" +
			"that differs, with what must be so for it. A is the old one, B the new one; each is a folder, a .tar.gz\n" +
			"or `builtin`. Points whose rules and tables are equal are not asked. The domain: every word, boolean\n" +
			"and count that the rules look at, every name that tables and rules know, and one that they do not; of\n" +
			"codes and statuses for which all tables say the same, one stands for all.\n\n" +
			"The exit status is 0 where nothing differs, 1 where something does, 2 on an error.",
		Example: "  interlock policy diff builtin ours\n" +
			"  interlock policy diff old.tar.gz new.tar.gz -o markdown",
		Args: cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			differs, err := f.diff(c, args[0], args[1], form)
			switch {
			case err != nil:
				return &exitError{status: 2, message: err.Error()}
			case differs:
				return &exitError{status: 1}
			}
			return nil
		},
	}
	c.Flags().StringVarP(&form, "output", "o", form, strings.Join(tool.DifferenceForms, ", "))
	return c
}

func (f *policyFlags) diff(c *cobra.Command, old, new, form string) (differs bool, err error) {
	if err := allowedForm(form, tool.DifferenceForms); err != nil {
		return false, err
	}
	a, err := f.load(c.Context(), old)
	if err != nil {
		return false, err
	}
	b, err := f.load(c.Context(), new)
	if err != nil {
		return false, err
	}
	d, err := policy.Diff(c.Context(), a, b)
	if err != nil {
		return false, err
	}
	return !tool.Nothing(d), tool.Difference(c.OutOrStdout(), form, a.ID(), b.ID(), d)
}

func printFaultsJSON(w io.Writer, faults policy.Errors) error {
	if faults == nil {
		faults = policy.Errors{}
	}
	return encodeIndented(w, struct {
		Faults policy.Errors `json:"faults"`
	}{faults})
}
