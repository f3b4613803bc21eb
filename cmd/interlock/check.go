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
	var strict bool
	c := &cobra.Command{
		Use:   "check",
		Short: "Validate everything that a start would, and list all of it that is wrong",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			path := configPath(path)
			if path == "" {
				return errors.New("no configuration file: name one with --config")
			}
			r := check(c.Context(), path)
			if strict {
				r.Strict()
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
	return c
}

// check is everything a start would find wrong: the policy, the state and the providers' files
// included.
func check(ctx context.Context, path string) *config.Result {
	_, r := catalog.Load(path, config.Env{})
	if r.Found == nil {
		return r
	}
	wrong := *r // as the file is: what is found below does not hide more of it
	wrong.Errors = slices.Clone(r.Errors)
	server.Check(ctx, r.Found, func(key, message string) {
		if !wrong.Faulty(key) {
			r.Fail(key, message)
		}
	})
	return r
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
