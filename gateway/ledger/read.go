package ledger

import (
	"context"
	"io"
	"net/url"
	"time"

	"github.com/interlock-gateway/interlock/gateway/failure"
	"github.com/interlock-gateway/interlock/gateway/storage"
)

// Filter selects requests. Empty fields select all.
type Filter struct {
	Key        string
	Model      string // requested or answered
	Terminal   Opt[failure.Terminal]
	Class      Opt[failure.Class] // of any attempt
	Group      string             // of any attempt
	Channel    string             // of any attempt; "NAME" or "GROUP/NAME"
	Since      time.Time          // received then or later
	Until      time.Time          // received before
	UserAction string
	Alias      string
	Cursor     string // the Next of the page before
	Limit      int    // 1 to 1000; 0 means 100
}

// ParseFilter reads a filter from a query. An unknown name or a bad value is an error
// that says what is allowed.
func ParseFilter(q url.Values) (Filter, error) { panic("skeleton") }

// Page is a part of a list, newest first. Next is empty on the last one.
type Page struct {
	Requests []*Record
	Next     string
}

// AppendJSON appends the page as `{"requests": […], "next": "…"}`, without decisions.
func (p Page) AppendJSON(dst []byte) []byte { panic("skeleton") }

// AppendJSON appends the record as JSON, with decisions or without.
func (r *Record) AppendJSON(dst []byte, decisions bool) []byte { panic("skeleton") }

// AppendTimeline appends a text for people: what was tried, why, what it cost.
func (r *Record) AppendTimeline(dst []byte) []byte { panic("skeleton") }

// Reader reads a ledger, also one that another process is writing.
type Reader struct{}

// NewReader reads from a database. [Ledger.Reader] is the one that sees what is queued.
func NewReader(db *storage.DB) *Reader { panic("skeleton") }

// Reader returns a reader that sees everything recorded before each of its calls.
func (l *Ledger) Reader() *Reader { panic("skeleton") }

// List returns one page of the requests that the filter selects, without decisions.
func (r *Reader) List(ctx context.Context, f Filter) (Page, error) { panic("skeleton") }

// Show returns one request with its decisions; ErrNotFound where there is none.
func (r *Reader) Show(ctx context.Context, id string) (*Record, error) { panic("skeleton") }

// Usage sums requests, attempts, tokens and cost over what was received since then,
// grouped by any of key, model, alias, cause, day.
func (r *Reader) Usage(ctx context.Context, groupBy []string, since time.Time) (UsageReport, error) {
	panic("skeleton")
}

// UsageReport is the sums, one row for each combination of the groups' values.
type UsageReport struct {
	GroupBy []string
	Since   time.Time
	Rows    []UsageRow
}

// UsageRow is the sums of one group.
type UsageRow struct {
	Group         []string // values in the order of GroupBy; "" where absent
	Requests      int64
	Attempts      int64
	Input         int64
	Output        int64
	Cached        int64
	Reasoning     int64
	CostUSD       float64
	FailedCostUSD float64 // the part of attempts that did not answer
}

// AppendJSON appends the report as JSON.
func (u UsageReport) AppendJSON(dst []byte) []byte { panic("skeleton") }

// Format is a form of export.
type Format uint8

// The formats.
const (
	JSONLines Format = iota
	CSV
)

// Export writes all requests that the filter selects, newest first; Cursor and Limit are
// not used.
func (r *Reader) Export(ctx context.Context, w io.Writer, f Filter, format Format) error {
	panic("skeleton")
}
