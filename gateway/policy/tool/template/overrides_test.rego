# Tests of the exceptions, against the default policy's own rules. The gateway does not read
# files that end in _test.rego.
package overrides_test

import data.interlock.replay

# A first attempt that failed before any answer began, with everything still open.
failed(class, alias) := {
	"failure": {"class": class, "phase": "before_headers", "request_sent": true},
	"request": {
		"endpoint": "chat_completions",
		"kind": "chat",
		"alias": alias,
		"idempotent": true,
		"side_effects": "none",
		"structured_output": "none",
		"stream": false,
		"release": "buffered",
	},
	"key": {"labels": {}},
	"attempt": {"number": 1, "same_route": 1, "same_group": 1, "cause": "initial"},
	"budget": {"attempts_left": 3, "time_left": "ample", "retry_after": "none", "retry_after_fits": true},
	"candidates": {"same_route": 1, "same_contract": 1, "same_contract_schema_verified": 1, "substitutes": 1},
}

test_checkout_goes_elsewhere_at_once if {
	decision := replay.decision with input as failed("network", "checkout")
	decision.actions[0] == "same_contract_fallback"
	not "same_route_retry" in decision.actions
}

test_other_aliases_ask_the_route_again if {
	decision := replay.decision with input as failed("network", "")
	decision.actions[0] == "same_route_retry"
}

test_other_failures_of_checkout_are_as_before if {
	every class in ["timeout", "overloaded", "rate_limited"] {
		ours := replay.decision with input as failed(class, "checkout")
		theirs := replay.decision with input as failed(class, "")
		ours.actions == theirs.actions
	}
}
