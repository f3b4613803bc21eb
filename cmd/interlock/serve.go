package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/interlock-gateway/interlock/gateway/catalog"
	"github.com/interlock-gateway/interlock/gateway/config"
	"github.com/interlock-gateway/interlock/gateway/downstream"
	"github.com/interlock-gateway/interlock/gateway/server"
	"github.com/interlock-gateway/interlock/plugins"
)

const configVariable = "INTERLOCK_CONFIG"

// configPath is the file to use: the flag, else the variable, else interlock.yaml if it is
// there; "" for a start from the environment.
func configPath(flag string) string {
	if flag != "" {
		return flag
	}
	if p := os.Getenv(configVariable); p != "" {
		return p
	}
	if _, err := os.Stat(config.DefaultFile); err == nil {
		return config.DefaultFile
	}
	return ""
}

func newServeCommand() *cobra.Command {
	var path string
	c := &cobra.Command{
		Use:   "serve",
		Short: "Run the gateway",
		Long: "Run the gateway with a configuration file, or, with none, from the environment:\n" +
			"OPENAI_API_KEY and the like become channels on loopback.\n\n" +
			"SIGHUP reloads. SIGTERM drains; a second one ends at once.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return serve(c.Context(), configPath(path), c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	c.Flags().StringVar(&path, "config", "", "configuration file (default: $"+configVariable+", else "+config.DefaultFile+")")
	return c
}

func serve(ctx context.Context, path string, stdout, stderr io.Writer) error {
	o := server.Options{Path: path, Version: version}
	if path == "" {
		start, err := config.FromEnv(os.LookupEnv, catalog.Makers(), plugins.Built())
		var none *config.NoProviderError
		if errors.As(err, &none) {
			return &exitError{status: 2, message: none.Error()}
		}
		if err != nil {
			return err
		}
		for _, w := range start.Warnings {
			fmt.Fprintln(stderr, "interlock: warning: "+w)
		}
		o.Config = start.Config
		fmt.Fprintf(stdout, "No configuration file: started from the environment.\nAPI key for callers, shown once: %s\n", start.Key.Reveal())
	} else if _, r := catalog.Load(path, config.Env{}); r.Err() == nil {
		printProblems(stderr, "warning", r.Warnings)
	}
	if inherited, err := downstream.Inherited(); err != nil {
		return err
	} else if len(inherited) > 0 {
		o.Listener = inherited[0]
	}
	started, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	s, err := server.New(started, o)
	if err != nil {
		return invalid(stderr, err)
	}
	fmt.Fprintf(stdout, "interlock %s: callers at %s, operators at %s\n", version, s.Addr(), s.AdminAddr())
	return runUntilSignal(ctx, s)
}

// runUntilSignal runs the server until SIGTERM or SIGINT, drains then, and ends at once on a
// second one. SIGHUP reloads.
func runUntilSignal(ctx context.Context, s *server.Server) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	defer signal.Stop(signals)
	now := make(chan struct{})
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		ending := false
		for {
			select {
			case sig := <-signals:
				switch {
				case sig == syscall.SIGHUP:
					_, _, _ = s.Reload(ctx) // the server has logged what was wrong
				case ending:
					close(now)
					return
				default:
					ending = true
					stop()
				}
			case <-s.Done():
				return
			}
		}
	}()
	err := s.Run(ctx, now)
	<-watched
	return err
}

// invalid prints every problem of a configuration and makes the error of the command.
func invalid(stderr io.Writer, err error) error {
	var faults *config.Invalid
	if !errors.As(err, &faults) {
		return err
	}
	printProblems(stderr, "error", faults.Problems)
	return &exitError{status: 1}
}

func printProblems(w io.Writer, kind string, list []config.Problem) {
	for _, p := range list {
		fmt.Fprintf(w, "%s: %s\n", kind, p)
	}
}
