package batch_patience_test

import data.interlock.admission
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

asked(alias, labels) := {
	"key": {"name": "k", "labels": labels},
	"request": {
		"endpoint": "chat_completions", "kind": "chat", "model": "m", "alias": alias, "stream": false,
		"modalities": ["text"], "tools": false, "hosted_tools": false, "parallel_tool_calls": false,
		"structured_output": "none", "side_effects": "none", "idempotent": true,
	},
	"caller": {"substitution": "unspecified", "budget": ""},
}

batch := {"workload": "batch"}

test_the_budget if {
	admission.decision.budget == "patient" with input as asked("", batch)
	not admission.decision.budget with input as asked("", {"workload": "chat"})
}

test_a_route_is_asked_more_than_once if {
	second := json.patch(failed("network", "chat", "", batch), [{"op": "replace", "path": "/attempt/same_route", "value": 2}])
	"same_route_retry" in replay.decision.actions with input as second
}

test_it_waits_rather_than_take_another_model if {
	actions := replay.decision.actions with input as failed("rate_limited", "chat", "", batch)
	actions == ["same_contract_fallback", "same_route_retry", "stop"]
}
