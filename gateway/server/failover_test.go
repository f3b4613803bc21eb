package server

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// sixty is the one configuration for all sixteen provider faults: an alias on a primary model
// with one approved substitute, two attempts a route, a limit on the first output, and the
// whole answer held before any of it is released.
//
// The clocks of an attempt are short so that the tests are; every row holds with them at the
// times that the page gives. Only S15, a minute of outage, is scaled, 1:20, and with it the
// clocks that matter to it: open_for is 15 s, max_open 20 s, backoff.base 1 s of a deployment's.
// max_open is what bounds how long a primary that is well again may stay unused: S15 allows
// 30 s, and the default of 2 m would not keep to it.
const sixty = `
watch: false
providers:
  primary: {adapter: openai, base_url: "{{url primary}}/v1"}
  substitute: {adapter: openai, base_url: "{{url substitute}}/v1"}
models:
  primary-model: {context_window: 8192, max_output_tokens: 4096, modalities: [text], capabilities: [streaming], price: {input: 1.00, output: 4.00}}
  substitute-model: {context_window: 128000, max_output_tokens: 8192, modalities: [text], capabilities: [streaming], price: {input: 2.00, output: 8.00}}
groups:
  - name: g
    channels:
      - {name: primary, provider: primary, credential: sk-primary-0001, models: {primary-model: {}},
         timeouts: {connect: 1s, first_byte: 1s, first_output: 2s, idle: 1s}}
      - {name: substitute, provider: substitute, credential: sk-substitute-0001, models: {substitute-model: {}},
         timeouts: {connect: 1s, first_byte: 5s, first_output: 5s, idle: 5s}}
keys:
  - {name: k, key: "{{key}}", groups: [g]}
budgets:
  interactive: {deadline: 30s, max_attempts: 6, max_attempts_per_route: 2, backoff: {base: 50ms, max: 200ms, max_wait: 20s}}
breaker: {open_for: 750ms, max_open: 1s}
aliases:
  sixty:
    model: primary-model
    requires: {modalities: [text], streaming: true}
    cross_model_fallback_allowed: true
    substitutes: [{model: substitute-model, price_ceiling: {input: 2.50, output: 10.00}}]
    release: buffered
`

const (
	askStream = `{"model":"sixty","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"count"}]}`
	askJSON   = `{"model":"sixty","messages":[{"role":"user","content":"count"}]}`

	healthySixty = "healthy words 60 usage 20 60\n"
)

// faults are the sixteen, each with what it asks beyond the whole answer.
var faults = map[string]func(*trial){
	"S01": rateLimitedOnce,
	"S02": rateLimitedForEver,
	"S03": serverErrorOnce,
	"S04": unavailableForEver,
	"S05": resetOnce,
	"S06": neverAnswers,
	"S07": slowFirstToken,
	"S08": diesAfterForty,
	"S09": silentAfterTwenty,
	"S10": invalidTenthEvent,
	"S11": withoutDone,
	"S12": promptTooLong,
	"S13": contentPolicy,
	"S14": prefillRejected,
	"S15": downForAMinute,
	"S16": billing,
}

// jsonToo are faults that are the same for an answer that is no stream, and are tried so as well.
var jsonToo = map[string]bool{"S02": true, "S03": true, "S05": true, "S12": true, "S13": true, "S16": true}

func TestFailover(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	passed := map[string]string{}
	t.Run("faults", func(t *testing.T) {
		for _, id := range sortedKeys(faults) {
			t.Run(id, func(t *testing.T) {
				t.Parallel()
				lines := failover(t, id, askStream)
				if jsonToo[id] {
					lines += "; no stream: " + failover(t, id, askJSON)
				}
				t.Logf("%s pass: stream: %s", id, lines)
				mu.Lock()
				defer mu.Unlock()
				passed[id] = lines
			})
		}
	})
	for _, id := range sortedKeys(faults) {
		verdict := "FAIL"
		if line, ok := passed[id]; ok {
			verdict = "pass: stream: " + line
		}
		t.Logf("%s %s", id, verdict)
	}
	t.Logf("%d of %d", len(passed), len(faults))
}

// TestEveryFailoverFaultHasATest notices a fault that was added to the page.
func TestEveryFailoverFaultHasATest(t *testing.T) {
	t.Parallel()
	requireEveryCase(t, "failover.md", regexp.MustCompile(`(?m)^\| (S\d+) \|`), faults)
}

// failover runs one fault on a gateway of its own and returns its line of the scorecard.
func failover(t *testing.T, id, body string) string {
	t.Helper()
	scripts := corpus(t, "failover", id)
	if scripts["substitute"] == "" {
		scripts["substitute"] = healthySixty
	}
	began := time.Now()
	if id == "S15" { // 60 s of outage at the configuration's scale
		scripts["primary"] = with(t, scripts["primary"], "for 60s", "for 3s")
	}
	tr := &trial{T: t, stand: setUp(t, scripts, sixty), body: body, stream: body == askStream}
	faults[id](tr)
	return fmt.Sprintf("%d primary and %d substitute calls, %.2f s",
		tr.providers["primary"].Count(), tr.providers["substitute"].Count(), time.Since(began).Seconds())
}

// trial is one fault as a caller lives through it.
type trial struct {
	*testing.T
	*stand
	body   string
	stream bool
}

// result is an answer to the caller, stream or not, and how it was come by.
type result struct {
	seen
	text  string
	model string // the body's
	usage [3]int
	took  time.Duration
}

// ask makes one request; the answer need not be a good one.
func (tr *trial) ask() *result {
	tr.T.Helper()
	s := tr.stand.stream(tr.body)
	require.NoError(tr.T, s.Err, "the body ends cleanly")
	return &result{seen: *s, took: s.Ended.Sub(s.Sent)}
}

// rescued makes one request, which has to be answered with all sixty words of one answer.
func (tr *trial) rescued() *result {
	tr.T.Helper()
	r := tr.ask()
	require.Equal(tr.T, 200, r.Status, r.Body)
	if tr.stream {
		out := r.whole(tr.T)
		require.Len(tr.T, out.IDs, 1, "chunks of one answer")
		require.Len(tr.T, out.Usages, 1)
		u := out.Usages[0]
		r.text, r.model, r.usage = out.Text, u.Model, [3]int{u.Usage.Prompt, u.Usage.Completion, u.Usage.Total}
	} else {
		r.text = r.content(tr.T)
		var c chunk
		decode(tr.T, r.Body, &c)
		require.NotNil(tr.T, c.Usage)
		r.model, r.usage = c.Model, [3]int{c.Usage.Prompt, c.Usage.Completion, c.Usage.Total}
	}
	require.Equal(tr.T, sixtyWords(), r.text)
	require.Equal(tr.T, [3]int{20, 60, 80}, r.usage)
	return r
}

// answeredBy demands which channel answered, and why it was asked.
func (tr *trial) answeredBy(r *result, channel, cause string) {
	tr.T.Helper()
	require.Equal(tr.T, "g/"+channel, r.Header.Get("interlock-route"))
	require.Equal(tr.T, cause, r.Header.Get("interlock-cause"))
	require.Equal(tr.T, channel+"-model", r.model, "the body's model is that of the model that answered")
	require.Equal(tr.T, channel+"-model", r.Header.Get("interlock-model"))
	if channel == "substitute" {
		require.Equal(tr.T, "primary-model", r.Header.Get("interlock-requested-model"))
		require.True(tr.T, strings.HasPrefix(r.Header.Get("interlock-substitution"), "approved; reason="), "a substitution is disclosed")
		require.Contains(tr.T, r.Body, `"cause":"model_substitution"`)
		return
	}
	require.Empty(tr.T, r.Header.Get("interlock-substitution"))
}

// made demands how many calls the two providers got.
func (tr *trial) made(primary, substitute int) {
	tr.T.Helper()
	tr.stand.calls(map[string]int{"primary": primary, "substitute": substitute})
}

// healthyAfterwards demands that the next request is answered by the primary at once.
func (tr *trial) healthyAfterwards() {
	tr.T.Helper()
	tr.answeredBy(tr.rescued(), "primary", "initial")
}

func sixtyWords() string {
	ones := strings.Fields("one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen")
	tens := strings.Fields("twenty thirty forty fifty sixty")
	words := ones
	for _, ten := range tens[:4] {
		words = append(words, ten)
		for _, one := range ones[:9] {
			words = append(words, ten+"-"+one)
		}
	}
	return strings.Join(append(words, tens[4]), " ")
}
