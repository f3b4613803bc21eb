package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/interlock-gateway/interlock/gateway/catalog"
	"github.com/interlock-gateway/interlock/gateway/config"
	"github.com/interlock-gateway/interlock/gateway/policy"
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

// check is everything a start would find wrong, the policy and the providers' files included.
func check(ctx context.Context, path string) *config.Result {
	_, r := catalog.Load(path, config.Env{})
	if r.Config == nil {
		return r
	}
	for i, b := range r.Config.Policy.Bundles {
		if b.Path == "" {
			continue
		}
		_, err := policy.Load(ctx, policy.Path(b.Name, b.Path), policy.Options{Timeout: r.Config.Policy.Timeout})
		if err != nil {
			r.Fail(fmt.Sprintf("policy.bundles[%d].path", i), err.Error())
		}
	}
	for name, err := range server.CheckProviders(r.Config) {
		r.Fail(config.Join("providers", name), err.Error())
	}
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
