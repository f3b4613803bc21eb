package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/interlock-gateway/interlock/gateway/catalog"
	"github.com/interlock-gateway/interlock/gateway/config"
	"github.com/interlock-gateway/interlock/gateway/ledger"
	"github.com/interlock-gateway/interlock/gateway/policy/tool"
)

// ledgerFile is the storage's file in a data directory, unless the configuration says otherwise.
const ledgerFile = "interlock.db"

func newPolicyReplay(f *policyFlags) *cobra.Command {
	var l ledgerFlags
	var dataDir, configFile string
	form := "text"
	c := &cobra.Command{
		Use:   "replay BUNDLE --since 24h",
		Short: "Decide again what the ledger recorded, with a candidate, and count what differs",
		Long: "Decide again every decision that the ledger recorded, with a candidate: how many would differ, which, and\n" +
			"how. Each is decided on its own, with what was known then: what a different decision would have led to,\n" +
			"nobody knows. Identical inputs are evaluated once.\n\n" +
			"The ledger is a running gateway's (--admin), or the storage itself: of a configuration file, a data\n" +
			"directory, or by its address. Reading takes nothing from a gateway that runs on it.",
		Example: "  interlock policy replay ours --since 24h\n" +
			"  interlock policy replay candidate.tar.gz --since 2026-11-29 --data-dir /var/lib/interlock -o json",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			asJSON, err := outputForm(form)
			if err != nil {
				return err
			}
			if err := l.storageOf(configFile, dataDir); err != nil {
				return err
			}
			q, err := filters(c)
			if err != nil {
				return err
			}
			r, err := f.load(c.Context(), args[0])
			if err != nil {
				return err
			}
			var result *tool.Replayed
			err = l.with(c, func(e evidence) error {
				return piped(c.Context(), e, q, func(ctx context.Context, export io.Reader) (err error) {
					result, err = tool.Replay(ctx, r, export)
					return err
				})
			})
			if err != nil {
				return err
			}
			return result.Write(c.OutOrStdout(), asJSON, r.ID())
		},
	}
	l.admin.add(c)
	c.PersistentFlags().Lookup("json").Hidden = true // -o json
	c.Flags().StringVar(&l.db, "db", "", "read the storage itself: sqlite:PATH")
	c.Flags().StringVar(&dataDir, "data-dir", "", "read the storage in this data directory")
	c.Flags().StringVar(&configFile, "config", "", "read the storage of this configuration file")
	c.Flags().StringVarP(&form, "output", "o", form, "text or json")
	addFilters(c)
	return c
}

// storageOf finds the storage that the flags name, at most one of them.
func (f *ledgerFlags) storageOf(configFile, dataDir string) error {
	given := 0
	for _, s := range []string{configFile, dataDir, f.db, f.admin.url} {
		if s != "" {
			given++
		}
	}
	if given > 1 {
		return &exitError{status: 2, message: "one of --admin, --db, --data-dir and --config, not several"}
	}
	switch {
	case dataDir != "":
		f.db = "sqlite:" + filepath.Join(dataDir, ledgerFile)
	case configFile != "":
		_, r := catalog.Load(configFile, config.Env{})
		if r.Found == nil {
			return &exitError{status: 2, message: fmt.Sprintf("%s is not valid: interlock check says why", configFile)}
		}
		f.db = r.Found.Storage.URL
	}
	return nil
}

// piped exports while the export is read.
func piped(ctx context.Context, e evidence, q url.Values, read func(context.Context, io.Reader) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	in, out := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := e.export(ctx, q, ledger.JSONLines, out)
		_ = out.CloseWithError(err)
		ended <- err
	}()
	err := read(ctx, in)
	cancel()
	_ = in.CloseWithError(io.ErrClosedPipe)
	if exported := <-ended; exported != nil && !errors.Is(exported, io.ErrClosedPipe) && !errors.Is(exported, context.Canceled) {
		return exported
	}
	return err
}
