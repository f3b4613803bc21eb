package ledger

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/interlock-gateway/interlock/gateway/failure"
)

// UsageReport is the sums, one row for each combination of the groups' values.
type UsageReport struct {
	GroupBy []string
	Since   time.Time
	Rows    []UsageRow
	Total   UsageRow
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

	cost, failed int64 // picodollars
}

var usageGroups = map[string]func(*Record) string{
	"key":   func(r *Record) string { return r.Key },
	"model": func(r *Record) string { return r.RequestedModel },
	"alias": func(r *Record) string { return r.Alias },
	"cause": func(r *Record) string {
		if !r.Cause.Known {
			return ""
		}
		return r.Cause.Value.String()
	},
	"day": func(r *Record) string { return r.ReceivedAt.UTC().Format(time.DateOnly) },
}

var usageGroupNames = []string{"key", "model", "alias", "cause", "day"}

// ParseUsageGroups reads a list such as "key,day"; an unknown one is a [*FilterError].
// Nothing is one group of all.
func ParseUsageGroups(s string) ([]string, error) {
	if s == "" {
		return nil, nil
	}
	groups := strings.Split(s, ",")
	for i, g := range groups {
		if usageGroups[g] == nil || slices.Contains(groups[:i], g) {
			return nil, &FilterError{"group_by", fmt.Sprintf("group_by %q: allowed are %s, each once, separated by commas",
				clip(s, 80), strings.Join(usageGroupNames, ", "))}
		}
	}
	return groups, nil
}

// Usage sums requests, attempts, tokens and cost over what was received since then,
// grouped by any of key, model (as requested), alias, cause (of the attempt that
// answered) and day (UTC). The sums are those of the requests' attempts, failed ones
// too; unknown counts and costs add nothing.
func (r *Reader) Usage(ctx context.Context, groupBy []string, since time.Time) (UsageReport, error) {
	report := UsageReport{GroupBy: groupBy, Since: since}
	if _, err := ParseUsageGroups(strings.Join(groupBy, ",")); err != nil {
		return report, err
	}
	sums := map[string]*UsageRow{}
	err := r.each(ctx, Filter{Since: since}, false, func(rec *Record) error {
		var key strings.Builder
		values := make([]string, len(groupBy))
		for i, g := range groupBy {
			values[i] = usageGroups[g](rec)
			fmt.Fprintf(&key, "%d:%s", len(values[i]), values[i])
		}
		row := sums[key.String()]
		if row == nil {
			row = &UsageRow{Group: values}
			sums[key.String()] = row
		}
		row.add(rec)
		report.Total.add(rec)
		return nil
	})
	if err != nil {
		return report, err
	}
	for _, row := range sums {
		report.Rows = append(report.Rows, row.done())
	}
	report.Total = report.Total.done()
	slices.SortFunc(report.Rows, func(a, b UsageRow) int { return slices.CompareFunc(a.Group, b.Group, cmp.Compare[string]) })
	return report, nil
}

func (u *UsageRow) add(r *Record) {
	u.Requests++
	u.Attempts += int64(len(r.Attempts))
	sum := r.Usage()
	u.Input += sum.Input.Value
	u.Output += sum.Output.Value
	u.Cached += sum.Cached.Value
	u.Reasoning += sum.Reasoning.Value
	for i := range r.Attempts {
		a := &r.Attempts[i]
		cost := picodollars(a.CostUSD.Value)
		u.cost += cost
		if a.End != failure.EndSuccess {
			u.failed += cost
		}
	}
}

func (u UsageRow) done() UsageRow {
	u.CostUSD, u.FailedCostUSD = dollars(u.cost), dollars(u.failed)
	return u
}

// each calls f with every request that the filter selects, newest first, in parts, so
// that no long read stands in the way of the writer.
func (r *Reader) each(ctx context.Context, f Filter, decisions bool, do func(*Record) error) error {
	f.Limit = maxLimit
	for f.Cursor = ""; ; {
		p, err := r.page(ctx, f, maxLimit, decisions)
		if err != nil {
			return err
		}
		for _, rec := range p.Requests {
			if err := do(rec); err != nil {
				return err
			}
		}
		if p.Next == "" {
			return nil
		}
		f.Cursor = p.Next
	}
}
