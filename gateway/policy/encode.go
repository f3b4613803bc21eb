package policy

import (
	"time"

	"github.com/interlock-gateway/interlock/gateway/failure"
)

// A sink takes an input's facts, in one fixed order: as JSON for the record, as OPA's terms
// for the evaluation, as paths for the check of what a point's rules may read. Each input
// says its facts once, so that the three cannot differ.
type sink interface {
	open(name string)
	close()
	text(name, value string)
	flag(name string, value bool)
	number(name string, value int64)
	ratio(name string, value float64)
	raw(name, json string) // a JSON array or object
}

// asked is what the four inputs are: facts that can be written down.
type asked interface{ facts(s sink) }

// known writes a name, or "unknown" where there is none.
func known(s sink, name, value string) {
	if value == "" {
		value = "unknown"
	}
	s.text(name, value)
}

// measured writes a number, or "unknown" where it is negative.
func measured(s sink, name string, value float64) {
	if value < 0 {
		s.text(name, "unknown")
		return
	}
	s.ratio(name, value)
}

// classWord returns the class's word, and none's where there is no class.
func classWord(c failure.Class, none string) string {
	if c == failure.None {
		return none
	}
	return c.String()
}

func (in *AdmissionInput) facts(s sink) {
	s.open("key")
	known(s, "name", in.Key.Name)
	s.raw("labels", in.Key.Labels.JSON())
	s.close()
	in.Request.facts(s)
	s.open("caller")
	s.text("substitution", in.Caller.Substitution.String())
	s.text("budget", in.Caller.Budget)
	s.close()
	in.Detail.facts(s)
}

func (r *Request) facts(s sink) {
	s.open("request")
	known(s, "endpoint", r.Endpoint)
	known(s, "kind", r.Kind)
	known(s, "model", r.Model)
	s.text("alias", r.Alias)
	s.flag("stream", r.Stream)
	s.raw("modalities", r.Modalities.JSON())
	s.flag("tools", r.Tools)
	s.flag("hosted_tools", r.HostedTools)
	s.flag("parallel_tool_calls", r.ParallelTools)
	s.text("structured_output", r.StructuredOutput.String())
	s.text("side_effects", r.SideEffects.String())
	s.flag("idempotent", r.Idempotent)
	s.close()
}

func (in *FailureInput) facts(s sink) {
	f := &in.Failure
	s.open("failure")
	s.text("adapter_class", classWord(f.AdapterClass, "unknown"))
	s.text("transport", f.Transport.String())
	s.number("status", int64(f.Status))
	s.text("provider_code", f.ProviderCode)
	s.text("provider_type", f.ProviderType)
	s.text("phase", f.Phase.String())
	s.flag("request_sent", f.RequestSent)
	s.flag("retry_after_present", f.RetryAfterPresent)
	s.close()
	s.open("channel")
	known(s, "group", in.Channel.Group)
	known(s, "name", in.Channel.Name)
	known(s, "provider", in.Channel.Provider)
	known(s, "region", in.Channel.Region)
	s.close()
	known(s, "model", in.Model)
	in.Detail.facts(s)
}

func (in *ReplayInput) facts(s sink) {
	s.open("failure")
	s.text("class", classWord(in.Failure.Class, "none"))
	s.text("phase", in.Failure.Phase.String())
	s.flag("request_sent", in.Failure.RequestSent)
	s.close()
	r := &in.Request
	s.open("request")
	known(s, "endpoint", r.Endpoint)
	known(s, "kind", r.Kind)
	s.text("alias", r.Alias)
	s.flag("idempotent", r.Idempotent)
	s.text("side_effects", r.SideEffects.String())
	s.text("structured_output", r.StructuredOutput.String())
	s.flag("stream", r.Stream)
	s.text("release", r.Release.String())
	s.close()
	labels(s, in.Labels)
	s.open("attempt")
	s.number("number", int64(in.Attempt.Number))
	s.number("same_route", int64(in.Attempt.SameRoute))
	s.number("same_group", int64(in.Attempt.SameGroup))
	s.text("cause", in.Attempt.Cause.String())
	s.close()
	s.open("budget")
	s.number("attempts_left", int64(in.Budget.AttemptsLeft))
	s.text("time_left", in.Budget.TimeLeft.String())
	s.text("retry_after", in.Budget.RetryAfter.String())
	s.flag("retry_after_fits", in.Budget.RetryAfterFits)
	s.close()
	s.open("candidates")
	s.number("same_route", int64(in.Candidates.SameRoute))
	s.number("same_contract", int64(in.Candidates.SameContract))
	s.number("same_contract_schema_verified", int64(in.Candidates.SameContractSchemaVerified))
	s.number("substitutes", int64(in.Candidates.Substitutes))
	s.close()
	in.Detail.facts(s)
}

func (in *SubstitutionInput) facts(s sink) {
	in.Request.facts(s)
	labels(s, in.Labels)
	s.open("alias")
	known(s, "name", in.Alias.Name)
	s.number("version", int64(in.Alias.Version))
	s.raw("requires", in.Alias.Requires.JSON())
	s.raw("quality_gates", in.Alias.QualityGates.JSON())
	s.close()
	s.open("requested")
	known(s, "model", in.Requested.Name)
	in.Requested.Price.facts(s)
	s.close()
	c := &in.Candidate
	s.open("candidate")
	known(s, "model", c.Model)
	c.Price.facts(s)
	s.raw("capabilities", c.Capabilities.JSON())
	s.text("context_window", c.ContextWindow.String())
	s.open("evidence")
	measured(s, "task_success_rate", c.Evidence.TaskSuccessRate)
	measured(s, "schema_valid_rate", c.Evidence.SchemaValidRate)
	measured(s, "safety_pass_rate", c.Evidence.SafetyPassRate)
	measured(s, "age_hours", float64(c.Evidence.AgeHours))
	s.close()
	s.close()
	s.open("caller")
	s.text("substitution", in.Substitution.String())
	s.close()
	s.open("failure")
	s.text("class", classWord(in.Class, "none"))
	s.close()
	in.Detail.facts(s)
}

func (p Price) facts(s sink) {
	s.open("price")
	measured(s, "input", p.Input)
	measured(s, "output", p.Output)
	s.close()
}

func labels(s sink, labels Object) {
	s.open("key")
	s.raw("labels", labels.JSON())
	s.close()
}

// facts writes the free numbers, where there are any.
func (d *Detail) facts(s sink) {
	if d == nil {
		return
	}
	s.open("detail")
	now := int64(-1)
	if !d.Now.IsZero() {
		now = d.Now.UnixMilli()
	}
	s.number("now_ms", now)
	s.number("elapsed_ms", millis(d.Elapsed))
	s.number("time_left_ms", millis(d.TimeLeft))
	s.number("retry_after_ms", millis(d.RetryAfter))
	s.number("body_bytes", max(d.BodyBytes, -1))
	s.number("max_output_tokens", max(d.MaxOutputTokens, -1))
	s.close()
}

func millis(d time.Duration) int64 {
	if d < 0 {
		return -1
	}
	return d.Milliseconds()
}

// unknownDetail stands in where a rule reads detail and the caller has none.
var unknownDetail = &Detail{Elapsed: -1, TimeLeft: -1, RetryAfter: -1, BodyBytes: -1, MaxOutputTokens: -1}
