package ledger

import (
	"bufio"
	"context"
	"encoding/csv"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Format is a form of export.
type Format uint8

// The formats.
const (
	JSONLines Format = iota // a request a line, as JSON with decisions
	CSV                     // an attempt a line, flat columns; a request without attempts has one line; texts made inert, see cell
)

// ParseFormat finds the format with that name: jsonl or csv.
func ParseFormat(s string) (Format, bool) {
	switch s {
	case "jsonl":
		return JSONLines, true
	case "csv":
		return CSV, true
	}
	return 0, false
}

// Export writes all requests that the filter selects, newest first; Cursor and Limit are
// not used. It reads in parts and holds none of the ledger up.
func (r *Reader) Export(ctx context.Context, w io.Writer, f Filter, format Format) error {
	buffered := bufio.NewWriterSize(w, 64<<10)
	var err error
	if format == CSV {
		err = r.exportCSV(ctx, buffered, f)
	} else {
		var line []byte
		err = r.each(ctx, f, true, func(rec *Record) error {
			line = append(rec.AppendJSON(line[:0], true), '\n')
			_, err := buffered.Write(line)
			return err
		})
	}
	if err != nil {
		return err
	}
	return buffered.Flush()
}

// column is one column of the CSV form. Columns of the attempt are empty where there is
// none; tokens and cost are the attempt's, so that their sums are the ledger's.
type column struct {
	name string
	of   func(*Record, *Attempt) string
}

var columns = append(requestColumns(), attemptColumns()...)

func (r *Reader) exportCSV(ctx context.Context, w io.Writer, f Filter) error {
	out := csv.NewWriter(w)
	cells := make([]string, len(columns))
	for i, c := range columns {
		cells[i] = c.name
	}
	if err := out.Write(cells); err != nil {
		return err
	}
	line := func(rec *Record, a *Attempt) error {
		for i, c := range columns {
			cells[i] = cell(c.of(rec, a))
		}
		return out.Write(cells)
	}
	err := r.each(ctx, f, false, func(rec *Record) error {
		if len(rec.Attempts) == 0 {
			return line(rec, nil)
		}
		for i := range rec.Attempts {
			if err := line(rec, &rec.Attempts[i]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	out.Flush()
	return out.Error()
}

// cell makes a text inert in a spreadsheet: control characters, and those that turn the
// direction of writing, become blanks, and what a spreadsheet would take for a formula gets an
// apostrophe before it. The JSON form has every text as it came.
func cell(text string) string {
	text = strings.ToValidUTF8(text, "\ufffd")
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.In(r, unicode.Zl, unicode.Zp, unicode.Bidi_Control) {
			return ' '
		}
		return r
	}, text)
	first := strings.TrimLeft(text, " ")
	if first == "" || !strings.ContainsRune("=+-@＝＋－＠", firstRune(first)) {
		return text
	}
	if _, err := strconv.ParseFloat(text, 64); err == nil {
		return text // a number
	}
	return "'" + text
}

func firstRune(s string) rune {
	r, _ := utf8.DecodeRuneInString(s)
	return r
}

func requestColumns() []column {
	of := func(name string, f func(*Record) string) column {
		return column{name, func(r *Record, _ *Attempt) string { return f(r) }}
	}
	return []column{
		of("request_id", func(r *Record) string { return r.ID }),
		of("correlation_id", func(r *Record) string { return r.CorrelationID }),
		of("user_action", func(r *Record) string { return r.UserAction }),
		of("key", func(r *Record) string { return r.Key }),
		of("endpoint", func(r *Record) string { return r.Endpoint }),
		of("alias", func(r *Record) string { return r.Alias }),
		of("requested_model", func(r *Record) string { return r.RequestedModel }),
		of("answered_model", func(r *Record) string { return r.AnsweredModel }),
		of("stream", func(r *Record) string { return strconv.FormatBool(r.Stream) }),
		of("received_at", func(r *Record) string { return cellTime(r.ReceivedAt) }),
		of("finished_at", func(r *Record) string { return cellTime(r.FinishedAt) }),
		of("deadline_ms", func(r *Record) string { return cellMillis(r.Deadline) }),
		of("request_terminal", func(r *Record) string { return r.Terminal.String() }),
		of("request_status", func(r *Record) string { return cellNonZero(r.Status) }),
		of("request_output_started", func(r *Record) string { return strconv.FormatBool(r.OutputStarted) }),
		of("answered_by_cause", func(r *Record) string {
			if !r.Cause.Known {
				return ""
			}
			return r.Cause.Value.String()
		}),
		of("client_retry", func(r *Record) string { return cellInt(r.ClientRetry) }),
		of("amplification", func(r *Record) string { return strconv.Itoa(r.Amplification()) }),
		of("contract_version", func(r *Record) string { return cellInt(r.ContractVersion) }),
		of("task_outcome", func(r *Record) string { return r.Outcome.Value.Task }),
		of("policy_revision", func(r *Record) string { return r.PolicyRevision }),
		of("overhead_us", func(r *Record) string {
			return cellInt(Opt[int64]{r.Overhead.Value.Microseconds(), r.Overhead.Known})
		}),
		of("attempts", func(r *Record) string { return strconv.Itoa(len(r.Attempts)) }),
	}
}

func attemptColumns() []column {
	of := func(name string, f func(*Attempt) string) column {
		return column{name, func(_ *Record, a *Attempt) string {
			if a == nil {
				return ""
			}
			return f(a)
		}}
	}
	return []column{
		of("attempt", func(a *Attempt) string { return strconv.Itoa(a.Number) }),
		of("cause", func(a *Attempt) string { return a.Cause.String() }),
		of("group", func(a *Attempt) string { return a.Group }),
		of("channel", func(a *Attempt) string { return a.Channel }),
		of("provider", func(a *Attempt) string { return a.Provider }),
		of("model", func(a *Attempt) string { return a.Model }),
		of("upstream_model", func(a *Attempt) string { return a.UpstreamModel }),
		of("reason", func(a *Attempt) string { return a.Reason }),
		of("delay_ms", func(a *Attempt) string { return strconv.FormatInt(a.Delay.Milliseconds(), 10) }),
		of("circuit", func(a *Attempt) string { return a.Circuit }),
		of("opened_at", func(a *Attempt) string { return cellTime(a.OpenedAt) }),
		of("connected_ms", func(a *Attempt) string { return cellMillis(a.Connected) }),
		of("sent_ms", func(a *Attempt) string { return cellMillis(a.Sent) }),
		of("headers_ms", func(a *Attempt) string { return cellMillis(a.Headers) }),
		of("first_output_ms", func(a *Attempt) string { return cellMillis(a.FirstOutput) }),
		of("last_byte_ms", func(a *Attempt) string { return cellMillis(a.LastByte) }),
		of("closed_ms", func(a *Attempt) string { return cellMillis(a.Closed) }),
		of("status", func(a *Attempt) string { return cellNonZero(a.Status) }),
		of("class", func(a *Attempt) string { return a.Class.String() }),
		of("phase", func(a *Attempt) string {
			if !a.Phase.Known {
				return ""
			}
			return a.Phase.Value.String()
		}),
		of("provider_code", func(a *Attempt) string { return a.ProviderCode }),
		of("output_started", func(a *Attempt) string { return strconv.FormatBool(a.OutputStarted) }),
		of("cancelled", func(a *Attempt) string { return strconv.FormatBool(a.Cancelled) }),
		of("upstream_request_id", func(a *Attempt) string { return a.UpstreamRequestID }),
		of("contract", func(a *Attempt) string { return a.Contract }),
		of("unverified", func(a *Attempt) string { return strconv.FormatBool(a.Unverified) }),
		of("time_left_ms", func(a *Attempt) string { return cellMillis(a.TimeLeft) }),
		of("retry_after_ms", func(a *Attempt) string { return cellMillis(a.RetryAfter) }),
		of("input_tokens", func(a *Attempt) string { return cellInt(a.Usage.Input) }),
		of("output_tokens", func(a *Attempt) string { return cellInt(a.Usage.Output) }),
		of("cached_tokens", func(a *Attempt) string { return cellInt(a.Usage.Cached) }),
		of("reasoning_tokens", func(a *Attempt) string { return cellInt(a.Usage.Reasoning) }),
		of("estimated", func(a *Attempt) string {
			if !a.Usage.Known() {
				return ""
			}
			return strconv.FormatBool(a.Usage.Estimated)
		}),
		of("cost_usd", func(a *Attempt) string {
			if !a.CostUSD.Known {
				return ""
			}
			return strconv.FormatFloat(dollars(picodollars(a.CostUSD.Value)), 'f', -1, 64)
		}),
		of("billable", func(a *Attempt) string { return a.Billable.String() }),
		of("skipped_events", func(a *Attempt) string { return strconv.Itoa(a.SkippedEvents) }),
		of("terminal", func(a *Attempt) string { return a.End.String() }),
	}
}

func cellTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.000000000Z07:00")
}

func cellMillis(d Opt[time.Duration]) string {
	return cellInt(Opt[int64]{d.Value.Milliseconds(), d.Known})
}

func cellInt(v Opt[int64]) string {
	if !v.Known {
		return ""
	}
	return strconv.FormatInt(v.Value, 10)
}

func cellNonZero(v int) string { return cellInt(Opt[int64]{int64(v), v != 0}) }
