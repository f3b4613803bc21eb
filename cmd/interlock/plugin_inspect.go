package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/interlock-gateway/interlock/gateway/wasm"
)

func newPluginInspect() *cobra.Command {
	var asJSON, long bool
	c := &cobra.Command{
		Use:   "inspect FILE.wasm | builtin:NAME",
		Short: "Show what a module is, wants and holds, and whether a gateway would take it",
		Long: "Show a module's manifest, size and digest, what it imports and exports, what it wants granted, the\n" +
			"limits that would hold, and whether a gateway with the default limits would take it. What is refused\n" +
			"is shown as far as it can be read; its code does not run. Of what is taken, a sandboxed instance is\n" +
			"asked what it says of itself. The exit status is 1 for what would be refused.",
		Example: "  interlock plugin inspect acme.wasm\n" +
			"  interlock plugin inspect builtin:anthropic --json",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			m, err := openModule(args[0])
			if err != nil {
				return err
			}
			o := wasm.Options{Name: "plugin", Module: m.code, Manifest: m.manifest}
			s := wasm.Inspect(o)
			if s.Refused == nil {
				o.Grants = s.Manifest.Capabilities
				_, s.Refused = wasm.Prepare(c.Context(), o)
			}
			if asJSON {
				err = printInspectionJSON(c.OutOrStdout(), s)
			} else {
				err = printInspection(c.OutOrStdout(), args[0], s, long)
			}
			if err == nil && s.Refused != nil {
				return &exitError{status: 1}
			}
			return err
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().BoolVar(&long, "all", false, "list every section, import and export")
	return c
}

// stepAndReason are those of a refusal.
func stepAndReason(err error) (step, reason string) {
	var e *wasm.LoadError
	if errors.As(err, &e) {
		return string(e.Step), strings.TrimPrefix(e.Detail(), string(e.Step)+": ")
	}
	return "", err.Error()
}

func printInspectionJSON(w io.Writer, s *wasm.Inspection) error {
	type refused struct {
		Step   string `json:"step"`
		Reason string `json:"reason"`
	}
	shown := struct {
		*wasm.Inspection
		Admitted bool     `json:"admitted"`
		Refused  *refused `json:"refused"`
		Limits   struct {
			Memory      int64  `json:"memory"`
			CallTimeout string `json:"call_timeout"`
			Module      int64  `json:"module"`
		} `json:"limits"`
	}{Inspection: s, Admitted: s.Refused == nil}
	if s.Refused != nil {
		step, reason := stepAndReason(s.Refused)
		shown.Refused = &refused{step, reason}
	}
	shown.Limits.Memory, shown.Limits.Module = s.Limits.Memory, s.Limits.ModuleSize
	shown.Limits.CallTimeout = s.Limits.CallTimeout.String()
	text, err := json.Marshal(shown)
	if err != nil {
		return err
	}
	return printJSON(w, text)
}

const fewSymbols = 12 // of each kind, without --all

func printInspection(w io.Writer, name string, s *wasm.Inspection, all bool) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(label, format string, args ...any) {
		fmt.Fprintf(t, "%s\t%s\n", label, printable(fmt.Sprintf(format, args...)))
	}
	row("module", "%s", name)
	row("size", "%s (at most %s)", bytesText(s.Size), bytesText(s.Limits.ModuleSize))
	row("sha256", "%s", s.SHA256)
	if m := s.Manifest; m != nil {
		row("plugin", "%s %s, %s, ABI %s", m.Name, m.Version, article(m.Kind), m.ABI)
		row("operations", "%s", strings.Join(m.Operations, ", "))
		for _, list := range []struct {
			label string
			items []string
		}{
			{"endpoints", m.Endpoints},
			{"content types", append(append([]string(nil), m.ContentTypes.Whole...), m.ContentTypes.Events...)},
			{"sets headers", m.RequestHeaders},
			{"reads headers", m.ResponseHeaders},
			{"auth", m.Auth},
			{"models can", m.ModelCapabilities},
		} {
			if len(list.items) > 0 {
				row(list.label, "%s", strings.Join(list.items, ", "))
			}
		}
		wants := "nothing"
		if len(m.Capabilities) > 0 {
			wants = strings.Join(m.Capabilities, ", ")
		}
		row("wants granted", "%s", wants)
		if len(m.ConfigSchema) > 0 {
			row("config", "%s", m.ConfigSchema)
		}
	}
	row("limits", "%s of memory, %s a call", bytesText(s.Limits.Memory), s.Limits.CallTimeout)
	if s.Exports != nil {
		row("memory", "%s at the start", bytesText(s.Memory))
	}
	list := func(label string, n int, line func(i int) string) {
		for i := range n {
			if i == fewSymbols && !all {
				row("", "… and %d more (--all)", n-i)
				break
			}
			row(label, "%s", line(i))
			label = ""
		}
	}
	symbol := func(x wasm.Symbol) string {
		if x.Module != "" {
			x.Name = x.Module + "." + x.Name
		}
		return x.Name + " " + x.Kind + " " + x.Type
	}
	list("imports", len(s.Imports), func(i int) string { return symbol(s.Imports[i]) })
	list("exports", len(s.Exports), func(i int) string { return symbol(s.Exports[i]) })
	list("sections", len(s.Sections), func(i int) string {
		return s.Sections[i].Name + ", " + bytesText(int64(s.Sections[i].Size))
	})
	if s.Refused == nil {
		row("admitted", "yes")
	} else {
		step, reason := stepAndReason(s.Refused)
		row("admitted", "no: %s: %s", step, reason)
	}
	return t.Flush()
}
