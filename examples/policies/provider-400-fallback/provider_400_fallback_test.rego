package provider_400_fallback_test

import data.interlock.failure

answered(provider, code) := {
	"failure": {
		"adapter_class": "client_invalid", "transport": "none", "status": 400, "provider_code": code,
		"provider_type": "invalid_request_error", "phase": "before_headers", "request_sent": true,
		"retry_after_present": false,
	},
	"channel": {"group": "g", "name": "c", "provider": provider, "region": "unknown"},
	"model": "m",
}

test_this_400_is_the_routes_fault if {
	decision := failure.decision with input as answered("acme", "engine_cold")
	decision.class == "model_unavailable"
	decision.health == "ignore"
	decision.reason == "provider_override"
}

test_any_other_400_is_the_callers_fault if {
	failure.decision.class == "client_invalid" with input as answered("acme", "bad_parameter")
	failure.decision.class == "client_invalid" with input as answered("other", "engine_cold")
}
