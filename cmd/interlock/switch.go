package main

import (
	"fmt"
	"net/http"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
)

const switchKinds = `KIND/NAME is channel/GROUP/NAME, group/NAME, provider/NAME, account/NAME, model/NAME, alias/NAME,
action/ACT, alias-action/ALIAS/ACT or policy/candidate, where ACT is same_route_retry,
same_contract_fallback or model_substitution.`

// killSwitch is a switch as the admin API prints it.
type killSwitch struct {
	Kind   string     `json:"kind"`
	Name   string     `json:"name"`
	Reason string     `json:"reason"`
	Until  *time.Time `json:"until"`
	Who    string     `json:"who"`
	At     time.Time  `json:"at"`
}

func (s *killSwitch) end() string {
	if s.Until == nil {
		return "until it is cleared"
	}
	return "until " + s.Until.Format(time.RFC3339)
}

func newSwitchCommand() *cobra.Command {
	var f adminFlags
	c := &cobra.Command{
		Use:   "switch",
		Short: "Kill and restore channels, models and acts of a running gateway",
		Long:  "Kill and restore what a running gateway may use.\n\n" + switchKinds,
		Args:  cobra.NoArgs,
	}
	f.add(c)
	c.AddCommand(newSwitchList(&f), newSwitchSet(&f), newSwitchClear(&f))
	return c
}

func newSwitchList(f *adminFlags) *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the switches in force",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			a, err := f.client()
			if err != nil {
				return err
			}
			var answer struct {
				Switches []killSwitch `json:"switches"`
			}
			raw, err := a.get(c.Context(), adminPath("switches"), &answer)
			if err != nil {
				return err
			}
			if f.json {
				return printJSON(c.OutOrStdout(), raw)
			}
			if len(answer.Switches) == 0 {
				fmt.Fprintln(c.OutOrStdout(), "No switch is set.")
				return nil
			}
			w := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "SWITCHED OFF\tSINCE\tUNTIL\tBY\tREASON")
			for _, s := range answer.Switches {
				until := "-"
				if s.Until != nil {
					until = s.Until.Format(time.RFC3339)
				}
				fmt.Fprintf(w, "%s/%s\t%s\t%s\t%s\t%s\n", printable(s.Kind), printable(s.Name), s.At.Format(time.RFC3339), until, orDash(s.Who), orDash(s.Reason))
			}
			return w.Flush()
		},
	}
}

func newSwitchSet(f *adminFlags) *cobra.Command {
	var reason, until string
	c := &cobra.Command{
		Use:   "set KIND/NAME --reason TEXT [--until TIME]",
		Short: "Switch something off",
		Long:  "Switch something off, within a second on every replica.\n\n" + switchKinds,
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			path, err := switchPath(args[0])
			if err != nil {
				return err
			}
			if reason == "" {
				return &exitError{status: 2, message: "--reason is required: it is kept with the change"}
			}
			body := struct {
				Reason string     `json:"reason"`
				Until  *time.Time `json:"until"`
			}{Reason: reason}
			if until != "" {
				t, err := parseMoment(until, time.Now(), 1)
				if err != nil {
					return &exitError{status: 2, message: "--until: " + err.Error()}
				}
				body.Until = &t
			}
			a, err := f.client()
			if err != nil {
				return err
			}
			var s killSwitch
			raw, err := a.do(c.Context(), http.MethodPut, path, body, &s)
			if err != nil {
				return err
			}
			if f.json {
				return printJSON(c.OutOrStdout(), raw)
			}
			fmt.Fprintf(c.OutOrStdout(), "%s/%s is switched off, %s.\n", printable(s.Kind), printable(s.Name), s.end())
			return nil
		},
	}
	c.Flags().StringVar(&reason, "reason", "", "why; required")
	c.Flags().StringVar(&until, "until", "", "when it ends by itself: a time such as 2026-11-30T12:00:00Z, or a duration from now such as 2h")
	return c
}

func newSwitchClear(f *adminFlags) *cobra.Command {
	var reason string
	c := &cobra.Command{
		Use:   "clear KIND/NAME",
		Short: "Restore what was switched off",
		Long:  "Restore what was switched off.\n\n" + switchKinds,
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			path, err := switchPath(args[0])
			if err != nil {
				return err
			}
			a, err := f.client()
			if err != nil {
				return err
			}
			body := struct {
				Reason string `json:"reason"`
			}{reason}
			var s killSwitch
			raw, err := a.do(c.Context(), http.MethodDelete, path, body, &s)
			if err != nil {
				return err
			}
			if f.json {
				return printJSON(c.OutOrStdout(), raw)
			}
			fmt.Fprintf(c.OutOrStdout(), "%s/%s is restored.\n", printable(s.Kind), printable(s.Name))
			return nil
		},
	}
	c.Flags().StringVar(&reason, "reason", "", "why; kept with the change")
	return c
}

// switchPath is the admin API's path of a switch. A name may hold slashes: a model's does.
func switchPath(of string) (string, error) {
	kind, name, ok := strings.Cut(of, "/")
	if !ok || kind == "" || name == "" {
		return "", &exitError{status: 2, message: fmt.Sprintf("%q is no switch: %s", of, switchKinds)}
	}
	return adminPath("switches", kind, name), nil
}

// parseMoment reads a time, a day, or a duration from now: forwards with sign 1, back with -1.
func parseMoment(s string, now time.Time, sign int) (time.Time, error) {
	if t, err := time.Parse(time.RFC3339Nano, s); err == nil {
		return t, nil
	}
	if t, err := time.Parse(time.DateOnly, s); err == nil {
		return t, nil
	}
	if d, err := time.ParseDuration(s); err == nil && d >= 0 {
		return now.Add(time.Duration(sign) * d), nil
	}
	return time.Time{}, fmt.Errorf("%q: allowed are a time such as 2026-11-30T12:00:00Z, a day such as 2026-11-30, or a duration such as 90m", s)
}
