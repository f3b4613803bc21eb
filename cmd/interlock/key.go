package main

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
)

func newKeyCommand() *cobra.Command {
	var f adminFlags
	c := &cobra.Command{
		Use:   "key",
		Short: "Make, list and delete callers' keys of a running gateway",
		Args:  cobra.NoArgs,
	}
	f.add(c)
	c.AddCommand(newKeyCreate(&f), newKeyList(&f), newKeyDelete(&f))
	return c
}

// newCallerKey is what the admin API takes to make a key.
type newCallerKey struct {
	Name    string            `json:"name"`
	Groups  []string          `json:"groups"`
	Models  []string          `json:"models,omitempty"`
	Budget  string            `json:"budget,omitempty"`
	Budgets []string          `json:"budgets,omitempty"`
	RPM     int               `json:"rpm,omitempty"`
	Labels  map[string]string `json:"labels,omitempty"`
}

func newKeyCreate(f *adminFlags) *cobra.Command {
	var k newCallerKey
	c := &cobra.Command{
		Use:   "create NAME --group GROUP [--group FALLBACK …]",
		Short: "Make a key; it is shown once",
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			a, err := f.client()
			if err != nil {
				return err
			}
			k.Name = args[0]
			var made struct {
				ID   string `json:"id"`
				Name string `json:"name"`
				Key  string `json:"key"`
			}
			raw, err := a.do(c.Context(), http.MethodPost, adminPath("keys"), k, &made)
			if err != nil {
				return err
			}
			if f.json {
				return printJSON(c.OutOrStdout(), raw)
			}
			fmt.Fprintf(c.OutOrStdout(), "Made %s, %s. The key, shown this once:\n\n  %s\n", printable(made.Name), printable(made.ID), printable(made.Key))
			return nil
		},
	}
	p := c.Flags()
	p.StringSliceVar(&k.Groups, "group", nil, "a group it may use, the primary one first; required, may be repeated")
	p.StringSliceVar(&k.Models, "model", nil, "a glob over the models it may ask for (default: every one); may be repeated")
	p.StringVar(&k.Budget, "budget", "", "its budget (default: interactive)")
	p.StringSliceVar(&k.Budgets, "may-name-budget", nil, "another budget that a caller may name; may be repeated")
	p.IntVar(&k.RPM, "rpm", 0, "requests in any 60 s; 0 is no limit")
	p.StringToStringVar(&k.Labels, "label", nil, "NAME=VALUE, a fact for policies; may be repeated")
	return c
}

func newKeyList(f *adminFlags) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the keys there are, without the keys themselves",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			a, err := f.client()
			if err != nil {
				return err
			}
			var answer struct {
				Keys []struct {
					ID      string   `json:"id"`
					Name    string   `json:"name"`
					Source  string   `json:"source"`
					Groups  []string `json:"groups"`
					Models  []string `json:"models"`
					Budget  string   `json:"budget"`
					RPM     *int     `json:"rpm"`
					InForce bool     `json:"in_force"`
				} `json:"keys"`
			}
			raw, err := a.get(c.Context(), adminPath("keys"), &answer)
			if err != nil {
				return err
			}
			if f.json {
				return printJSON(c.OutOrStdout(), raw)
			}
			w := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "NAME\tID\tSOURCE\tGROUPS\tMODELS\tBUDGET\tRPM\tIN FORCE")
			for _, k := range answer.Keys {
				rpm, inForce := "-", "yes"
				if k.RPM != nil {
					rpm = strconv.Itoa(*k.RPM)
				}
				if !k.InForce {
					inForce = "no"
				}
				fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", orDash(k.Name), orDash(k.ID), orDash(k.Source),
					orDash(strings.Join(k.Groups, ",")), orDash(strings.Join(k.Models, ",")), orDash(k.Budget), rpm, inForce)
			}
			return w.Flush()
		},
	}
}

func newKeyDelete(f *adminFlags) *cobra.Command {
	var reason string
	c := &cobra.Command{
		Use:   "delete ID",
		Short: "End a key that was made at run time",
		Long: "End a key that was made at run time. ID is the key's, as in key_…, not its name and not the key\n" +
			"itself: `interlock key create` and `interlock key list` show it. New requests with the key are\n" +
			"refused at once. A key of the configuration file has no ID: it is removed there.",
		Example: "  interlock key delete key_01JZ3V9K7QW8XK2M4N6P8R0S2T --reason \"laptop lost\"",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if args[0] == "" {
				return &exitError{status: 2, message: "the key's ID is required; `interlock key list` shows it"}
			}
			a, err := f.client()
			if err != nil {
				return err
			}
			body := struct {
				Reason string `json:"reason"`
			}{reason}
			var was struct {
				ID   string `json:"id"`
				Name string `json:"name"`
			}
			raw, err := a.do(c.Context(), http.MethodDelete, adminPath("keys", args[0]), body, &was)
			if err != nil {
				return err
			}
			if f.json {
				return printJSON(c.OutOrStdout(), raw)
			}
			fmt.Fprintf(c.OutOrStdout(), "Deleted %s, %s.\n", printable(was.Name), printable(was.ID))
			return nil
		},
	}
	c.Flags().StringVar(&reason, "reason", "", "why; kept with the change")
	return c
}
