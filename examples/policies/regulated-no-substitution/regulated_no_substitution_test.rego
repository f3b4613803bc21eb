package regulated_no_substitution_test

import data.interlock.admission
import data.interlock.substitution

asked(alias, labels) := {
	"key": {"name": "k", "labels": labels},
	"request": {
		"endpoint": "chat_completions", "kind": "chat", "model": "m", "alias": alias, "stream": false,
		"modalities": ["text"], "tools": false, "hosted_tools": false, "parallel_tool_calls": false,
		"structured_output": "none", "side_effects": "none", "idempotent": true,
	},
	"caller": {"substitution": "unspecified", "budget": ""},
}

substitute(labels) := {
	"request": {"kind": "chat", "alias": "support", "side_effects": "none"},
	"key": {"labels": labels},
	"alias": {"name": "support", "version": 1, "requires": {}, "quality_gates": {}},
	"requested": {"model": "m", "price": {"input": 1, "output": 2}},
	"candidate": {
		"model": "n",
		"price": {"input": 1, "output": 2},
		"capabilities": [],
		"context_window": "equal",
		"evidence": {
			"task_success_rate": "unknown", "schema_valid_rate": "unknown", "safety_pass_rate": "unknown",
			"age_hours": "unknown",
		},
	},
	"caller": {"substitution": "unspecified"},
	"failure": {"class": "server_error"},
}

test_whatever_the_value if {
	every value in ["true", "finma", "hipaa"] {
		admission.decision.substitution == "deny" with input as asked("", {"regulated": value})
		substitution.decision.reason == "denied_by_override" with input as substitute({"regulated": value})
	}
}

test_other_keys_are_as_before if {
	admission.decision.reason == "allowed" with input as asked("", {"team": "web"})
	substitution.decision.approve with input as substitute({"team": "web"})
}
