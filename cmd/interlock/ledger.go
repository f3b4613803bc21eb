package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/interlock-gateway/interlock/gateway/ledger"
	"github.com/interlock-gateway/interlock/gateway/storage"
)

func newLedgerCommand() *cobra.Command {
	var f ledgerFlags
	c := &cobra.Command{
		Use:   "ledger",
		Short: "Read the ledger: what was asked, which attempts were made, why, and what they cost",
		Long: "Read the ledger of a running gateway through its admin listener, or with --db from\n" +
			"the storage itself, read-only, whether a gateway is running on it or not.",
		Args: cobra.NoArgs,
	}
	f.admin.add(c)
	c.PersistentFlags().StringVar(&f.db, "db", "", "read the storage itself: sqlite:PATH")
	c.AddCommand(newLedgerList(&f), newLedgerShow(&f), newLedgerExport(&f))
	return c
}

type ledgerFlags struct {
	admin adminFlags
	db    string
}

// evidence is where the ledger is read: a running gateway or the storage itself. Both print
// the same JSON.
type evidence interface {
	list(ctx context.Context, q url.Values) ([]byte, error)
	show(ctx context.Context, id string, asText bool) ([]byte, error)
	export(ctx context.Context, q url.Values, f ledger.Format, w io.Writer) error
	close() error
}

func (f *ledgerFlags) open(ctx context.Context) (evidence, error) {
	if f.db == "" {
		a, err := f.admin.client()
		if err != nil {
			return nil, err
		}
		return remoteLedger{a}, nil
	}
	if f.admin.url != "" {
		return nil, &exitError{status: 2, message: "--db or --admin, not both"}
	}
	db, err := storage.Open(ctx, storage.Options{URL: f.db, ReadOnly: true})
	if err != nil {
		return nil, err
	}
	return storedLedger{db: db, reader: ledger.NewReader(db)}, nil
}

type remoteLedger struct{ *adminClient }

func (r remoteLedger) list(ctx context.Context, q url.Values) ([]byte, error) {
	return r.call(ctx, http.MethodGet, withQuery(adminPath("requests"), q), nil, "application/json")
}

func (r remoteLedger) show(ctx context.Context, id string, asText bool) ([]byte, error) {
	form := "application/json"
	if asText {
		form = "text/plain"
	}
	return r.call(ctx, http.MethodGet, adminPath("requests", id), nil, form)
}

func (r remoteLedger) export(ctx context.Context, q url.Values, f ledger.Format, w io.Writer) error {
	form := "application/x-ndjson"
	if f == ledger.CSV {
		form = "text/csv"
	}
	return r.stream(ctx, http.MethodGet, withQuery(adminPath("requests"), q), nil, form, w)
}

func (remoteLedger) close() error { return nil }

func withQuery(path string, q url.Values) string {
	if len(q) == 0 {
		return path
	}
	return path + "?" + q.Encode()
}

type storedLedger struct {
	db     *storage.DB
	reader *ledger.Reader
}

func (s storedLedger) list(ctx context.Context, q url.Values) ([]byte, error) {
	filter, err := ledger.ParseFilter(q)
	if err != nil {
		return nil, err
	}
	page, err := s.reader.List(ctx, filter)
	if err != nil {
		return nil, err
	}
	return page.AppendJSON(nil), nil
}

func (s storedLedger) show(ctx context.Context, id string, asText bool) ([]byte, error) {
	r, err := s.reader.Show(ctx, id)
	if errors.Is(err, ledger.ErrNotFound) {
		return nil, fmt.Errorf("the ledger has no request %q", id)
	}
	if err != nil {
		return nil, err
	}
	if asText {
		return r.AppendTimeline(nil), nil
	}
	return r.AppendJSON(nil, true), nil
}

func (s storedLedger) export(ctx context.Context, q url.Values, f ledger.Format, w io.Writer) error {
	filter, err := ledger.ParseFilter(q)
	if err != nil {
		return err
	}
	return s.reader.Export(ctx, w, filter, f)
}

func (s storedLedger) close() error { return s.db.Close() }

// ledgerFilters are the filters of the admin API as flags: user_action is --user-action.
var ledgerFilters = []struct{ name, usage string }{
	{"key", "requests of the key of this name"},
	{"model", "that asked for, or were answered by, this model"},
	{"alias", "that asked for this alias"},
	{"terminal", "that ended so: success, exhausted, cancelled, partial, policy_stop, interrupted; \"\" for those still running"},
	{"class", "with an attempt that failed so, such as rate_limited"},
	{"group", "with an attempt in this group"},
	{"channel", "with an attempt on this channel: NAME or GROUP/NAME"},
	{"since", "received then or later: a time, a day, or how long ago, such as 90m"},
	{"until", "received before: a time, a day, or how long ago"},
	{"user_action", "of this user action"},
}

func flagOf(filter string) string { return strings.ReplaceAll(filter, "_", "-") }

func addFilters(c *cobra.Command) {
	for _, f := range ledgerFilters {
		c.Flags().String(flagOf(f.name), "", f.usage)
	}
}

// filters reads the flags that were given.
func filters(c *cobra.Command, more ...string) (url.Values, error) {
	q := url.Values{}
	for _, f := range ledgerFilters {
		more = append(more, f.name)
	}
	for _, name := range more {
		flag := c.Flags().Lookup(flagOf(name))
		if !flag.Changed {
			continue
		}
		v := flag.Value.String()
		if v != "" && (name == "since" || name == "until") {
			t, err := parseMoment(v, time.Now(), -1)
			if err != nil {
				return nil, &exitError{status: 2, message: "--" + name + ": " + err.Error()}
			}
			v = t.UTC().Format(time.RFC3339Nano)
		}
		q.Set(name, v)
	}
	return q, nil
}

// with opens the evidence for one command and closes it afterwards.
func (f *ledgerFlags) with(c *cobra.Command, do func(evidence) error) error {
	e, err := f.open(c.Context())
	if err != nil {
		return err
	}
	return errors.Join(do(e), e.close())
}

func newLedgerList(f *ledgerFlags) *cobra.Command {
	c := &cobra.Command{
		Use:   "list",
		Short: "List requests, newest first",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			q, err := filters(c, "limit", "cursor")
			if err != nil {
				return err
			}
			return f.with(c, func(e evidence) error {
				b, err := e.list(c.Context(), q)
				if err != nil {
					return err
				}
				if f.admin.json {
					return printJSON(c.OutOrStdout(), b)
				}
				return printRequests(c.OutOrStdout(), b)
			})
		},
	}
	addFilters(c)
	c.Flags().Int("limit", 100, "at most so many, 1 to 1000")
	c.Flags().String("cursor", "", "the page after the one that ended with this")
	return c
}

// listed is what the list for people shows of a request.
type listed struct {
	ID       string    `json:"request_id"`
	Received time.Time `json:"received_at"`
	Key      string    `json:"key"`
	Asked    string    `json:"requested_model"`
	Alias    string    `json:"alias"`
	Answered string    `json:"answered_model"`
	Terminal string    `json:"terminal"`
	Status   *int      `json:"status"`
	Cause    string    `json:"cause"`
	Cost     *float64  `json:"cost_usd"`
	Attempts []struct {
		Class string `json:"class"`
	} `json:"attempts"`
}

func printRequests(out io.Writer, b []byte) error {
	var page struct {
		Requests []listed `json:"requests"`
		Next     string   `json:"next"`
	}
	if err := json.Unmarshal(b, &page); err != nil {
		return fmt.Errorf("not a list of requests: %w", err)
	}
	if len(page.Requests) == 0 {
		fmt.Fprintln(out, "No request matches.")
		return nil
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "RECEIVED\tREQUEST\tKEY\tASKED\tANSWERED\tEND\tSTATUS\tATTEMPTS\tANSWERED BY\tCOST")
	for i := range page.Requests {
		r := &page.Requests[i]
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", r.Received.Format(time.RFC3339), orDash(r.ID), orDash(r.Key),
			orDash(r.asked()), orDash(r.Answered), r.end(), r.status(), r.attempts(), orDash(r.Cause), r.cost())
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if page.Next != "" {
		fmt.Fprintf(out, "\nMore: --cursor %s\n", printable(page.Next))
	}
	return nil
}

func (r *listed) asked() string {
	if r.Alias != "" {
		return r.Alias
	}
	return r.Asked
}

func (r *listed) end() string {
	if r.Terminal == "" {
		return "running"
	}
	return printable(r.Terminal)
}

func (r *listed) status() string {
	if r.Status == nil {
		return "-"
	}
	return strconv.Itoa(*r.Status)
}

// attempts is their number, and the classes of those that failed.
func (r *listed) attempts() string {
	var failed []string
	for _, a := range r.Attempts {
		if a.Class != "" {
			failed = append(failed, printable(a.Class))
		}
	}
	n := strconv.Itoa(len(r.Attempts))
	if len(failed) == 0 {
		return n
	}
	return n + " (" + strings.Join(failed, ", ") + ")"
}

func (r *listed) cost() string {
	if r.Cost == nil {
		return "-"
	}
	return "$" + strconv.FormatFloat(*r.Cost, 'f', 6, 64)
}

func newLedgerShow(f *ledgerFlags) *cobra.Command {
	var decisions bool
	c := &cobra.Command{
		Use:   "show REQUEST_ID",
		Short: "Show the time line of a request: what was tried, why, and what it cost",
		Long: "Show the time line of a request: what was tried, why, and what it cost. With --decisions also what\n" +
			"policy decided, each time with the reason, the rule, the revision and the facts; `interlock policy eval\n" +
			"--from-ledger` decides on the same facts again.",
		Example: "  interlock ledger show req_01KB9Z7Y00G000000000000000 --decisions",
		Args:    cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if args[0] == "" {
				return &exitError{status: 2, message: "a request's ID is required"}
			}
			return f.with(c, func(e evidence) error {
				b, err := e.show(c.Context(), args[0], !f.admin.json)
				if err != nil {
					return err
				}
				if f.admin.json {
					return printJSON(c.OutOrStdout(), b)
				}
				if _, err = c.OutOrStdout().Write(b); err != nil || !decisions {
					return err
				}
				if b, err = e.show(c.Context(), args[0], false); err != nil {
					return err
				}
				return printDecisions(c.OutOrStdout(), b)
			})
		},
	}
	c.Flags().BoolVar(&decisions, "decisions", false, "also show what policy decided, and on what facts; JSON always has it")
	return c
}

func newLedgerExport(f *ledgerFlags) *cobra.Command {
	var format string
	c := &cobra.Command{
		Use:   "export",
		Short: "Export all requests that the filters select",
		Long: "Export all requests that the filters select, newest first: as JSON Lines, a request a\n" +
			"line with its attempts and decisions, or as CSV, an attempt a line.\n\n" +
			"In the CSV, control characters are blanks, and a text that a spreadsheet would take for a\n" +
			"formula (it begins with = + - or @) has an apostrophe before it. JSON has texts as they came.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			form, ok := ledger.ParseFormat(format)
			if !ok {
				return &exitError{status: 2, message: fmt.Sprintf("--format %q: allowed are jsonl and csv", format)}
			}
			if f.admin.json && form == ledger.CSV {
				return &exitError{status: 2, message: "--json or --format csv, not both"}
			}
			q, err := filters(c)
			if err != nil {
				return err
			}
			return f.with(c, func(e evidence) error { return e.export(c.Context(), q, form, c.OutOrStdout()) })
		},
	}
	addFilters(c)
	c.Flags().StringVar(&format, "format", "jsonl", "jsonl or csv")
	return c
}
