package interlock.admission_test

import data.interlock.admission

asked := {
	"key": {"name": "web", "labels": {"team": "web", "tier": "free"}},
	"request": {
		"endpoint": "chat_completions",
		"kind": "chat",
		"model": "m",
		"alias": "support",
		"stream": true,
		"modalities": ["text"],
		"tools": false,
		"hosted_tools": false,
		"parallel_tool_calls": false,
		"structured_output": "none",
		"side_effects": "none",
		"idempotent": true,
	},
	"caller": {"substitution": "unspecified", "budget": ""},
}

test_allowed_by_default if {
	admission.decision == {"allow": true, "reason": "allowed", "rule": "admission.default"} with input as asked
}

test_denied_by_a_label if {
	labels := {"tier": {"free": {"admission": {"allow": false, "message": "Not on this plan."}}}}
	admission.decision == {
		"allow": false,
		"reason": "denied_by_override",
		"rule": "admission.overrides",
		"message": "Not on this plan.",
	} with input as asked with data.interlock.overrides.labels as labels
}

test_a_denial_stands_whatever_the_alias_says if {
	labels := {"tier": {"free": {"admission": {"allow": false}}}}
	aliases := {"support": {"admission": {"budget": "patient"}}}
	admission.decision.allow == false with input as asked
		with data.interlock.overrides.labels as labels
		with data.interlock.overrides.aliases as aliases
}

test_narrowed if {
	labels := {"team": {"web": {"admission": {"regions": ["eu"], "budget": "quick", "substitution": "deny"}}}}
	aliases := {"support": {"admission": {"groups": ["backup"], "budget": "patient"}}}
	admission.decision == {
		"allow": true,
		"reason": "narrowed_by_override",
		"rule": "admission.overrides",
		"budget": "patient",
		"groups": ["backup"],
		"regions": ["eu"],
		"substitution": "deny",
	} with input as asked
		with data.interlock.overrides.labels as labels
		with data.interlock.overrides.aliases as aliases
}

test_an_exception_for_others_changes_nothing if {
	labels := {"team": {"batch": {"admission": {"allow": false}}}}
	admission.decision.allow with input as asked with data.interlock.overrides.labels as labels
}

test_an_exception_about_something_else_changes_nothing if {
	aliases := {"support": {"substitution": "deny"}}
	admission.decision.reason == "allowed" with input as asked with data.interlock.overrides.aliases as aliases
}

test_a_kind if {
	kinds := {"chat": {"admission": {"budget": "quick"}}}
	admission.decision.budget == "quick" with input as asked with data.interlock.overrides.kinds as kinds
}

test_any_value_of_a_label if {
	labels := {"tier": {"*": {"admission": {"budget": "quick"}}, "free": {"admission": {"budget": "short"}}}}
	admission.decision.budget == "short" with input as asked with data.interlock.overrides.labels as labels
	paid := json.patch(asked, [{"op": "replace", "path": "/key/labels/tier", "value": "paid"}])
	admission.decision.budget == "quick" with input as paid with data.interlock.overrides.labels as labels
}

# Of several lists, what stands in all of them is left, in the last one's order.
test_no_exception_widens_another_one if {
	labels := {"team": {"web": {"admission": {"regions": ["eu", "ch"], "groups": ["a", "b", "c"]}}}}
	aliases := {"support": {"admission": {"regions": ["us", "ch", "eu"], "groups": ["c", "a"]}}}
	decision := admission.decision with input as asked
		with data.interlock.overrides.labels as labels
		with data.interlock.overrides.aliases as aliases
	decision.regions == ["ch", "eu"]
	decision.groups == ["c", "a"]
}

test_lists_without_a_common_name_leave_nothing if {
	labels := {"team": {"web": {"admission": {"regions": ["eu"]}}}}
	aliases := {"support": {"admission": {"regions": ["us"]}}}
	decision := admission.decision with input as asked
		with data.interlock.overrides.labels as labels
		with data.interlock.overrides.aliases as aliases
	decision.regions == []
	not decision.groups
}
