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
)

// demoOptions are the flags of `interlock demo`.
type demoOptions struct {
	once    bool
	verbose bool
	policy  string // a directory with a policy bundle; "" = the built-in one
	listen  string // the callers' address to try first
	admin   string // the operators' address to try first
}

func newDemoCommand() *cobra.Command {
	var o demoOptions
	c := &cobra.Command{
		Use:   "demo",
		Short: "Show the recovery: failing providers, the gateway before them, and traffic",
		Long: "Start three providers on loopback that fail on purpose, the gateway before them, and send\n" +
			"a few requests. For each it prints what the caller saw and the attempts behind it, as the\n" +
			"ledger has them. Then everything stays up to be tried out, until Ctrl-C.\n\n" +
			"Nothing leaves this machine, and nothing is left on it.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(c.Context(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
			defer stop()
			context.AfterFunc(ctx, stop) // a second Ctrl-C ends the process at once
			return demo(ctx, o, c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	f := c.Flags()
	f.BoolVar(&o.once, "once", false, "exit after the traffic")
	f.BoolVar(&o.verbose, "verbose", false, "write the gateway's log to standard error")
	f.StringVar(&o.policy, "policy", "", "directory with a policy bundle, watched while the demo runs (default: the built-in bundle)")
	f.StringVar(&o.listen, "listen", "127.0.0.1:8080", "address for callers; any free port where it is taken")
	f.StringVar(&o.admin, "admin-listen", "127.0.0.1:8081", "address for operators; any free port where it is taken")
	return c
}

// demoLimit bounds the traffic: a demonstration that hangs has failed.
const demoLimit = time.Minute

// demo runs the demonstration. It fails where the traffic did not go as told.
func demo(ctx context.Context, o demoOptions, stdout, stderr io.Writer) (err error) {
	st, err := setStage(ctx, o, stderr)
	if err != nil {
		return invalid(stderr, err)
	}
	defer func() { err = errors.Join(err, st.close()) }()
	p := newDemoPrinter(stdout)
	p.opening(st)
	wrong, attempts := 0, 0
	longest := demoRecord{RequestID: "req_…"}
	limit, cancel := context.WithTimeout(ctx, demoLimit)
	defer cancel()
	for i := range scenes {
		sc := &scenes[i]
		seen := st.play(limit, sc)
		if ctx.Err() != nil {
			return nil // Ctrl-C
		}
		faults := sc.differs(&seen)
		p.scene(i+1, sc, &seen, faults)
		if len(faults) > 0 {
			wrong++
		}
		attempts += len(seen.record.Attempts)
		if len(seen.record.Attempts) > len(longest.Attempts) {
			longest = seen.record
		}
	}
	calls := st.calls()
	p.closing(wrong, attempts, calls)
	if !o.once {
		p.tryOut(st, longest.RequestID)
		if err := st.wait(ctx); err != nil {
			return err
		}
	}
	if wrong > 0 {
		return &exitError{status: 1, message: fmt.Sprintf("%d of %d requests did not go as told", wrong, len(scenes))}
	}
	if attempts != calls {
		return &exitError{status: 1, message: "the ledger's attempts are not the providers' calls"}
	}
	return nil
}
