package interlock.replay_test

import data.interlock.replay

request := {
	"endpoint": "chat_completions",
	"kind": "chat",
	"alias": "",
	"idempotent": true,
	"side_effects": "none",
	"structured_output": "none",
	"stream": false,
	"release": "stream",
}

# The first attempt of a request failed, everything is still open.
open_to_all := {
	"failure": {"class": "network", "phase": "before_headers", "request_sent": true},
	"request": request,
	"key": {"labels": {}},
	"attempt": {"number": 1, "same_route": 1, "same_group": 1, "cause": "initial"},
	"budget": {"attempts_left": 3, "time_left": "ample", "retry_after": "none", "retry_after_fits": true},
	"candidates": {"same_route": 1, "same_contract": 1, "same_contract_schema_verified": 1, "substitutes": 1},
}

failed(class, phase) := json.patch(open_to_all, [
	{"op": "replace", "path": "/failure/class", "value": class},
	{"op": "replace", "path": "/failure/phase", "value": phase},
])

but(given, changes) := json.patch(given, [{"op": "replace", "path": path, "value": value} |
	some path, value in changes
])

again := "same_route_retry"

elsewhere := "same_contract_fallback"

other := "model_substitution"

# decisions.md, "The default matrix", with everything open and a lone failure.
lone := {
	"client_invalid": ["stop"],
	"gateway_denied": ["stop"],
	"context_overflow": [other, "stop"],
	"upstream_auth": [elsewhere, other, "stop"],
	"model_unavailable": [elsewhere, other, "stop"],
	"network": [again, elsewhere, other, "stop"],
	"timeout": [elsewhere, other, again, "stop"],
	"rate_limited": [elsewhere, again, other, "stop"],
	"overloaded": [elsewhere, again, other, "stop"],
	"server_error": [elsewhere, again, other, "stop"],
	"malformed_answer": [elsewhere, other, "stop"],
	"empty_completion": [elsewhere, other, "stop"],
	"schema_invalid": [elsewhere, other, "stop"],
	"refusal": ["stop"],
	"content_filtered": ["stop"],
	"cancelled": ["stop"],
	"partial_stream": ["stop"],
	"side_effect_unknown": ["stop"],
	"unknown": ["stop"],
}

# Nothing was tried: no route of the requested model could be used.
test_no_route_to_begin_with if {
	given := but(failed("none", "before_headers"), {
		"/failure/request_sent": false,
		"/request/idempotent": false,
		"/attempt/number": 0,
		"/attempt/same_route": 0,
		"/candidates/same_route": 0,
	})
	replay.decision.actions == [elsewhere, other, "stop"] with input as given
}

# … and when the route had been asked before.
sick := object.union(lone, {
	"network": [elsewhere, other, "stop"],
	"rate_limited": [elsewhere, other, again, "stop"],
	"overloaded": [elsewhere, other, again, "stop"],
	"server_error": [elsewhere, other, again, "stop"],
})

test_every_class_before_output if {
	every class, actions in lone {
		every phase in ["before_headers", "before_output"] {
			replay.decision.actions == actions with input as failed(class, phase)
		}
	}
}

test_every_class_of_a_route_that_was_asked_before if {
	every class, actions in sick {
		every phase in ["before_headers", "before_output"] {
			given := but(failed(class, phase), {"/attempt/same_route": 2, "/attempt/number": 2})
			replay.decision.actions == actions with input as given
		}
	}
}

test_nothing_after_output if {
	every class, _ in lone {
		replay.decision.actions == ["stop"] with input as failed(class, "after_output")
		replay.decision.reason == "not_replayed" with input as failed(class, "after_output")
	}
}

test_nothing_where_it_may_happen_twice if {
	every class, _ in lone {
		given := but(failed(class, "before_headers"), {"/request/idempotent": false})
		safe := class in {"rate_limited", "upstream_auth", "model_unavailable"}
		actions := {true: lone[class], false: ["stop"]}[safe]
		replay.decision.actions == actions with input as given
	}
}

test_not_sent_is_harmless if {
	given := but(open_to_all, {"/request/idempotent": false, "/failure/request_sent": false})
	replay.decision.actions == lone.network with input as given
}

test_reason_of_what_may_happen_twice if {
	given := but(failed("server_error", "before_headers"), {"/request/idempotent": false})
	replay.decision == {"actions": ["stop"], "reason": "not_idempotent", "rule": "replay.idempotency"} with input as given
}

test_nothing_left if {
	given := but(failed("server_error", "before_output"), {
		"/candidates/same_route": 0,
		"/candidates/same_contract": 0,
		"/candidates/substitutes": 0,
	})
	replay.decision == {
		"actions": ["stop"],
		"reason": "no_candidate",
		"rule": "matrix.server_error.before_output",
	} with input as given
}

test_a_lone_failure_without_an_equal_route_is_asked_again_before_another_model if {
	every class in ["network", "server_error", "overloaded", "rate_limited"] {
		given := but(failed(class, "before_headers"), {"/candidates/same_contract": 0})
		replay.decision.actions == [again, other, "stop"] with input as given
	}
}

test_a_silent_route_is_asked_again_last if {
	given := but(failed("timeout", "before_headers"), {"/candidates/same_contract": 0})
	replay.decision.actions == [other, again, "stop"] with input as given
}

test_waiting_that_does_not_fit if {
	given := but(failed("rate_limited", "before_headers"), {
		"/budget/retry_after": "long",
		"/budget/retry_after_fits": false,
	})
	replay.decision.actions == [elsewhere, other, "stop"] with input as given
}

test_waiting_that_is_closed if {
	given := but(failed("rate_limited", "before_headers"), {"/candidates/same_route": 0, "/candidates/same_contract": 0})
	replay.decision.actions == [other, "stop"] with input as given
}

test_schema_only_on_verified_routes if {
	given := but(failed("schema_invalid", "before_output"), {"/candidates/same_contract_schema_verified": 0})
	replay.decision.actions == [other, "stop"] with input as given
}

test_reasons if {
	reason := {
		"network": "lone_failure",
		"timeout": "untried_equal_route",
		"context_overflow": "approved_substitute",
		"refusal": "not_replayed",
	}
	every class, code in reason {
		replay.decision.reason == code with input as failed(class, "before_headers")
	}
	given := but(failed("server_error", "before_headers"), {"/candidates/same_contract": 0})
	replay.decision.reason == "sick_route_again" with input as given
}

# One cell, one change.
test_a_cell_decides if {
	row := {"same_route_retry": "no", "same_contract_fallback": "no", "model_substitution": "after_same_contract"}
	replay.decision.actions == [other, "stop"] with input as open_to_all
		with data.interlock.matrix.network.before_headers as row
}

test_every_word_of_the_same_route if {
	expected := {
		"no": [elsewhere, "stop"],
		"once": [again, elsewhere, "stop"],
		"bounded": [elsewhere, again, "stop"],
		"after_retry_after": [elsewhere, again, "stop"],
		"last": [elsewhere, again, "stop"],
	}
	every word, actions in expected {
		row := {"same_route_retry": word, "same_contract_fallback": "yes", "model_substitution": "no"}
		replay.decision.actions == actions with input as open_to_all
			with data.interlock.matrix.network.before_headers as row
	}
}

test_a_word_nobody_knows_opens_nothing if {
	row := {"same_route_retry": "often", "same_contract_fallback": "maybe", "model_substitution": "why_not"}
	replay.decision.actions == ["stop"] with input as open_to_all
		with data.interlock.matrix.network.before_headers as row
}

careful := {"matrix": {"network": {"before_headers": {"same_route_retry": "no"}}}}

test_an_override_for_an_alias if {
	given := but(open_to_all, {"/request/alias": "support"})
	replay.decision == {
		"actions": [elsewhere, other, "stop"],
		"reason": "untried_equal_route",
		"rule": "overrides.alias.network.before_headers",
	} with input as given with data.interlock.overrides.aliases as {"support": careful}
	replay.decision.actions == lone.network with input as open_to_all
		with data.interlock.overrides.aliases as {"support": careful}
}

test_an_override_for_a_label if {
	given := but(open_to_all, {"/key/labels": {"team": "web"}})
	replay.decision.actions == [elsewhere, other, "stop"] with input as given
		with data.interlock.overrides.labels as {"team": {"web": careful}}
	replay.decision.rule == "overrides.label.network.before_headers" with input as given
		with data.interlock.overrides.labels as {"team": {"web": careful}}
}

test_an_override_for_a_kind if {
	given := but(open_to_all, {"/request/kind": "embeddings"})
	replay.decision.actions == [elsewhere, other, "stop"] with input as given
		with data.interlock.overrides.kinds as {"embeddings": careful}
	replay.decision.rule == "overrides.kind.network.before_headers" with input as given
		with data.interlock.overrides.kinds as {"embeddings": careful}
	replay.decision.actions == lone.network with input as open_to_all
		with data.interlock.overrides.kinds as {"embeddings": careful}
}

test_an_override_for_any_value_of_a_label if {
	given := but(open_to_all, {"/key/labels": {"team": "web"}})
	replay.decision.actions == [elsewhere, other, "stop"] with input as given
		with data.interlock.overrides.labels as {"team": {"*": careful}}
	replay.decision.actions == lone.network with input as open_to_all
		with data.interlock.overrides.labels as {"team": {"*": careful}}
}

bounded := {"matrix": {"network": {"before_headers": {"same_route_retry": "bounded"}}}}

last := {"matrix": {"network": {"before_headers": {"same_route_retry": "last"}}}}

# General to particular: kind, labels by name, alias. The later one wins.
test_a_later_exception_wins if {
	given := but(open_to_all, {"/key/labels": {"a": "1", "b": "1"}, "/request/alias": "support"})
	substitution_between := [elsewhere, again, other, "stop"]
	substitution_before := [elsewhere, other, again, "stop"]
	replay.decision.actions == substitution_before with input as given
		with data.interlock.overrides.labels as {"a": {"1": bounded}}
		with data.interlock.overrides.aliases as {"support": last}
	replay.decision.actions == substitution_between with input as given
		with data.interlock.overrides.labels as {"a": {"1": last}}
		with data.interlock.overrides.aliases as {"support": bounded}
	replay.decision.actions == substitution_before with input as given
		with data.interlock.overrides.labels as {"a": {"1": bounded}, "b": {"1": last}}
	replay.decision.actions == substitution_before with input as given
		with data.interlock.overrides.kinds as {"chat": bounded}
		with data.interlock.overrides.labels as {"b": {"1": last}}
	replay.decision.actions == substitution_before with input as given
		with data.interlock.overrides.labels as {"b": {"1": last, "*": bounded}}
}

test_a_denial_wins_whatever_comes_later if {
	given := but(open_to_all, {"/key/labels": {"team": "web"}, "/request/alias": "support"})
	replay.decision.actions == [elsewhere, other, "stop"] with input as given
		with data.interlock.overrides.labels as {"team": {"web": careful}}
		with data.interlock.overrides.aliases as {"support": last}
	replay.decision.rule == "overrides.alias.network.before_headers" with input as given
		with data.interlock.overrides.labels as {"team": {"web": careful}}
		with data.interlock.overrides.aliases as {"support": last}
}

# Cells that an exception does not name are another one's, or the matrix's.
test_cells_of_several_exceptions_add_up if {
	given := but(open_to_all, {"/key/labels": {"team": "web"}, "/request/alias": "support"})
	same := {"matrix": {"network": {"before_headers": {"same_contract_fallback": "no"}}}}
	replay.decision.actions == [other, "stop"] with input as given
		with data.interlock.overrides.labels as {"team": {"web": careful}}
		with data.interlock.overrides.aliases as {"support": same}
}

stay := {"same_contract_fallback": "no", "model_substitution": "no"}

test_every_class_and_phase_of_an_exception if {
	every class, actions in lone {
		every phase in ["before_headers", "before_output"] {
			given := but(failed(class, phase), {"/request/alias": "support"})
			replay.decision.actions == [action | some action in actions; action in [again, "stop"]] with input as given
				with data.interlock.overrides.aliases as {"support": {"matrix": {"*": {"*": stay}}}}
		}
	}
}

test_of_one_exception_the_closer_name_wins if {
	given := but(open_to_all, {"/request/alias": "support"})
	every table in [
		{"*": {"*": stay}, "network": {"*": {"same_contract_fallback": "yes"}}},
		{"*": {"*": stay, "before_headers": {}}, "network": {"before_headers": {"same_contract_fallback": "yes"}}},
		{"network": {"*": stay, "before_headers": {"same_contract_fallback": "yes"}}},
	] {
		replay.decision.actions == [again, elsewhere, "stop"] with input as given
			with data.interlock.overrides.aliases as {"support": {"matrix": table}}
	}
}

test_every_phase_is_none_after_output if {
	given := but(failed("network", "after_output"), {"/request/alias": "support"})
	open_wide := {"matrix": {"network": {"*": {"same_route_retry": "last", "same_contract_fallback": "yes"}}}}
	replay.decision.actions == ["stop"] with input as given
		with data.interlock.overrides.aliases as {"support": open_wide}
	replay.decision.reason == "not_replayed" with input as given
		with data.interlock.overrides.aliases as {"support": open_wide}
}

test_an_exception_about_something_else_is_no_rule if {
	given := but(open_to_all, {"/request/alias": "support"})
	replay.decision.rule == "matrix.network.before_headers" with input as given
		with data.interlock.overrides.aliases as {"support": {"substitution": "deny"}}
	replay.decision.actions == lone.network with input as given
		with data.interlock.overrides.aliases as {"support": {"substitution": "deny"}}
}

# An exception opens no act that may happen twice.
test_an_exception_is_below_idempotency if {
	given := but(open_to_all, {"/request/alias": "support", "/request/idempotent": false})
	replay.decision.reason == "not_idempotent" with input as given
		with data.interlock.overrides.aliases as {"support": last}
}
