package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// scene is one request of the demonstration, and how it goes.
type scene struct {
	title   string
	path    string
	model   string
	prompt  string
	extra   string // further members of the body, with a leading comma
	stream  bool
	headers []string      // name, value pairs
	leaves  bool          // the caller goes away behind the first words
	after   time.Duration // the caller waits so long before the request
	want    outcome
}

// outcome is what the caller and the ledger must say of a request.
type outcome struct {
	status   int
	cause    string // interlock-cause; "" where nobody answered
	code     string // of the error, that of a stream's last event included; "" = none
	terminal string
	attempts []step
}

// step is one attempt: its cause, the channel it went to, and the class of its failure.
type step struct{ cause, channel, class string }

const (
	chatPath      = "/v1/chat/completions"
	responsesPath = "/v1/responses"

	initial        = "initial"
	sameRouteRetry = "same_route_retry"
	sameContract   = "same_contract_fallback"
	otherModel     = "model_substitution"
)

var scenes = []scene{
	{
		title: "Nothing goes wrong.",
		path:  chatPath, model: "gpt-4.1-mini", prompt: "Say hello.",
		want: outcome{status: 200, cause: initial, terminal: "success", attempts: []step{{initial, "main/north", ""}}},
	},
	{
		title: "Work with side effects breaks after it was sent: it may have been done, so it is not done twice.",
		path:  responsesPath, model: "gpt-4.1-mini", prompt: "Send the invoices.", extra: `,"background":true`,
		want: outcome{status: 502, code: "outcome_unknown", terminal: "policy_stop", attempts: []step{
			{initial, "main/north", "network"},
		}},
	},
	{
		title: "The stream breaks before its first word. A lone blip: the same route is asked again.",
		path:  chatPath, model: "gpt-4.1-mini", prompt: "Say hello, and stumble.", stream: true,
		want: outcome{status: 200, cause: sameRouteRetry, terminal: "success", attempts: []step{
			{initial, "main/north", "network"}, {sameRouteRetry, "main/north", ""},
		}},
	},
	{
		title: "The caller leaves in the middle of a stream: the provider's work ends, too.",
		path:  chatPath, model: "gpt-4.1-mini", prompt: "Tell a long story.", stream: true, leaves: true,
		want: outcome{status: 200, cause: initial, terminal: "cancelled", attempts: []step{
			{initial, "main/north", "cancelled"},
		}},
	},
	{
		title: "The caller's own mistake is not masked by another attempt.",
		path:  chatPath, model: "gpt-4.1-mini", prompt: "Say hello.", extra: `,"temperature":9`,
		want: outcome{status: 400, code: "invalid_value", terminal: "policy_stop", attempts: []step{
			{initial, "main/north", "client_invalid"},
		}},
	},
	{
		title: "A rate limit, and no equal route: the gateway waits as long as Retry-After says.",
		path:  chatPath, model: "gpt-4o-mini", prompt: "Say hello, though you are busy.",
		want: outcome{status: 200, cause: sameRouteRetry, terminal: "success", attempts: []step{
			{initial, "other/east", "rate_limited"}, {sameRouteRetry, "other/east", ""},
		}},
	},
	{
		title: "503. An untried equal route comes before a sick one again.",
		path:  chatPath, model: "gpt-4.1-mini", prompt: "Say hello, though north is down.",
		want: outcome{status: 200, cause: sameContract, terminal: "success", attempts: []step{
			{initial, "main/north", "server_error"}, {sameContract, "main/south", ""},
		}},
	},
	{
		title: "A head, and then silence. The clock for the first output ends the attempt.",
		path:  chatPath, model: "gpt-4.1-mini", prompt: "Say hello, though north is silent.", stream: true,
		want: outcome{status: 200, cause: sameContract, terminal: "success", attempts: []step{
			{initial, "main/north", "timeout"}, {sameContract, "main/south", ""},
		}},
	},
	{
		title: "A dead credential. It is isolated at once, for every request.",
		path:  chatPath, model: "gpt-4.1", prompt: "Say hello.",
		want: outcome{status: 200, cause: sameContract, terminal: "success", attempts: []step{
			{initial, "main/north-old", "upstream_auth"}, {sameContract, "main/south", ""},
		}},
	},
	{
		title: "The same again: the isolated channel is not tried.",
		path:  chatPath, model: "gpt-4.1", prompt: "Say hello once more.",
		want: outcome{status: 200, cause: initial, terminal: "success", attempts: []step{{initial, "main/south", ""}}},
	},
	{
		title: "The stream is cut behind its first words. They are out: nothing is replayed.",
		path:  chatPath, model: "gpt-4.1-mini", prompt: "Say something, and be cut.", stream: true,
		want: outcome{status: 200, cause: initial, code: "partial_stream", terminal: "partial", attempts: []step{
			{initial, "main/north", "partial_stream"},
		}},
	},
	{
		title: "Every equal route is down. The alias approves another model; the caller is told.",
		path:  chatPath, model: "assistant", prompt: "Say hello in an outage.",
		want: outcome{status: 200, cause: otherModel, terminal: "success", attempts: []step{
			{initial, "main/north", "server_error"},
			{sameContract, "main/south", "server_error"},
			{sameRouteRetry, "main/south", "server_error"},
			{otherModel, "other/east", ""},
		}},
	},
	{
		title: "The same, but the caller forbids another model: an error, and no substitution.",
		path:  chatPath, model: "assistant", prompt: "Say hello in an outage.", headers: []string{"interlock-substitution", "deny"},
		want: outcome{status: 502, code: "routes_exhausted", terminal: "exhausted", attempts: []step{
			{initial, "main/north", "server_error"}, {sameContract, "main/south", "server_error"}, {sameRouteRetry, "main/south", "server_error"},
		}},
	},
	{
		title: "Five failures in a row have opened north's circuit: it is not tried.",
		path:  chatPath, model: "gpt-4.1-mini", prompt: "Say hello.",
		want: outcome{status: 200, cause: initial, terminal: "success", attempts: []step{{initial, "main/south", ""}}},
	},
	{
		title: "A second later one request is let through to see. It is answered, and the circuit closes.",
		path:  chatPath, model: "gpt-4.1-mini", prompt: "Say hello.", after: 1200 * time.Millisecond,
		want: outcome{status: 200, cause: initial, terminal: "success", attempts: []step{{initial, "main/north", ""}}},
	},
}

// body is the request's body.
func (sc *scene) body() string {
	b := fmt.Sprintf(`{"model":%q`, sc.model)
	if sc.path == responsesPath {
		b += fmt.Sprintf(`,"input":%q`, sc.prompt)
	} else {
		b += fmt.Sprintf(`,"messages":[{"role":"user","content":%q}]`, sc.prompt)
	}
	if sc.stream {
		b += `,"stream":true`
	}
	return b + sc.extra + "}"
}

// differs lists what went otherwise than told.
func (sc *scene) differs(seen *sight) []string {
	if seen.err != nil {
		return []string{seen.err.Error()}
	}
	var faults []string
	differ := func(what string, want, got any) {
		if want != got {
			faults = append(faults, fmt.Sprintf("%s is %v, not %v", what, got, want))
		}
	}
	got := outcome{status: seen.status, cause: seen.header.Get("interlock-cause"), code: seen.code, terminal: seen.record.Terminal}
	for i := range seen.record.Attempts {
		a := &seen.record.Attempts[i]
		got.attempts = append(got.attempts, step{a.Cause, a.Group + "/" + a.Channel, a.Class})
	}
	differ("the status", sc.want.status, got.status)
	differ("the cause", or(sc.want.cause, "none"), or(got.cause, "none"))
	differ("the error's code", or(sc.want.code, "none"), or(got.code, "none"))
	differ("the terminal reason", sc.want.terminal, got.terminal)
	if !slices.Equal(sc.want.attempts, got.attempts) {
		faults = append(faults, "the attempts are not "+told(sc.want.attempts))
	}
	if sc.want.cause == otherModel && seen.header.Get("interlock-substitution") == "" {
		faults = append(faults, "the substitution is not disclosed")
	}
	return faults
}

func told(steps []step) string {
	all := make([]string, len(steps))
	for i, s := range steps {
		all[i] = s.cause + " " + s.channel + " " + or(s.class, "success")
	}
	return strings.Join(all, ", ")
}

func or(s, other string) string {
	if s == "" {
		return other
	}
	return s
}
