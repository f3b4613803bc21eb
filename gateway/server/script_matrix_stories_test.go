package server

import "strings"

// A failing is one way in which a provider, or who asked, ends an attempt. Each is one story of
// the matrix, told in every world (see course), with and without possible side effects.
type failing struct {
	class, phase string // as the ledger has them

	// fault is what the provider does with every call; stream and whole where it differs.
	fault, stream, whole string
	// onConnection is what happens to its connections instead.
	onConnection string
	// reached is the provider's URL, where it is not the real one.
	reached string
	// notSent: the request surely never left, so that side effects do not matter.
	notSent bool
	// clock is the attempt's clock that has to fire; else the clocks are long.
	clock string
	// leaves: the caller goes away when the provider has come this far.
	leaves bool
	// structured: the request promises a schema and wants the answer whole.
	structured bool

	// stands is the class whose cell the story stands for where the ledger has another: what
	// would have been this class ends, after output, as partial_stream; what only a policy calls
	// so, as unknown.
	stands string
	// declared: no provider can bring this about; the operator's overrides call it so.
	declared bool
}

// cell is the class and phase that the story covers.
func (f *failing) cell() string {
	if f.stands != "" {
		return f.stands + " " + f.phase
	}
	return f.class + " " + f.phase
}

// inside is an error that comes in place of an answer's first output, under a 200.
func inside(code string) string {
	return `error {"code": "` + code + `", "message": "told inside"}`
}

// after is a fault behind some output.
func after(fault string) string { return "role\n  text \"one \"\n  " + fault }

const emptyAnswer = `answer "" usage 7 0`

var failings = []failing{
	{class: "client_invalid", phase: "before_headers", fault: "status 400 code invalid_value"},
	{class: "client_invalid", phase: "before_output", fault: inside("invalid_value")},
	{class: "partial_stream", stands: "client_invalid", phase: "after_output", stream: after(inside("invalid_value"))},

	{class: "context_overflow", phase: "before_headers", fault: "status 400 code context_length_exceeded"},
	{class: "context_overflow", phase: "before_output", fault: inside("context_length_exceeded")},
	{class: "partial_stream", stands: "context_overflow", phase: "after_output", stream: after(inside("context_length_exceeded"))},

	{class: "gateway_denied", phase: "before_headers", declared: true},
	{class: "gateway_denied", phase: "before_output", declared: true},

	{class: "upstream_auth", phase: "before_headers", fault: "status 401 code invalid_api_key"},
	{class: "upstream_auth", phase: "before_headers", fault: "status 402"},
	{class: "upstream_auth", phase: "before_headers", fault: "status 429 code insufficient_quota"},
	{class: "upstream_auth", phase: "before_headers", fault: "status 403 code account_suspended"},
	{class: "upstream_auth", phase: "before_output", fault: inside("insufficient_quota")},
	{class: "partial_stream", stands: "upstream_auth", phase: "after_output", stream: after(inside("insufficient_quota"))},

	{class: "model_unavailable", phase: "before_headers", fault: "status 404 code model_not_found"},
	{class: "model_unavailable", phase: "before_output", fault: inside("model_not_found")},
	{class: "partial_stream", stands: "model_unavailable", phase: "after_output", stream: after(inside("model_not_found"))},

	{class: "network", phase: "before_headers", notSent: true, reached: "http://" + strings.Repeat("x", 64) + ".invalid/v1"},     // no name can be so long
	{class: "network", phase: "before_headers", notSent: true, reached: "http://127.0.0.1:1/v1"},                                 // refused
	{class: "network", phase: "before_headers", notSent: true, onConnection: "wire \"no tls\"\n  cut fin", reached: "{{tls}}"},   // no TLS
	{class: "network", phase: "before_headers", fault: "cut reset"},                                                              // sent, no head
	{class: "network", phase: "before_headers", fault: "cut fin"},                                                                // likewise, in peace
	{class: "network", phase: "before_headers", fault: "wire \"HTTP/1.1 200 OK\\r\\nContent-Le\"\n  cut reset"},                  // in the head
	{class: "network", phase: "before_output", fault: "head\n  cut reset"},                                                       // headers, no body
	{class: "network", phase: "before_output", stream: "role\n  cut fin", whole: "content-length 999\n  json {\"id\": \"x\"}"},   // no output
	{class: "partial_stream", stands: "network", phase: "after_output", stream: after("cut reset")},                              // output
	{class: "partial_stream", stands: "partial_stream", phase: "after_output", stream: "role\n  text \"one \"\n  end"},           // no finish
	{class: "timeout", phase: "before_headers", notSent: true, clock: "connect", onConnection: "stall", reached: "{{tls}}"},      // connect
	{class: "timeout", phase: "before_headers", clock: "first_byte", fault: "stall"},                                             // awaiting headers
	{class: "timeout", phase: "before_headers", clock: "first_byte", fault: "wire \"HTTP/1.1 200 OK\\r\\nContent-Le\"\n  stall"}, // in the head
	{class: "timeout", phase: "before_headers", fault: "status 408"},                                                             // told
	{class: "timeout", phase: "before_output", clock: "first_output", fault: "head\n  stall"},                                    // no body
	{class: "timeout", phase: "before_output", clock: "first_output", stream: "role\n  comment \"still here\"\n  stall"},         // no output
	{class: "timeout", phase: "before_output", fault: inside("request_timeout")},                                                 // told inside
	{class: "partial_stream", stands: "timeout", phase: "after_output", clock: "idle", stream: after("stall")},                   // output
	{class: "rate_limited", phase: "before_headers", fault: "status 429\n  header retry-after-ms 20"},
	{class: "rate_limited", phase: "before_headers", fault: "status 429"}, // without a word
	{class: "rate_limited", phase: "before_output", fault: inside("rate_limit_exceeded")},
	{class: "partial_stream", stands: "rate_limited", phase: "after_output", stream: after(inside("rate_limit_exceeded"))},
	{class: "overloaded", phase: "before_headers", fault: "status 529"},
	{class: "overloaded", phase: "before_headers", fault: "status 503 code overloaded"},
	{class: "overloaded", phase: "before_output", fault: inside("overloaded_error")},
	{class: "partial_stream", stands: "overloaded", phase: "after_output", stream: after(inside("overloaded_error"))},
	{class: "server_error", phase: "before_headers", fault: "status 500"},
	{class: "server_error", phase: "before_headers", fault: "status 524"},
	{class: "server_error", phase: "before_output", fault: inside("server_error")},
	{class: "partial_stream", stands: "server_error", phase: "after_output", stream: after(inside("server_error"))},
	{class: "malformed_answer", phase: "before_headers", fault: "status 307\n  header Location \"http://127.0.0.1:1/\""}, // a redirect
	{class: "malformed_answer", phase: "before_headers", fault: "wire \"no HTTP at all\\r\\n\\r\\n\"\n  cut fin"},
	{class: "malformed_answer", phase: "before_output", fault: "html \"<html>busy</html>\""},
	{class: "malformed_answer", phase: "before_output", whole: "body \"{\\\"id\\\": \" type \"application/json\"", stream: "event \"{not json\"\n  answer \"late\""},
	{class: "partial_stream", stands: "malformed_answer", phase: "after_output", stream: "role\n  text \"one \"\n  delta {\"tool_calls\": [{\"index\": 0, \"id\": \"c\", \"type\": \"function\", \"function\": {\"name\": \"f\", \"arguments\": \"{\"}}]}\n  event \"{not json\"\n  finish tool_calls\n  done"},
	{class: "empty_completion", phase: "before_headers", declared: true},
	{class: "empty_completion", phase: "before_output", fault: emptyAnswer},
	{class: "schema_invalid", phase: "before_headers", declared: true},
	{class: "schema_invalid", phase: "before_output", structured: true, fault: "answer \"{\\\"city\\\": 7}\" usage 7 2"},
	{class: "unknown", stands: "refusal", phase: "before_headers", declared: true}, // nothing was delivered
	{class: "unknown", stands: "refusal", phase: "before_output", declared: true},
	{class: "content_filtered", phase: "before_headers", fault: "status 400 code content_policy_violation"},
	{class: "content_filtered", phase: "before_headers", fault: "status 403 code content_filter"},
	{class: "content_filtered", phase: "before_output", fault: inside("content_filter")},
	{class: "partial_stream", stands: "content_filtered", phase: "after_output", stream: after(inside("content_filter"))},
	{class: "cancelled", phase: "before_headers", leaves: true, fault: "stall"},
	{class: "cancelled", phase: "before_output", leaves: true, fault: "head\n  stall"},
	{class: "cancelled", phase: "after_output", leaves: true, stream: after("stall")},
	{class: "unknown", stands: "cancelled", phase: "before_headers", declared: true}, // nobody has left
	{class: "unknown", stands: "cancelled", phase: "before_output", declared: true},
	{class: "partial_stream", phase: "before_headers", declared: true},
	{class: "partial_stream", phase: "before_output", declared: true},
	{class: "side_effect_unknown", phase: "before_headers", declared: true},
	{class: "side_effect_unknown", phase: "before_output", declared: true},
	{class: "unknown", phase: "before_headers", fault: "status 418"},
	{class: "unknown", phase: "before_headers", fault: "status 403"},
	{class: "unknown", phase: "before_output", fault: `error {"code": 418, "message": "told inside"}`},
	{class: "partial_stream", stands: "unknown", phase: "after_output", stream: after(`error {"code": 418, "message": "told inside"}`)},
}
