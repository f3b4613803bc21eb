package alias_without_failover_test

import data.interlock.replay

failed(class, kind, alias, labels) := {
	"failure": {"class": class, "phase": "before_headers", "request_sent": true},
	"request": {
		"endpoint": "chat_completions", "kind": kind, "alias": alias, "idempotent": true, "side_effects": "none",
		"structured_output": "none", "stream": false, "release": "stream",
	},
	"key": {"labels": labels},
	"attempt": {"number": 1, "same_route": 1, "same_group": 1, "cause": "initial"},
	"budget": {"attempts_left": 3, "time_left": "ample", "retry_after": "none", "retry_after_fits": true},
	"candidates": {"same_route": 1, "same_contract": 1, "same_contract_schema_verified": 1, "substitutes": 1},
}

test_it_stays_on_its_route if {
	every class in ["network", "server_error", "overloaded", "rate_limited", "timeout"] {
		actions := replay.decision.actions with input as failed(class, "chat", "checkout", {})
		actions == ["same_route_retry", "stop"]
	}
}

test_no_other_route_answers if {
	every class in ["upstream_auth", "model_unavailable", "malformed_answer", "empty_completion", "schema_invalid"] {
		replay.decision.actions == ["stop"] with input as failed(class, "chat", "checkout", {})
	}
}

test_other_aliases_are_as_before if {
	"same_contract_fallback" in replay.decision.actions with input as failed("network", "chat", "support", {})
}
