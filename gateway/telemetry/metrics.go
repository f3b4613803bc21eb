package telemetry

import (
	"net/http"
	"runtime"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Other is the label value of every model and alias that the configuration does not name;
// RuntimeKey is the one shared by all keys made at run time.
const (
	Other      = "other"
	RuntimeKey = "runtime"
)

// Buckets in seconds. The ends are a contract: 50 µs to 1 s for what the gateway itself
// takes, 0.1 to 900 s for what a request takes.
var (
	ownSeconds = []float64{
		.000_05, .000_1, .000_2, .000_35, .000_5, .000_75, .001, .002, .005, .01, .025, .05, .1, .25, .5, 1,
	}
	requestSeconds = []float64{.1, .25, .5, 1, 2, 3, 5, 8, 13, 20, 30, 45, 60, 90, 120, 180, 300, 600, 900}
	// A policy decision takes from microseconds (remembered) to its timeout.
	decisionSeconds = []float64{.000_001, .000_005, .000_01, .000_025, .000_05, .000_1, .000_25, .001, .005, .025, .1, .25, 1}
	attemptCounts   = []float64{0, 1, 2, 3, 4, 5, 6, 8, 12, 16}
)

// Build names the running binary; the Go version and the platform are added.
type Build struct{ Version, Revision string }

// Names are the label values that a configuration allows. Whatever else is reported as a
// model or an alias becomes Other, and as a key RuntimeKey.
type Names struct {
	Models  []string // public model names, aliases included
	Aliases []string
	Keys    []string // the names of the configured keys, never the keys
}

// Metrics are the gateway's metrics, in a registry of their own. Every method may be called
// from any goroutine; none takes a lock or allocates once its label set has been seen. Empty
// label values stay empty.
type Metrics struct {
	registry *prometheus.Registry
	names    atomic.Pointer[names]

	requests      *series[[3]string, prometheus.Counter]
	attempts      *series[[5]string, prometheus.Counter]
	firstAttempts *series[[1]string, prometheus.Counter]
	successAfter  *series[[1]string, prometheus.Counter]
	requestTime   prometheus.Histogram
	perRequest    prometheus.Histogram
	firstOutput   prometheus.Histogram
	overhead      prometheus.Histogram
	aborts        prometheus.Counter

	decisions    *series[[3]string, prometheus.Counter]
	decisionTime *series[[1]string, prometheus.Observer]
	overrules    *series[[1]string, prometheus.Counter]

	droppedDecisions prometheus.Counter
	compared         *series[[1]string, prometheus.Counter]
	differences      *series[[3]string, prometheus.Counter]

	policyActivated prometheus.Counter
	policyRollBacks prometheus.Counter
	policyRefused   *series[[1]string, prometheus.Counter]
	policyNotKept   *series[[1]string, prometheus.Counter]

	circuits       *series[[3]string, prometheus.Gauge]
	circuitVec     *prometheus.GaugeVec
	investigations *series[[1]string, prometheus.Gauge]
	ledgerQueue    prometheus.Gauge

	pluginTime *series[[2]string, prometheus.Observer]
	traps      prometheus.Counter
	refused    *series[[2]string, prometheus.Counter]
	tokens     *series[[2]string, prometheus.Counter]
	cost       *series[[2]string, prometheus.Counter]
	tasks      *series[[3]string, prometheus.Counter]
}

// names is Names as immutable sets.
type names struct{ models, aliases, keys map[string]struct{} }

// NewMetrics returns the metrics, with those of the Go runtime, the process and the build
// beside them. Until Allow is called no model, alias or key is known.
func NewMetrics(b Build) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry()}
	m.Allow(Names{})
	m.registerRequests()
	m.registerState()
	m.registerProcess(b)
	return m
}

func (m *Metrics) registerRequests() {
	m.requests = counters[[3]string](m, "interlock_requests_total",
		"Requests that ended, by terminal reason.", "endpoint", "model", "terminal")
	m.attempts = counters[[5]string](m, "interlock_attempts_total",
		"Attempts that ended; the outcome is success or the failure class.", "group", "channel", "model", "cause", "outcome")
	m.firstAttempts = counters[[1]string](m, "interlock_first_attempts_total",
		"First attempts of requests: the raw success rate, before any recovery.", "outcome")
	m.successAfter = counters[[1]string](m, "interlock_success_after_total",
		"Requests that succeeded, by the cause of the attempt that answered.", "cause")
	m.requestTime = m.histogram("interlock_request_seconds",
		"Time from a request's head to its last byte.", requestSeconds)
	m.perRequest = m.histogram("interlock_attempts_per_request",
		"Attempts that a request took.", attemptCounts)
	m.firstOutput = m.histogram("interlock_time_to_first_output_seconds",
		"Time from a request's head to its first meaningful output downstream.", requestSeconds)
	m.overhead = m.histogram("interlock_gateway_overhead_seconds",
		"Time that the gateway itself took of a request: without queues, backoff and upstreams.", ownSeconds)
	m.aborts = m.counter("interlock_upstream_aborts_total",
		"Upstream calls that were aborted because the caller had left, or at the end of a drain.")
	m.tokens = counters[[2]string](m, "interlock_tokens_total",
		"Tokens of all attempts, by kind.", "model", "kind")
	m.cost = counters[[2]string](m, "interlock_cost_usd_total",
		"Cost of all attempts in US dollars.", "model", "key")
	m.tasks = counters[[3]string](m, "interlock_task_outcomes_total",
		"What callers said became of an answer.", "alias", "cause", "outcome")
}

func (m *Metrics) registerState() {
	m.decisions = counters[[3]string](m, "interlock_decisions_total",
		"Policy decisions, by verdict and reason.", "point", "verdict", "reason")
	m.decisionTime = timers[[1]string](m, "interlock_decision_seconds",
		"Time of one policy decision, remembered ones included.", decisionSeconds, "point")
	m.overrules = counters[[1]string](m, "interlock_interlock_overrules_total",
		"Verdicts of a policy that an interlock turned into stop.", "name")
	m.droppedDecisions = m.counter("interlock_decision_log_dropped_total",
		"Policy decisions that the decision log has lost: what takes them was too slow or away.")
	m.compared = counters[[1]string](m, "interlock_policy_candidate_compared_total",
		"Policy decisions that the candidate was asked about, too.", "point")
	m.differences = counters[[3]string](m, "interlock_policy_candidate_differences_total",
		"Policy decisions that the candidate and the revision in use make differently.", "point", "class", "key")
	m.policyActivated = m.counter("interlock_policy_activations_total",
		"Policy revisions that a change of a bundle put in force.")
	m.policyRefused = counters[[1]string](m, "interlock_policy_refused_total",
		"Changes of a policy bundle that were refused, and failures to read one; the one before decides on.", "bundle")
	m.policyRollBacks = m.counter("interlock_policy_rollbacks_total",
		"Policy revisions that were taken out of force because their decisions kept timing out.")
	m.policyNotKept = counters[[1]string](m, "interlock_policy_not_kept_total",
		"Policy bundles that are in force and could not be kept on disk for a start without their server.", "bundle")
	m.circuits, m.circuitVec = gauges[[3]string](m, "interlock_circuit_state",
		"State of a circuit: 0 closed, 1 half_open, 2 open.", "group", "channel", "model")
	m.investigations, _ = gauges[[1]string](m, "interlock_investigations_open",
		"Investigations that nobody has closed yet.", "kind")
	m.ledgerQueue = m.gauge("interlock_ledger_queue", "Records that wait for the ledger's writer.")
	m.pluginTime = timers[[2]string](m, "interlock_plugin_call_seconds",
		"Time of one call into a plugin.", ownSeconds, "plugin", "function")
	m.traps = m.counter("interlock_plugin_traps_total", "Calls into a plugin that trapped or overran their budget.")
	m.refused = counters[[2]string](m, "interlock_plugin_refused_total",
		"Results of a plugin that the host did not take, by what was wrong with them.", "plugin", "reason")
}

func (m *Metrics) registerProcess(b Build) {
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "interlock_build_info", Help: "The running binary; always 1.",
		ConstLabels: prometheus.Labels{
			"version": b.Version, "revision": b.Revision,
			"goversion": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH,
		},
	})
	info.Set(1)
	m.registry.MustRegister(info, collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
}

// Registry returns the registry, to gather from or to add collectors to.
func (m *Metrics) Registry() *prometheus.Registry { return m.registry }

// Handler serves the metrics in the formats that Prometheus asks for.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{Registry: m.registry})
}

// Allow says which label values count from now on: the configuration's, at each of its
// generations.
func (m *Metrics) Allow(n Names) {
	m.names.Store(&names{models: set(n.Models), aliases: set(n.Aliases), keys: set(n.Keys)})
}

func set(list []string) map[string]struct{} {
	s := make(map[string]struct{}, len(list))
	for _, v := range list {
		s[v] = struct{}{}
	}
	return s
}

func allowed(s map[string]struct{}, v, instead string) string {
	if v == "" {
		return ""
	}
	if _, ok := s[v]; ok {
		return v
	}
	return instead
}

func (m *Metrics) model(v string) string { return allowed(m.names.Load().models, v, Other) }
func (m *Metrics) alias(v string) string { return allowed(m.names.Load().aliases, v, Other) }
func (m *Metrics) key(v string) string   { return allowed(m.names.Load().keys, v, RuntimeKey) }

func counters[K labels](m *Metrics, name, help string, labels ...string) *series[K, prometheus.Counter] {
	vec := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	m.registry.MustRegister(vec)
	return newSeries[K](vec.WithLabelValues)
}

func timers[K labels](m *Metrics, name, help string, buckets []float64, labels ...string) *series[K, prometheus.Observer] {
	vec := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
	m.registry.MustRegister(vec)
	return newSeries[K](vec.WithLabelValues)
}

func gauges[K labels](m *Metrics, name, help string, labels ...string) (*series[K, prometheus.Gauge], *prometheus.GaugeVec) {
	vec := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	m.registry.MustRegister(vec)
	return newSeries[K](vec.WithLabelValues), vec
}

func (m *Metrics) histogram(name, help string, buckets []float64) prometheus.Histogram {
	h := prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets})
	m.registry.MustRegister(h)
	return h
}

func (m *Metrics) counter(name, help string) prometheus.Counter {
	c := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	m.registry.MustRegister(c)
	return c
}

func (m *Metrics) gauge(name, help string) prometheus.Gauge {
	g := prometheus.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	m.registry.MustRegister(g)
	return g
}
