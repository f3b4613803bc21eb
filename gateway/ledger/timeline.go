package ledger

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/interlock-gateway/interlock/gateway/failure"
)

// AppendTimeline appends a text for people: what was tried, when, why, what became of it
// and what it cost. Its form is no contract.
func (r *Record) AppendTimeline(dst []byte) []byte {
	t := timeline{b: dst}
	t.line("%s  %s  %s", r.ID, r.Endpoint, r.models())
	t.line("  key %s%s%s%s", plain(r.Key), labelled(" · user action ", r.otherAction()), labelled(" · correlation ", r.CorrelationID), labelled(" · policy ", r.PolicyRevision))
	t.line("  received %s%s", stampOf(r.ReceivedAt), deadlineOf(r.Deadline))
	if len(r.Attempts) == 0 {
		t.line("  no attempt was made")
	}
	for i := range r.Attempts {
		t.attempt(r, &r.Attempts[i])
	}
	if !r.CancelledAt.IsZero() {
		t.line("  %9s  the caller left", offset(r.CancelledAt.Sub(r.ReceivedAt)))
	}
	t.end(r)
	return t.b
}

type timeline struct{ b []byte }

func (t *timeline) line(format string, args ...any) {
	t.b = fmt.Appendf(t.b, format, args...)
	t.b = append(t.b, '\n')
}

func (t *timeline) attempt(r *Record, a *Attempt) {
	t.line("  %9s  attempt %d  %s  %s/%s  %s%s", offset(a.OpenedAt.Sub(r.ReceivedAt)), a.Number, a.Cause,
		plain(a.Group), plain(a.Channel), plain(a.UpstreamModel), labelled(" at ", a.Provider))
	why := []string{}
	if a.Reason != "" {
		why = append(why, "because "+a.Reason)
	}
	if a.Delay > 0 {
		why = append(why, "after waiting "+short(a.Delay))
	}
	if a.Circuit != "" {
		why = append(why, "circuit "+a.Circuit)
	}
	if a.TimeLeft.Known {
		why = append(why, short(a.TimeLeft.Value)+" left")
	}
	if a.Unverified {
		why = append(why, "without evidence")
	}
	if len(why) > 0 {
		t.line("             %s", strings.Join(why, ", "))
	}
	t.line("             %s", strings.Join(a.came(), ", "))
	t.line("             cost %s", a.cost())
}

// came says what became of an attempt.
func (a *Attempt) came() []string {
	if a.End == failure.Open {
		return []string{"still running"}
	}
	says := []string{a.End.String()}
	if a.Class != failure.None && a.Class.String() != a.End.String() {
		says[0] += ": " + a.Class.String()
	}
	if a.Status != 0 {
		says = append(says, "status "+strconv.Itoa(a.Status))
	}
	if a.ProviderCode != "" {
		says = append(says, "code "+plain(a.ProviderCode))
	}
	if a.Phase.Known && a.End != failure.EndSuccess {
		says = append(says, a.Phase.Value.String())
	}
	if a.RetryAfter.Known {
		says = append(says, "retry after "+short(a.RetryAfter.Value))
	}
	if a.FirstOutput.Known {
		says = append(says, "first output after "+short(a.FirstOutput.Value))
	}
	if a.Closed.Known {
		says = append(says, "ended after "+short(a.Closed.Value))
	}
	if a.SkippedEvents > 0 {
		says = append(says, strconv.Itoa(a.SkippedEvents)+" malformed events skipped")
	}
	if a.UpstreamRequestID != "" {
		says = append(says, "upstream request "+plain(a.UpstreamRequestID))
	}
	return says
}

func (a *Attempt) cost() string {
	s := usd(a.CostUSD)
	switch a.Billable {
	case BillableNo:
		s += ", not billable"
	case BillableUnknown:
		s += ", billable or not is unknown"
	}
	return s + tokens(a.Usage)
}

func (t *timeline) end(r *Record) {
	if r.Terminal == failure.Running {
		t.line("  still running")
		return
	}
	end := r.Terminal.String()
	if r.Status != 0 {
		end += ", status " + strconv.Itoa(r.Status)
	}
	if r.Cause.Known {
		end += ", answered by " + r.Cause.Value.String()
	}
	at := "?"
	if !r.FinishedAt.IsZero() {
		at = offset(r.FinishedAt.Sub(r.ReceivedAt))
	}
	t.line("  %9s  %s", at, end)
	failed := int64(0)
	for i := range r.Attempts {
		if r.Attempts[i].End != failure.EndSuccess {
			failed += picodollars(r.Attempts[i].CostUSD.Value)
		}
	}
	cost := usd(r.Cost())
	if failed > 0 {
		cost += " (" + usd(Some(dollars(failed))) + " of it for attempts that did not answer)"
	}
	t.line("  cost %s%s", cost, tokens(r.Usage()))
}

func (r *Record) models() string {
	s := plain(r.RequestedModel)
	if r.Alias != "" {
		s = plain(r.Alias) + " (" + s + ")"
	}
	if r.AnsweredModel != "" && r.AnsweredModel != r.RequestedModel {
		s += " → " + plain(r.AnsweredModel)
	}
	return s
}

func (r *Record) otherAction() string {
	if r.UserAction == r.ID {
		return ""
	}
	return r.UserAction
}

func deadlineOf(d Opt[time.Duration]) string {
	if !d.Known {
		return ""
	}
	return ", deadline " + short(d.Value)
}

func tokens(u Usage) string {
	if !u.Known() {
		return ""
	}
	count := func(v Opt[int64]) string {
		if !v.Known {
			return "?"
		}
		return strconv.FormatInt(v.Value, 10)
	}
	s := " · tokens " + count(u.Input) + " in, " + count(u.Output) + " out"
	if u.Cached.Known && u.Cached.Value > 0 {
		s += ", " + count(u.Cached) + " cached"
	}
	if u.Reasoning.Known && u.Reasoning.Value > 0 {
		s += ", " + count(u.Reasoning) + " reasoning"
	}
	if u.Estimated {
		s += " (estimated)"
	}
	return s
}

func usd(v Opt[float64]) string {
	if !v.Known {
		return "unknown"
	}
	return "$" + strconv.FormatFloat(dollars(picodollars(v.Value)), 'f', -1, 64)
}

func stampOf(t time.Time) string {
	if t.IsZero() {
		return "?"
	}
	return t.UTC().Format("2006-01-02T15:04:05.000Z07:00")
}

func offset(d time.Duration) string { return "+" + short(d) }

// short is a duration without the digits that nobody reads.
func short(d time.Duration) string {
	switch {
	case d < 0:
		return "-" + short(-d)
	case d >= time.Minute:
		return d.Round(time.Second).String()
	case d >= time.Second:
		return d.Round(10 * time.Millisecond).String()
	case d >= time.Millisecond:
		return d.Round(time.Millisecond).String()
	default:
		return d.Round(time.Microsecond).String()
	}
}

func labelled(label, s string) string {
	if s == "" {
		return ""
	}
	return label + plain(s)
}

// plain keeps what callers and providers chose from moving the terminal's cursor.
func plain(s string) string {
	if s == "" {
		return "-"
	}
	return strings.Map(func(r rune) rune {
		if r < 0x20 || r >= 0x7f && r < 0xa0 {
			return '�'
		}
		return r
	}, s)
}
