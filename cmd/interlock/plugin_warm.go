package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/interlock-gateway/interlock/gateway/config"
	"github.com/interlock-gateway/interlock/gateway/server"
	"github.com/interlock-gateway/interlock/gateway/telemetry"
)

func newPluginWarm() *cobra.Command {
	var path string
	var asJSON bool
	c := &cobra.Command{
		Use:   "warm",
		Short: "Compile the plugins that a configuration names, before a gateway needs them",
		Long: "Compile every plugin that the configuration names into the cache in its data_dir, where a gateway\n" +
			"finds the code at its start, and try each. Secrets and the plugins' own configuration are not\n" +
			"needed: it can run while an image is built. The exit status is 1 when one plugin fails.",
		Example: "  interlock plugin warm --config /etc/interlock/interlock.yaml",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			path := configPath(path)
			if path == "" {
				return errors.New("no configuration file: name one with --config")
			}
			return warm(c.Context(), path, asJSON, c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	c.Flags().StringVar(&path, "config", "", "configuration file (default: $"+configVariable+", else "+config.DefaultFile+")")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func warm(ctx context.Context, path string, asJSON bool, stdout, stderr io.Writer) error {
	r := config.Load(path, config.Env{})
	if faults := faultsOfPlugins(r); len(faults) > 0 {
		printProblems(stderr, "error", faults)
		return &exitError{status: 1}
	}
	log, err := telemetry.NewLog(telemetry.LogOptions{Output: stderr})
	if err != nil {
		return err
	}
	defer log.Close() //nolint:errcheck // what it had to say is on the standard error
	list, err := server.Warm(ctx, r.Found, log)
	if err != nil {
		return err
	}
	if asJSON {
		err = printWarmedJSON(stdout, list)
	} else {
		err = printWarmed(stdout, list)
	}
	if err != nil {
		return err
	}
	for _, w := range list {
		if w.Err != nil {
			return &exitError{status: 1}
		}
	}
	return nil
}

// faultsOfPlugins are the faults of a file that stand in the way of its plugins. A secret that
// is not there yet is none.
func faultsOfPlugins(r *config.Result) (list []config.Problem) {
	for _, p := range r.Errors {
		inside := strings.HasPrefix(p.Key, "plugins") || strings.HasPrefix(p.Key, "data_dir")
		if r.Found == nil || inside && !strings.Contains(p.Key, "].config") {
			list = append(list, p)
		}
	}
	return list
}

func warmedStatus(w *server.Warmed) string {
	switch {
	case w.Err != nil:
		return "failed"
	case w.WasThere:
		return "already there"
	}
	return "compiled"
}

func printWarmed(w io.Writer, list []server.Warmed) error {
	if len(list) == 0 {
		fmt.Fprintln(w, "The configuration names no plugins.")
		return nil
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "PLUGIN\tVERSION\tRESULT\tSHA256")
	for i := range list {
		x := &list[i]
		result := warmedStatus(x)
		if x.Err != nil {
			result += ": " + x.Err.Error()
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", orDash(x.Name), orDash(x.Version), printable(result), orDash(x.SHA256))
	}
	return t.Flush()
}

func printWarmedJSON(w io.Writer, list []server.Warmed) error {
	type row struct {
		Name    string `json:"name"`
		Source  string `json:"source"`
		SHA256  string `json:"sha256"`
		Version string `json:"version"`
		Result  string `json:"result"` // compiled, already there, failed
		Error   string `json:"error,omitempty"`
	}
	rows := []row{}
	for i := range list {
		x := &list[i]
		r := row{x.Name, x.Source, x.SHA256, x.Version, warmedStatus(x), ""}
		if x.Err != nil {
			r.Error = x.Err.Error()
		}
		rows = append(rows, r)
	}
	text, err := json.Marshal(map[string]any{"plugins": rows})
	if err != nil {
		return err
	}
	return printJSON(w, text)
}
