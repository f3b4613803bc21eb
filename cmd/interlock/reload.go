package main

import (
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/spf13/cobra"
)

// reloaded is the admin API's answer to a reload.
type reloaded struct {
	Generation     uint64 `json:"generation"`
	RefusedPlugins []struct {
		Name  string `json:"name"`
		Error string `json:"error"`
		Kept  *struct {
			Version string `json:"version"`
			SHA256  string `json:"sha256"`
		} `json:"kept"`
		Channels []string `json:"channels"`
		Guards   []string `json:"guards"`
	} `json:"refused_plugins"`
}

func newReloadCommand() *cobra.Command {
	var f adminFlags
	c := &cobra.Command{
		Use:   "reload",
		Short: "Have a running gateway read its configuration again",
		Long: "Have a running gateway build a generation from its configuration as it is now, and use it. Requests\n" +
			"that run finish on the one before. With any fault in the configuration the one before stays. The\n" +
			"exit status is 1 then, and when a plugin is refused: that does not hold up the rest.",
		Example: "  interlock reload --admin http://127.0.0.1:8081",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			a, err := f.client()
			if err != nil {
				return err
			}
			var r reloaded
			raw, err := a.do(c.Context(), http.MethodPost, adminPath("reload"), nil, &r)
			if err != nil {
				return err
			}
			if f.json {
				err = printJSON(c.OutOrStdout(), raw)
			} else {
				r.print(c.OutOrStdout())
			}
			if err == nil && len(r.RefusedPlugins) > 0 {
				return &exitError{status: 1}
			}
			return err
		},
	}
	f.add(c)
	return c
}

func (r *reloaded) print(w io.Writer) {
	fmt.Fprintf(w, "Generation %d is in force.\n", r.Generation)
	for _, p := range r.RefusedPlugins {
		fmt.Fprintf(w, "\nThe plugin %s is refused: %s\n", printable(p.Name), strings.Join(printableLines(p.Error), "\n  "))
		if p.Kept != nil {
			fmt.Fprintf(w, "  The one before stays: version %s, sha256 %s\n", printable(p.Kept.Version), printable(p.Kept.SHA256))
		} else {
			fmt.Fprintln(w, "  There is none before: what uses it does not work.")
		}
		for _, list := range []struct {
			what  string
			names []string
		}{{"channels", p.Channels}, {"guards of", p.Guards}} {
			if len(list.names) > 0 {
				fmt.Fprintf(w, "  %s: %s\n", list.what, printable(strings.Join(list.names, ", ")))
			}
		}
	}
}
