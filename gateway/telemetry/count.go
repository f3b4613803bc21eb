package telemetry

import "time"

// The words of the vocabulary that this package has to know.
const (
	success    = "success"
	initial    = "initial"
	policyStop = "policy_stop"
)

// AttemptCount is what one attempt counts for.
type AttemptCount struct {
	Group, Channel, Model string // Model: the public name
	Cause                 string // initial, same_route_retry, …
	Outcome               string // success, or the failure class
}

// CountAttempt counts an attempt that ended; one with the cause initial is also a first
// attempt.
func (m *Metrics) CountAttempt(a AttemptCount) {
	m.attempts.of([5]string{a.Group, a.Channel, m.model(a.Model), a.Cause, a.Outcome}).Inc()
	if a.Cause == initial {
		m.firstAttempts.of([1]string{a.Outcome}).Inc()
	}
}

// RequestCount is what one request counts for.
type RequestCount struct {
	Endpoint, Model string // Model: the public name asked for, alias or model
	Terminal        string
	Cause           string // of the attempt that answered; counted where the terminal is success
	Attempts        int
	Took            time.Duration
	Overhead        time.Duration
}

// CountRequest counts a request that ended.
func (m *Metrics) CountRequest(r RequestCount) {
	m.requests.of([3]string{r.Endpoint, m.model(r.Model), r.Terminal}).Inc()
	if r.Terminal == success {
		m.successAfter.of([1]string{r.Cause}).Inc()
	}
	m.perRequest.Observe(float64(r.Attempts))
	m.requestTime.Observe(seconds(r.Took))
	m.overhead.Observe(seconds(r.Overhead))
}

// CountRefused counts a request that never got past the front: it is in no ledger. The
// endpoint may be empty.
func (m *Metrics) CountRefused(endpoint string) {
	m.requests.of([3]string{endpoint, "", policyStop}).Inc()
}

// FirstOutput records how long a caller waited for the first meaningful output.
func (m *Metrics) FirstOutput(d time.Duration) { m.firstOutput.Observe(seconds(d)) }

// UpstreamAborted counts an upstream call that was aborted because the caller had left, or at the
// end of a drain.
func (m *Metrics) UpstreamAborted() { m.aborts.Inc() }

// CountDecision counts a policy decision and the time it took. The reason is the policy's
// own word; a policy that makes one up per request ends in one shared series.
func (m *Metrics) CountDecision(point, verdict, reason string, took time.Duration) {
	m.decisions.of([3]string{point, verdict, reason}).Inc()
	m.decisionTime.of([1]string{point}).Observe(seconds(took))
}

// CountDroppedDecisions counts decisions that the decision log has lost.
func (m *Metrics) CountDroppedDecisions(n int64) { m.droppedDecisions.Add(float64(n)) }

// CountPolicyActivated counts a policy revision that a change of a bundle put in force.
func (m *Metrics) CountPolicyActivated() { m.policyActivated.Inc() }

// CountPolicyRefused counts a change of a bundle that was refused. The bundle is the
// configuration's name for it, here and below.
func (m *Metrics) CountPolicyRefused(bundle string) { m.policyRefused.of([1]string{bundle}).Inc() }

// CountPolicyRollBack counts a revision that was rolled back.
func (m *Metrics) CountPolicyRollBack() { m.policyRollBacks.Inc() }

// CountPolicyNotKept counts a bundle that could not be kept on disk.
func (m *Metrics) CountPolicyNotKept(bundle string) { m.policyNotKept.of([1]string{bundle}).Inc() }

// CountCompared counts a decision that the policy's candidate was asked about, too.
func (m *Metrics) CountCompared(point string) { m.compared.of([1]string{point}).Inc() }

// CountDifference counts a decision that the policy's candidate and the revision in use make
// differently. The class is the failure's, "none" before one; key is the caller's by name.
func (m *Metrics) CountDifference(point, class, key string) {
	m.differences.of([3]string{point, class, m.key(key)}).Inc()
}

// CountOverrule counts a verdict that the interlock of that name turned into stop.
func (m *Metrics) CountOverrule(name string) { m.overrules.of([1]string{name}).Inc() }

// CountTokens adds tokens of one kind (input, output, cached, reasoning).
func (m *Metrics) CountTokens(model, kind string, n int64) {
	if n > 0 {
		m.tokens.of([2]string{m.model(model), kind}).Add(float64(n))
	}
}

// CountCost adds the cost of an attempt in US dollars. Key is the caller's key by name.
func (m *Metrics) CountCost(model, key string, usd float64) {
	if usd > 0 {
		m.cost.of([2]string{m.model(model), m.key(key)}).Add(usd)
	}
}

// CountTask counts what a caller said became of an answer: success or failure.
func (m *Metrics) CountTask(alias, cause, outcome string) {
	m.tasks.of([3]string{m.alias(alias), cause, outcome}).Inc()
}

// CountPluginCall records one call into a plugin.
func (m *Metrics) CountPluginCall(plugin, function string, took time.Duration) {
	m.pluginTime.of([2]string{plugin, function}).Observe(seconds(took))
}

// CountPluginTrap counts a call into a plugin that trapped or overran its budget.
func (m *Metrics) CountPluginTrap() { m.traps.Inc() }

// CountPluginRefused counts a result of a plugin that the host did not take. plugin is a name of
// the configuration, reason a word of the host's.
func (m *Metrics) CountPluginRefused(plugin, reason string) {
	m.refused.of([2]string{plugin, reason}).Inc()
}

// seconds renders a duration; one that a clock's step made negative is zero.
func seconds(d time.Duration) float64 { return max(0, d.Seconds()) }
