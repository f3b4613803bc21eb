package region_pinning_test

import data.interlock.admission

asked(alias, labels) := {
	"key": {"name": "k", "labels": labels},
	"request": {
		"endpoint": "chat_completions", "kind": "chat", "model": "m", "alias": alias, "stream": false,
		"modalities": ["text"], "tools": false, "hosted_tools": false, "parallel_tool_calls": false,
		"structured_output": "none", "side_effects": "none", "idempotent": true,
	},
	"caller": {"substitution": "unspecified", "budget": ""},
}

test_pinned if {
	admission.decision.regions == ["eu", "ch"] with input as asked("", {"residency": "eu"})
	admission.decision.regions == ["ch"] with input as asked("", {"residency": "ch"})
	not admission.decision.regions with input as asked("", {"residency": "us"})
}

test_no_other_exception_widens_it if {
	decision := admission.decision with input as asked("support", {"residency": "ch"})
		with data.interlock.overrides.aliases as {"support": {"admission": {"regions": ["us", "ch"]}}}
	decision.regions == ["ch"]
}
