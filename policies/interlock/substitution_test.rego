package interlock.substitution_test

import data.interlock.substitution

asked := {
	"request": {"kind": "chat", "alias": "support", "side_effects": "none"},
	"key": {"labels": {"team": "web"}},
	"alias": {"name": "support", "version": 3, "requires": {}, "quality_gates": {}},
	"requested": {"model": "m", "price": {"input": 1, "output": 2}},
	"candidate": {
		"model": "n",
		"price": {"input": 1, "output": 2},
		"capabilities": ["streaming"],
		"context_window": "equal",
		"evidence": {
			"task_success_rate": "unknown",
			"schema_valid_rate": "unknown",
			"safety_pass_rate": "unknown",
			"age_hours": "unknown",
		},
	},
	"caller": {"substitution": "unspecified"},
	"failure": {"class": "server_error"},
}

but(changes) := json.patch(asked, [{"op": "replace", "path": path, "value": value} |
	some path, value in changes
])

refused(reason, rule) := {"approve": false, "reason": reason, "rule": rule, "disclosure": ""}

test_approved if {
	substitution.decision == {
		"approve": true,
		"reason": "approved",
		"rule": "substitution.default",
		"disclosure": "server_error",
	} with input as asked
	substitution.decision.approve with input as but({"/caller/substitution": "allow"})
}

test_disclosed_where_nothing_was_tried if {
	substitution.decision.disclosure == "no_route_available" with input as but({"/failure/class": "none"})
}

test_the_caller_may_forbid if {
	given := but({"/caller/substitution": "deny"})
	substitution.decision == refused("caller_forbids", "substitution.caller") with input as given
}

test_not_where_something_may_happen_twice if {
	every effects in ["possible", "unknown"] {
		given := but({"/request/side_effects": effects})
		substitution.decision == refused("side_effects_possible", "substitution.side_effects") with input as given
	}
}

test_only_a_larger_window_holds_what_overflowed if {
	every window in ["smaller", "equal", "unknown"] {
		given := but({"/failure/class": "context_overflow", "/candidate/context_window": window})
		substitution.decision == refused("window_not_larger", "substitution.context_overflow") with input as given
	}
	given := but({"/failure/class": "context_overflow", "/candidate/context_window": "larger"})
	substitution.decision.approve with input as given
}

test_a_broken_schema_wants_evidence if {
	rate := "/candidate/evidence/schema_valid_rate"
	unknown := but({"/failure/class": "schema_invalid"})
	substitution.decision == refused("not_verified", "substitution.schema_invalid") with input as unknown
	poor := but({"/failure/class": "schema_invalid", rate: 0.99})
	not substitution.decision.approve with input as poor
	flawless := but({"/failure/class": "schema_invalid", rate: 1})
	substitution.decision.approve with input as flawless
	gated := but({
		"/failure/class": "schema_invalid",
		rate: 0.99,
		"/alias/quality_gates": {"schema_valid_rate_min": 0.98},
	})
	substitution.decision.approve with input as gated
}

test_an_override_may_forbid if {
	expected := refused("denied_by_override", "substitution.overrides")
	substitution.decision == expected with input as asked
		with data.interlock.overrides.aliases as {"support": {"substitution": "deny"}}
	substitution.decision == expected with input as asked
		with data.interlock.overrides.labels as {"team": {"web": {"substitution": "deny"}}}
	substitution.decision == expected with input as asked
		with data.interlock.overrides.labels as {"team": {"*": {"substitution": "deny"}}}
	substitution.decision == expected with input as asked
		with data.interlock.overrides.kinds as {"chat": {"substitution": "deny"}}
	substitution.decision.approve with input as asked
		with data.interlock.overrides.labels as {"team": {"batch": {"substitution": "deny"}}}
}
