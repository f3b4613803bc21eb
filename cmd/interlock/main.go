// Command interlock is the gateway: it serves, checks its configuration, shows itself in a
// demonstration, and speaks to a running gateway's operators' side.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
)

// version is set by the build.
var version = "dev"

func main() { os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr)) }

// exitError is an error with an exit status of its own. An empty message was printed already.
type exitError struct {
	status  int
	message string
}

func (e *exitError) Error() string { return e.message }

// run is main with everything it touches as an argument. It returns the exit status.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := &cobra.Command{
		Use:           "interlock",
		Short:         "An LLM gateway that recovers from a provider's failure only where recovery is safe",
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.AddCommand(
		newServeCommand(), newCheckCommand(), newConfigCommand(), newDemoCommand(),
		newLedgerCommand(), newKeyCommand(), newSwitchCommand(), newPluginCommand(),
		newPolicyCommand(), newReloadCommand(),
	)
	for _, c := range root.Commands() {
		if c.HasSubCommands() && !c.Runnable() { // else a misspelt one would be help, and success
			c.Args, c.RunE = cobra.NoArgs, func(c *cobra.Command, _ []string) error { return c.Help() }
		}
	}
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	var exit *exitError
	if errors.As(err, &exit) {
		if exit.message != "" {
			fmt.Fprintln(stderr, "interlock: "+exit.message)
		}
		return exit.status
	}
	fmt.Fprintln(stderr, "interlock: "+err.Error())
	return 1
}
