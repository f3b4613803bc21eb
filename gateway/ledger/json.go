package ledger

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/interlock-gateway/interlock/gateway/failure"
)

// The JSON form is a contract: every key is always there, an absent fact is null. It is
// written by hand because a list of a thousand requests should not be reflected upon.

// AppendJSON appends the record as JSON, with decisions or without.
func (r *Record) AppendJSON(dst []byte, decisions bool) []byte {
	o := object{b: append(dst, '{')}
	o.text("request_id", r.ID)
	o.text("correlation_id", r.CorrelationID)
	o.text("user_action", r.UserAction)
	o.text("key", r.Key)
	o.text("endpoint", r.Endpoint)
	o.text("alias", r.Alias)
	o.text("requested_model", r.RequestedModel)
	o.text("answered_model", r.AnsweredModel)
	o.bool("stream", r.Stream)
	o.time("received_at", r.ReceivedAt)
	o.time("finished_at", r.FinishedAt)
	o.millis("deadline_ms", r.Deadline)
	o.word("terminal", r.Terminal.String())
	o.status("status", r.Status)
	o.bool("output_started", r.OutputStarted)
	o.optionalWord("cause", r.Cause.Value.String(), r.Cause.Known)
	o.optional("client_retry", r.ClientRetry)
	o.int("amplification", int64(r.Amplification()))
	o.optional("contract_version", r.ContractVersion)
	o.outcome("task_outcome", r.Outcome)
	o.text("policy_revision", r.PolicyRevision)
	o.usage("usage", r.Usage())
	o.usd("cost_usd", r.Cost())
	o.optional("overhead_us", Opt[int64]{r.Overhead.Value.Microseconds(), r.Overhead.Known})
	o.name("attempts")
	o.b = append(o.b, '[')
	for i := range r.Attempts {
		if i > 0 {
			o.b = append(o.b, ',')
		}
		o.b = r.Attempts[i].appendJSON(o.b)
	}
	o.b = append(o.b, ']')
	if decisions {
		o.decisions(r.Decisions)
	}
	return append(o.b, '}')
}

func (a *Attempt) appendJSON(dst []byte) []byte {
	o := object{b: append(dst, '{')}
	open := a.End == failure.Open
	o.int("number", int64(a.Number))
	o.word("cause", a.Cause.String())
	o.text("group", a.Group)
	o.text("channel", a.Channel)
	o.text("provider", a.Provider)
	o.text("model", a.Model)
	o.text("upstream_model", a.UpstreamModel)
	o.text("endpoint", a.Endpoint)
	o.text("reason", a.Reason)
	o.int("delay_ms", a.Delay.Milliseconds())
	o.text("circuit", a.Circuit)
	o.time("opened_at", a.OpenedAt)
	o.millis("sent_ms", a.Sent)
	o.millis("headers_ms", a.Headers)
	o.millis("first_output_ms", a.FirstOutput)
	o.millis("closed_ms", a.Closed)
	o.status("status", a.Status)
	o.optionalWord("class", a.Class.String(), !open || a.Class != failure.None)
	o.optionalWord("phase", a.Phase.Value.String(), a.Phase.Known)
	o.text("provider_code", a.ProviderCode)
	o.bool("output_started", a.OutputStarted)
	o.bool("cancelled", a.Cancelled)
	o.text("upstream_request_id", a.UpstreamRequestID)
	o.text("contract", a.Contract)
	o.bool("unverified", a.Unverified)
	o.millis("time_left_ms", a.TimeLeft)
	o.millis("retry_after_ms", a.RetryAfter)
	o.millis("connected_ms", a.Connected)
	o.millis("last_byte_ms", a.LastByte)
	o.usage("usage", a.Usage)
	o.usd("cost_usd", a.CostUSD)
	o.word("billable", a.Billable.String())
	o.int("skipped_events", int64(a.SkippedEvents))
	o.word("terminal", a.End.String())
	return append(o.b, '}')
}

// AppendJSON appends the page as `{"requests": […], "next": "…"}`, without decisions.
func (p Page) AppendJSON(dst []byte) []byte {
	dst = append(dst, `{"requests":[`...)
	for i, r := range p.Requests {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = r.AppendJSON(dst, false)
	}
	dst = append(dst, `],"next":`...)
	return append(appendString(dst, p.Next), '}')
}

// AppendJSON appends the report as JSON: the names of the groups with their values (null
// where absent) beside the sums, and the sums of all.
func (u UsageReport) AppendJSON(dst []byte) []byte {
	o := object{b: append(dst, '{')}
	o.name("group_by")
	o.b = append(o.b, '[')
	for i, g := range u.GroupBy {
		if i > 0 {
			o.b = append(o.b, ',')
		}
		o.b = appendString(o.b, g)
	}
	o.b = append(o.b, ']')
	o.time("since", u.Since)
	o.name("rows")
	o.b = append(o.b, '[')
	for i := range u.Rows {
		if i > 0 {
			o.b = append(o.b, ',')
		}
		o.b = u.Rows[i].appendJSON(o.b, u.GroupBy)
	}
	o.b = append(o.b, ']')
	o.name("total")
	o.b = u.Total.appendJSON(o.b, nil)
	return append(o.b, '}')
}

func (u *UsageRow) appendJSON(dst []byte, groups []string) []byte {
	o := object{b: append(dst, '{')}
	for i, g := range groups {
		o.text(g, u.Group[i])
	}
	o.int("requests", u.Requests)
	o.int("attempts", u.Attempts)
	o.int("input_tokens", u.Input)
	o.int("output_tokens", u.Output)
	o.int("cached_tokens", u.Cached)
	o.int("reasoning_tokens", u.Reasoning)
	o.usd("cost_usd", Some(u.CostUSD))
	o.usd("failed_cost_usd", Some(u.FailedCostUSD))
	return append(o.b, '}')
}

// AppendToolCallsJSON appends the record's tool calls as an array. They are no part of
// the record's own JSON.
func (r *Record) AppendToolCallsJSON(dst []byte) []byte {
	dst = append(dst, '[')
	for i := range r.ToolCalls {
		c := &r.ToolCalls[i]
		if i > 0 {
			dst = append(dst, ',')
		}
		o := object{b: append(dst, '{')}
		o.int("attempt", int64(c.Attempt))
		o.int("choice", int64(c.Choice))
		o.int("index", int64(c.Index))
		o.text("call_id", c.CallID)
		o.text("tool", c.Name)
		o.word("arguments_sha256", hex.EncodeToString(c.ArgumentsSHA256[:]))
		dst = append(o.b, '}')
	}
	return append(dst, ']')
}

// object appends the members of one JSON object.
type object struct{ b []byte }

func (o *object) name(name string) {
	if last := o.b[len(o.b)-1]; last != '{' {
		o.b = append(o.b, ',')
	}
	o.b = append(append(append(o.b, '"'), name...), '"', ':')
}

func (o *object) null() { o.b = append(o.b, "null"...) }

// text is null where it is empty, word is not.
func (o *object) text(name, v string) { o.optionalWord(name, v, v != "") }

func (o *object) word(name, v string) { o.optionalWord(name, v, true) }

func (o *object) optionalWord(name, v string, known bool) {
	o.name(name)
	if !known {
		o.null()
		return
	}
	o.b = appendString(o.b, v)
}

func (o *object) bool(name string, v bool) {
	o.name(name)
	o.b = strconv.AppendBool(o.b, v)
}

func (o *object) int(name string, v int64) { o.optional(name, Some(v)) }

func (o *object) optional(name string, v Opt[int64]) {
	o.name(name)
	if !v.Known {
		o.null()
		return
	}
	o.b = strconv.AppendInt(o.b, v.Value, 10)
}

func (o *object) status(name string, v int) { o.optional(name, Opt[int64]{int64(v), v != 0}) }

func (o *object) millis(name string, v Opt[time.Duration]) {
	o.optional(name, Opt[int64]{v.Value.Milliseconds(), v.Known})
}

// time is in UTC, with nanoseconds.
func (o *object) time(name string, v time.Time) {
	o.name(name)
	if v.IsZero() {
		o.null()
		return
	}
	o.b = append(v.UTC().AppendFormat(append(o.b, '"'), "2006-01-02T15:04:05.000000000Z07:00"), '"')
}

func (o *object) usd(name string, v Opt[float64]) {
	o.name(name)
	if !v.Known {
		o.null()
		return
	}
	o.b = strconv.AppendFloat(o.b, dollars(picodollars(v.Value)), 'f', -1, 64)
}

func (o *object) usage(name string, u Usage) {
	o.name(name)
	if !u.Known() {
		o.null()
		return
	}
	in := object{b: append(o.b, '{')}
	in.optional("input_tokens", u.Input)
	in.optional("output_tokens", u.Output)
	in.optional("cached_tokens", u.Cached)
	in.optional("reasoning_tokens", u.Reasoning)
	in.bool("estimated", u.Estimated)
	o.b = append(in.b, '}')
}

func (o *object) outcome(name string, v Opt[TaskOutcome]) {
	o.name(name)
	if !v.Known {
		o.null()
		return
	}
	in := object{b: append(o.b, '{')}
	in.word("task", v.Value.Task)
	in.name("score")
	if v.Value.Score.Known {
		in.b = strconv.AppendFloat(in.b, v.Value.Score.Value, 'f', -1, 64)
	} else {
		in.null()
	}
	in.text("label", v.Value.Label)
	o.b = append(in.b, '}')
}

func (o *object) decisions(all []Decision) {
	o.name("decisions")
	o.b = append(o.b, '[')
	for i := range all {
		d := &all[i]
		if i > 0 {
			o.b = append(o.b, ',')
		}
		in := object{b: append(o.b, '{')}
		in.optional("attempt", Opt[int64]{int64(d.Attempt), d.Attempt > 0})
		in.text("point", d.Point)
		in.raw("input", d.Input)
		in.raw("output", d.Output)
		in.text("revision", d.Revision)
		o.b = append(in.b, '}')
	}
	o.b = append(o.b, ']')
}

// raw appends what is JSON already.
func (o *object) raw(name string, v []byte) {
	o.name(name)
	if len(v) == 0 {
		o.null()
		return
	}
	if bytes.IndexByte(v, '\n') >= 0 { // a line of an export is one request
		var compact bytes.Buffer
		if json.Compact(&compact, v) == nil {
			v = compact.Bytes()
		}
	}
	o.b = append(o.b, v...)
}

// appendString appends a JSON string. What is no UTF-8 becomes U+FFFD.
func appendString(dst []byte, s string) []byte {
	const digits = "0123456789abcdef"
	dst = append(dst, '"')
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c == '\n':
			dst = append(dst, '\\', 'n')
		case c < 0x20 || c == 0x7f:
			dst = append(dst, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
		case c < utf8.RuneSelf:
			dst = append(dst, c)
		default:
			r, n := utf8.DecodeRuneInString(s[i:])
			dst = utf8.AppendRune(dst, r) // RuneError for what is none
			i += n
			continue
		}
		i++
	}
	return append(dst, '"')
}
