package interlock.failure_test

import data.interlock.failure

answered := {
	"failure": {
		"adapter_class": "unknown",
		"transport": "none",
		"status": 500,
		"provider_code": "",
		"provider_type": "",
		"phase": "before_headers",
		"request_sent": true,
		"retry_after_present": false,
	},
	"channel": {"group": "g", "name": "c", "provider": "p", "region": "unknown"},
	"model": "m",
}

but(changes) := json.patch(answered, [{"op": "replace", "path": path, "value": value} |
	some path, value in changes
])

test_statuses if {
	expected := {
		302: "malformed_answer", 400: "client_invalid", 401: "upstream_auth", 402: "upstream_auth",
		403: "unknown", 404: "model_unavailable", 408: "timeout", 409: "unknown", 413: "client_invalid",
		418: "unknown", 422: "client_invalid", 429: "rate_limited", 500: "server_error", 501: "server_error",
		502: "server_error", 503: "server_error", 504: "server_error", 524: "server_error",
		529: "overloaded", 599: "server_error", 600: "unknown", 999: "unknown", 200: "unknown", 0: "unknown",
	}
	every status, class in expected {
		failure.decision.class == class with input as but({"/failure/status": status})
	}
}

test_transport if {
	expected := {
		"dns": "network", "connect": "network", "tls": "network", "reset": "network", "eof": "network",
		"clock_connect": "timeout", "clock_write": "timeout", "clock_first_byte": "timeout",
		"clock_first_output": "timeout", "clock_idle": "timeout", "clock_total": "timeout",
		"clock_reserve": "timeout", "malformed": "malformed_answer", "aborted": "cancelled",
	}
	every transport, class in expected {
		given := but({"/failure/status": 0, "/failure/transport": transport})
		failure.decision.class == class with input as given
	}
}

test_a_cut_error_answer_goes_by_its_status if {
	failure.decision.class == "server_error" with input as but({"/failure/transport": "eof"})
}

test_the_adapter_knows_better if {
	failure.decision.class == "overloaded" with input as but({"/failure/adapter_class": "overloaded"})
	failure.decision.reason == "adapter" with input as but({"/failure/adapter_class": "overloaded"})
}

test_codes if {
	given := but({"/failure/status": 429, "/failure/provider_code": "insufficient_quota"})
	failure.decision == {
		"class": "upstream_auth",
		"reason": "provider_code",
		"rule": "failure.provider_code",
		"health": "ignore",
		"scope": "account",
		"isolate": true,
	} with input as given
}

test_types if {
	given := but({"/failure/status": 200, "/failure/phase": "before_output", "/failure/provider_type": "overloaded_error"})
	failure.decision.class == "overloaded" with input as given
	failure.decision.reason == "provider_type" with input as given
}

test_a_catch_all_type_does_not_speak_for_a_status if {
	given := but({"/failure/status": 401, "/failure/provider_type": "invalid_request_error"})
	failure.decision.class == "upstream_auth" with input as given
	quota := but({"/failure/status": 429, "/failure/provider_code": "context_length_exceeded"})
	failure.decision.class == "rate_limited" with input as quota
}

test_a_403_takes_nothing_out_but_for_the_account if {
	failure.decision.isolate == false with input as but({"/failure/status": 403})
	content := but({"/failure/status": 403, "/failure/provider_code": "content_policy_violation"})
	failure.decision.class == "content_filtered" with input as content
	model := but({"/failure/status": 403, "/failure/provider_code": "model_not_found"})
	failure.decision.class == "model_unavailable" with input as model
	account := but({"/failure/status": 403, "/failure/provider_code": "account_deactivated"})
	failure.decision.isolate with input as account
}

test_after_output_it_is_a_broken_stream if {
	every transport in ["none", "reset", "eof", "clock_idle"] {
		given := but({"/failure/status": 200, "/failure/phase": "after_output", "/failure/transport": transport})
		failure.decision.class == "partial_stream" with input as given
		failure.decision.health == "counts" with input as given
	}
	told := but({"/failure/status": 200, "/failure/phase": "after_output", "/failure/adapter_class": "overloaded"})
	failure.decision.class == "partial_stream" with input as told
	checked := but({"/failure/status": 200, "/failure/phase": "after_output", "/failure/adapter_class": "schema_invalid"})
	failure.decision.class == "schema_invalid" with input as checked
	left := but({"/failure/status": 200, "/failure/phase": "after_output", "/failure/transport": "aborted"})
	failure.decision.class == "cancelled" with input as left
}

test_effects if {
	expected := {
		"client_invalid": ["ignore", "channel_model"],
		"context_overflow": ["ignore", "channel_model"],
		"gateway_denied": ["ignore", "channel_model"],
		"upstream_auth": ["ignore", "account"],
		"model_unavailable": ["counts", "channel_model"],
		"network": ["counts", "channel_model"],
		"timeout": ["counts", "channel_model"],
		"rate_limited": ["ignore", "account_model"],
		"overloaded": ["counts", "channel_model"],
		"server_error": ["counts", "channel_model"],
		"malformed_answer": ["counts", "channel_model"],
		"empty_completion": ["counts", "channel_model"],
		"schema_invalid": ["counts", "capability:json_schema"],
		"refusal": ["ignore", "channel_model"],
		"content_filtered": ["ignore", "channel_model"],
		"cancelled": ["ignore", "channel_model"],
		"partial_stream": ["counts", "channel_model"],
		"side_effect_unknown": ["ignore", "channel_model"],
	}
	every class, effect in expected {
		decision := failure.decision with input as but({"/failure/adapter_class": class})
		decision.class == class
		decision.health == effect[0]
		decision.scope == effect[1]
		decision.isolate == object.get({"upstream_auth": true}, class, false)
	}
}

test_a_clock_of_the_caller_counts_against_nobody if {
	every transport in ["clock_total", "clock_reserve"] {
		failure.decision.health == "ignore" with input as but({"/failure/status": 0, "/failure/transport": transport})
	}
	failure.decision.health == "counts" with input as but({"/failure/status": 0, "/failure/transport": "clock_first_byte"})
}

test_overrides_of_a_provider if {
	overrides := {"p": {
		"codes": {"our_pool_is_full": "overloaded"},
		"status": {"498": "overloaded"},
		"effects": {"rate_limited": {"scope": "account"}},
	}}
	code := but({"/failure/provider_code": "our_pool_is_full", "/failure/adapter_class": "server_error"})
	failure.decision.class == "overloaded" with input as code with data.interlock.overrides.providers as overrides
	failure.decision.reason == "provider_override" with input as code with data.interlock.overrides.providers as overrides
	status := but({"/failure/status": 498})
	failure.decision.class == "overloaded" with input as status with data.interlock.overrides.providers as overrides
	limited := but({"/failure/status": 429})
	failure.decision.scope == "account" with input as limited with data.interlock.overrides.providers as overrides
	failure.decision.scope == "account_model" with input as limited
	elsewhere := but({"/failure/status": 498, "/channel/provider": "q"})
	failure.decision.class == "unknown" with input as elsewhere with data.interlock.overrides.providers as overrides
}

test_an_override_by_type if {
	overrides := {"p": {"types": {"warming": "overloaded"}, "status": {"400": "server_error"}}}
	given := but({"/failure/status": 400, "/failure/provider_type": "warming"})
	failure.decision.class == "overloaded" with input as given with data.interlock.overrides.providers as overrides
	other := but({"/failure/status": 400})
	failure.decision.class == "server_error" with input as other with data.interlock.overrides.providers as overrides
}

# A code speaks before a type, and a type before a status.
test_the_closest_override_of_a_provider_speaks if {
	overrides := {"p": {
		"codes": {"c": "overloaded"},
		"types": {"t": "timeout"},
		"status": {"400": "server_error"},
	}}
	given := but({"/failure/status": 400, "/failure/provider_code": "c", "/failure/provider_type": "t"})
	failure.decision.class == "overloaded" with input as given with data.interlock.overrides.providers as overrides
	less := but({"/failure/status": 400, "/failure/provider_type": "t"})
	failure.decision.class == "timeout" with input as less with data.interlock.overrides.providers as overrides
}

test_an_override_with_an_effect_of_its_own if {
	overrides := {"p": {
		"codes": {"warming": {"class": "overloaded", "health": "ignore"}},
		"effects": {"overloaded": {"scope": "channel", "health": "counts"}},
	}}
	given := but({"/failure/status": 400, "/failure/provider_code": "warming"})
	failure.decision == {
		"class": "overloaded",
		"reason": "provider_override",
		"rule": "failure.provider_override",
		"health": "ignore",
		"scope": "channel",
		"isolate": false,
	} with input as given with data.interlock.overrides.providers as overrides

	# What the code says holds for what it classified only.
	plain := but({"/failure/status": 529})
	failure.decision.health == "counts" with input as plain with data.interlock.overrides.providers as overrides
	failure.decision.scope == "channel" with input as plain with data.interlock.overrides.providers as overrides
}

test_an_override_does_not_speak_after_output if {
	overrides := {"p": {"codes": {"warming": {"class": "overloaded", "health": "ignore"}}}}
	given := but({"/failure/status": 200, "/failure/phase": "after_output", "/failure/provider_code": "warming"})
	failure.decision.class == "partial_stream" with input as given with data.interlock.overrides.providers as overrides
	failure.decision.health == "counts" with input as given with data.interlock.overrides.providers as overrides
}
