# What may be done after a failure, and in which order?
#
# The matrix (data) says for each class and phase what each act may be; the rules below say
# what its words mean. Only acts that the interlocks leave open are listed.
package interlock.replay

import data.interlock.matrix
import data.interlock.overrides

# Without a row there is no decision, which the gateway takes for a stop.
decision := verdict if cells

verdict := {"actions": ["stop"], "reason": "not_replayed", "rule": rule} if {
	cells == nothing
} else := {"actions": ["stop"], "reason": "not_idempotent", "rule": "replay.idempotency"} if {
	not harmless
} else := {"actions": ["stop"], "reason": "no_candidate", "rule": rule} if {
	count(acts) == 0
} else := {
	"actions": array.concat([act.action | some act in acts], ["stop"]),
	"reason": acts[0].reason,
	"rule": rule,
}

# The row of this failure: one word for each act.
cells := object.union(object.union(matrix[input.failure.class][input.failure.phase], of_labels), of_alias)

nothing := {"same_route_retry": "no", "same_contract_fallback": "no", "model_substitution": "no"}

# Exceptions: the key's labels in the labels' order, then the alias. A later one wins.
of_labels := object.union_n([row |
	some name, value in input.key.labels
	row := overrides.labels[name][value].matrix[input.failure.class][input.failure.phase]
])

default of_alias := {}

of_alias := overrides.aliases[input.request.alias].matrix[input.failure.class][input.failure.phase]

rule := concat(".", [source, input.failure.class, input.failure.phase])

source := "overrides.alias" if {
	of_alias != {}
} else := "overrides.label" if {
	of_labels != {}
} else := "matrix"

# Doing the request again cannot do something twice.
harmless if input.request.idempotent

harmless if not input.failure.request_sent

harmless if input.failure.class in {"rate_limited", "upstream_auth", "model_unavailable"}

# The order. An untried equal route comes before a sick one again; another model comes after
# every equal route.
acts := [act | some act in places; act.open]

places := [
	{"open": retry == "first", "action": "same_route_retry", "reason": "lone_failure"},
	{"open": fallback, "action": "same_contract_fallback", "reason": "untried_equal_route"},
	{"open": retry == "before_substitution", "action": "same_route_retry", "reason": "sick_route_again"},
	{"open": substitution == "before_retry", "action": "model_substitution", "reason": "approved_substitute"},
	{"open": retry == "last", "action": "same_route_retry", "reason": "sick_route_again"},
	{"open": substitution == "last", "action": "model_substitution", "reason": "approved_substitute"},
]

# The failed attempt was the first one on its route.
lone if input.attempt.same_route == 1

# Where the same route comes in the order, by its word.
retry := "never" if {
	input.candidates.same_route == 0
} else := "first" if {
	cells.same_route_retry == "once"
	lone
} else := "before_substitution" if {
	waits[cells.same_route_retry]
	lone
} else := "last" if {
	waits[cells.same_route_retry]
} else := "last" if {
	cells.same_route_retry == "last"
} else := "never"

waits := {"bounded": true, "after_retry_after": input.budget.retry_after_fits}

default fallback := false

fallback if {
	input.candidates.same_contract > 0
	cells.same_contract_fallback in {"yes", "another_account", "capacity"}
}

fallback if {
	input.candidates.same_contract_schema_verified > 0
	cells.same_contract_fallback == "verified"
}

# Where another model comes in the order. `after_both` and `after_waiting` want the same route
# asked again before it, unless it was or cannot be.
substitution := "never" if {
	input.candidates.substitutes == 0
} else := "last" if {
	cells.model_substitution in {"after_both", "after_waiting"}
	retry != "never"
	lone
} else := "before_retry" if {
	cells.model_substitution in {
		"after_same_contract",
		"after_both",
		"after_waiting",
		"larger_window",
		"verified",
	}
} else := "never"
