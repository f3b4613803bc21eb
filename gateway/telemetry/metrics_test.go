package telemetry

import (
	"fmt"
	"net/http/httptest"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// contract is every name and label set that dashboards outside rely on.
var contract = map[string]string{
	"interlock_requests_total":                     "endpoint,model,terminal",
	"interlock_request_seconds":                    "",
	"interlock_attempts_total":                     "cause,channel,group,model,outcome",
	"interlock_first_attempts_total":               "outcome",
	"interlock_success_after_total":                "cause",
	"interlock_attempts_per_request":               "",
	"interlock_decisions_total":                    "point,reason,verdict",
	"interlock_decision_seconds":                   "point",
	"interlock_interlock_overrules_total":          "name",
	"interlock_decision_log_dropped_total":         "",
	"interlock_policy_activations_total":           "",
	"interlock_policy_refused_total":               "bundle",
	"interlock_policy_rollbacks_total":             "",
	"interlock_policy_not_kept_total":              "bundle",
	"interlock_policy_candidate_compared_total":    "point",
	"interlock_policy_candidate_differences_total": "class,key,point",
	"interlock_circuit_state":                      "channel,group,model",
	"interlock_investigations_open":                "kind",
	"interlock_plugin_call_seconds":                "function,plugin",
	"interlock_plugin_traps_total":                 "",
	"interlock_plugin_refused_total":               "plugin,reason",
	"interlock_tokens_total":                       "kind,model",
	"interlock_cost_usd_total":                     "key,model",
	"interlock_task_outcomes_total":                "alias,cause,outcome",
	"interlock_time_to_first_output_seconds":       "",
	"interlock_gateway_overhead_seconds":           "",
	"interlock_ledger_queue":                       "",
	"interlock_upstream_aborts_total":              "",
}

// everything reports each metric once.
func everything(m *Metrics) {
	m.CountAttempt(AttemptCount{"primary", "eu", "gpt-5-mini", "initial", "success"})
	m.CountRequest(RequestCount{"chat_completions", "gpt-5-mini", "success", "initial", 1, time.Second, time.Millisecond})
	m.CountRefused("")
	m.FirstOutput(time.Second)
	m.UpstreamAborted()
	m.CountDecision("replay", "stop", "class_not_replayed", 90*time.Microsecond)
	m.CountDroppedDecisions(2)
	m.CountCompared("replay")
	m.CountDifference("replay", "overloaded", "web-app")
	m.CountPolicyActivated()
	m.CountPolicyRefused("platform")
	m.CountPolicyRollBack()
	m.CountPolicyNotKept("platform")
	m.CountOverrule("committed")
	m.CountTokens("gpt-5-mini", "input", 7)
	m.CountCost("gpt-5-mini", "web-app", 0.25)
	m.CountTask("support", "initial", "success")
	m.CountPluginCall("anthropic", "translate", time.Millisecond)
	m.CountPluginTrap()
	m.CountPluginRefused("anthropic", "header")
	m.SetCircuit("primary", "eu", "gpt-5-mini", "open")
	m.SetInvestigations("isolated_account", 1)
	m.SetLedgerQueue(3)
}

func configured() *Metrics {
	m := NewMetrics(Build{Version: "v1", Revision: "abc"})
	m.Allow(Names{Models: []string{"gpt-5-mini", "support"}, Aliases: []string{"support"}, Keys: []string{"web-app"}})
	return m
}

// gather returns the metrics of ours by name.
func gather(t *testing.T, m *Metrics) map[string]*dto.MetricFamily {
	t.Helper()
	list, err := m.Registry().Gather()
	require.NoError(t, err)
	found := map[string]*dto.MetricFamily{}
	for _, f := range list {
		if strings.HasPrefix(f.GetName(), "interlock_") {
			found[f.GetName()] = f
		}
	}
	return found
}

func TestContract(t *testing.T) {
	m := configured()
	everything(m)
	found := gather(t, m)
	require.Contains(t, found, "interlock_build_info")
	delete(found, "interlock_build_info")
	require.Len(t, found, len(contract))
	for name, labels := range contract {
		require.Contains(t, found, name)
		var have []string
		for _, l := range found[name].Metric[0].Label {
			have = append(have, l.GetName())
		}
		sort.Strings(have)
		require.Equal(t, labels, strings.Join(have, ","), name)
	}
}

func TestBuckets(t *testing.T) {
	m := configured()
	everything(m)
	found := gather(t, m)
	for name, ends := range map[string][2]float64{
		"interlock_gateway_overhead_seconds":     {50e-6, 1},
		"interlock_request_seconds":              {0.1, 900},
		"interlock_time_to_first_output_seconds": {0.1, 900},
	} {
		b := found[name].Metric[0].Histogram.Bucket
		require.InDelta(t, ends[0], b[0].GetUpperBound(), 1e-12, name)
		require.InDelta(t, ends[1], b[len(b)-1].GetUpperBound(), 1e-12, name)
	}
}

// value finds one series by its label values, in the order of the labels' names.
func value(t *testing.T, m *Metrics, name string, labels ...string) float64 {
	t.Helper()
	for _, metric := range gather(t, m)[name].GetMetric() {
		var have []string
		for _, l := range metric.Label {
			have = append(have, l.GetValue())
		}
		if fmt.Sprint(have) == fmt.Sprint(labels) {
			return metric.GetCounter().GetValue() + metric.GetGauge().GetValue()
		}
	}
	require.Failf(t, "no such series", "%s %v in %v", name, labels, gather(t, m)[name])
	return 0
}

func TestDerivedCounts(t *testing.T) {
	m := configured()
	for _, a := range []AttemptCount{
		{"primary", "eu", "gpt-5-mini", "initial", "network"},
		{"primary", "eu", "gpt-5-mini", "same_route_retry", "network"},
		{"backup", "us", "gpt-5-mini", "same_contract_fallback", "success"},
	} {
		m.CountAttempt(a)
	}
	m.CountRequest(RequestCount{Endpoint: "chat_completions", Model: "support", Terminal: "success", Cause: "same_contract_fallback", Attempts: 3})
	m.CountRequest(RequestCount{Endpoint: "chat_completions", Model: "support", Terminal: "exhausted", Cause: "", Attempts: 2})
	require.InDelta(t, 1, value(t, m, "interlock_first_attempts_total", "network"), 0)
	require.Len(t, gather(t, m)["interlock_first_attempts_total"].Metric, 1)
	require.InDelta(t, 1, value(t, m, "interlock_success_after_total", "same_contract_fallback"), 0)
	require.Len(t, gather(t, m)["interlock_success_after_total"].Metric, 1)
	require.InDelta(t, 5, gather(t, m)["interlock_attempts_per_request"].Metric[0].Histogram.GetSampleSum(), 0)
}

// TestLabelsComeFromConfig: what a caller writes never becomes a label value.
func TestLabelsComeFromConfig(t *testing.T) {
	m := configured()
	for i := range 50 {
		text := fmt.Sprintf("caller-text-%d", i)
		m.CountRequest(RequestCount{Endpoint: "chat_completions", Model: text, Terminal: "policy_stop"})
		m.CountAttempt(AttemptCount{"g", "c", text, "initial", "unknown"})
		m.CountTokens(text, "input", 1)
		m.CountCost(text, text, 1)
		m.CountTask(text, "initial", "failure")
		m.SetCircuit("g", "c", text, "closed")
	}
	require.InDelta(t, 50, value(t, m, "interlock_requests_total", "chat_completions", Other, "policy_stop"), 0)
	require.InDelta(t, 50, value(t, m, "interlock_cost_usd_total", RuntimeKey, Other), 0)
	require.InDelta(t, 50, value(t, m, "interlock_task_outcomes_total", Other, "initial", "failure"), 0)
	body := scrape(m)
	require.NotContains(t, body, "caller-text")
	require.Contains(t, body, "go_goroutines")
}

func scrape(m *Metrics) string {
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	return w.Body.String()
}

// TestSeriesAreBounded: a policy that invents a reason per request cannot grow the memory.
func TestSeriesAreBounded(t *testing.T) {
	calls := 0
	s := newSeries[[1]string](func(v ...string) string { calls++; return v[0] })
	big := make(map[[1]string]string, maxSeries)
	for i := range maxSeries {
		big[[1]string{fmt.Sprint(i)}] = ""
	}
	s.known.Store(&big)
	require.Equal(t, Other, s.of([1]string{"one too many"}))
	require.Len(t, *s.known.Load(), maxSeries)
	require.Equal(t, "", s.of([1]string{"17"}))
}

// TestLabelsAreCopied: a value may lie in a request's buffer, which is used again.
func TestLabelsAreCopied(t *testing.T) {
	s := newSeries[[2]string](func(v ...string) *string { return &v[1] })
	a := s.of([2]string{"x", "caf\xe9"})
	require.Equal(t, "caf\uFFFD", *a)
	require.Same(t, a, s.of([2]string{"x", "caf\xe9"}), "cleaned once, found again")
	require.Len(t, *s.known.Load(), 1)
}

func TestCircuits(t *testing.T) {
	m := configured()
	for state, want := range map[string]float64{"closed": 0, "half_open": 1, "open": 2} {
		m.SetCircuit("primary", "eu", "gpt-5-mini", state)
		require.InDelta(t, want, value(t, m, "interlock_circuit_state", "eu", "primary", "gpt-5-mini"), 0)
	}
	m.SetCircuit("primary", "gone", "gpt-5-mini", "open")
	m.SetCircuit("primary", "eu", "gone-from-a-kept-channel", "open")
	m.ShowCircuits(func(show func(group, channel, model, state string)) {
		show("primary", "eu", "gpt-5-mini", "half_open")
		show("primary", "eu", "a name of a caller's", "closed")
	})
	require.Len(t, gather(t, m)["interlock_circuit_state"].Metric, 2)
	require.InDelta(t, 1, value(t, m, "interlock_circuit_state", "eu", "primary", "gpt-5-mini"), 0)
	require.InDelta(t, 0, value(t, m, "interlock_circuit_state", "eu", "primary", Other), 0)
	m.SetCircuit("primary", "gone", "gpt-5-mini", "half_open")
	require.InDelta(t, 1, value(t, m, "interlock_circuit_state", "gone", "primary", "gpt-5-mini"), 0)
}

func TestNegativesAreNoCounts(t *testing.T) {
	m := configured()
	m.CountTokens("gpt-5-mini", "input", -1)
	m.CountCost("gpt-5-mini", "web-app", -1)
	m.FirstOutput(-time.Second)
	require.NotContains(t, gather(t, m), "interlock_tokens_total")
	require.InDelta(t, 0, gather(t, m)["interlock_time_to_first_output_seconds"].Metric[0].Histogram.GetSampleSum(), 0)
}

func TestMetricsHammer(t *testing.T) {
	m := configured()
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 200 {
				everything(m)
			}
		})
	}
	wg.Go(func() {
		for range 20 {
			m.Allow(Names{Models: []string{"gpt-5-mini"}, Keys: []string{"web-app"}})
			m.ShowCircuits(func(func(group, channel, model, state string)) {})
			_ = scrape(m)
		}
	})
	wg.Wait()
	require.InDelta(t, 1600, value(t, m, "interlock_first_attempts_total", "success"), 0)
}

// TestHotPathDoesNotAllocate guards what every request calls.
func TestHotPathDoesNotAllocate(t *testing.T) {
	m := configured()
	everything(m)
	require.Zero(t, testing.AllocsPerRun(100, func() { everything(m) }))
}
