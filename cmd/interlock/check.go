package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/interlock-gateway/interlock/gateway/catalog"
	"github.com/interlock-gateway/interlock/gateway/config"
	"github.com/interlock-gateway/interlock/gateway/server"
)

func newCheckCommand() *cobra.Command {
	var path string
	var strict, offline bool
	c := &cobra.Command{
		Use:   "check",
		Short: "Validate everything that a start would, and list all of it that is wrong",
		Long: "Validate the configuration and what it names, and list everything that a start would find wrong: the\n" +
			"file, its policy bundles, plugins, certificates, and where its state is kept. Nothing is made or changed,\n" +
			"and no provider is asked.\n\n" +
			"Bundle servers are asked for their bundles, for 15 s at most. Where one does not answer, its last good\n" +
			"bundle in data_dir is checked in its place, as a start would take it; where there is none, that is an\n" +
			"error. With --offline no server is asked; what was not checked is said.",
		Example: "  interlock check --config interlock.yaml\n" +
			"  interlock check --config interlock.yaml --strict --offline",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			path := configPath(path)
			if path == "" {
				return errors.New("no configuration file: name one with --config")
			}
			r, notes := check(c.Context(), path, offline)
			if strict {
				r.Strict()
			}
			for _, n := range notes { // of no file's fault: --strict does not refuse them
				r.Warn(n.key, n.message)
			}
			printProblems(c.ErrOrStderr(), "warning", r.Warnings)
			if err := r.Err(); err != nil {
				return invalid(c.ErrOrStderr(), err)
			}
			fmt.Fprintln(c.OutOrStdout(), path+": valid")
			return nil
		},
	}
	c.Flags().StringVar(&path, "config", "", "configuration file (default: $"+configVariable+", else "+config.DefaultFile+")")
	c.Flags().BoolVar(&strict, "strict", false, "treat warnings as errors")
	c.Flags().BoolVar(&offline, "offline", false, "do not ask bundle servers")
	return c
}

// note is what a check says of a key that is no fault of the configuration.
type note struct{ key, message string }

// check is everything a start would find wrong: the policy, the state and the providers' files
// included.
func check(ctx context.Context, path string, offline bool) (*config.Result, []note) {
	_, r := catalog.Load(path, config.Env{})
	if r.Found == nil {
		return r, nil
	}
	wrong := *r // as the file is: what is found below does not hide more of it
	wrong.Errors = slices.Clone(r.Errors)
	unlessFaulty := func(add func(key, message string)) server.Found {
		return func(key, message string) {
			if !wrong.Faulty(key) {
				add(key, message)
			}
		}
	}
	var notes []note
	noted := func(key, message string) { notes = append(notes, note{key, message}) }
	server.Check(ctx, r.Found, server.CheckOptions{Offline: offline, Noted: noted}, unlessFaulty(r.Fail))
	server.CheckAuth(r.Found, r.Has, unlessFaulty(r.Fail), unlessFaulty(r.Warn))
	return r, notes
}

func newConfigCommand() *cobra.Command {
	c := &cobra.Command{Use: "config", Short: "About the configuration file"}
	c.AddCommand(&cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of the configuration file",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := c.OutOrStdout().Write(append(config.Schema(), '\n'))
			return err
		},
	})
	return c
}
