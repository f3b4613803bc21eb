# What may be done after a failure, and in which order?
#
# The matrix (data) says for each class and phase what each act may be; the rules below say
# what its words mean. Only acts that the interlocks leave open are listed.
package interlock.replay

import data.interlock.exceptions
import data.interlock.matrix

# Without a row there is no decision, which the gateway takes for a stop.
decision := verdict if cells

verdict := {"actions": ["stop"], "reason": "not_replayed", "rule": rule} if {
	cells == nothing
} else := {"actions": ["stop"], "reason": "not_idempotent", "rule": "replay.idempotency"} if {
	not harmless
} else := {
	"actions": [act[1] | some act in acts],
	"reason": acts[0][2],
	"rule": rule,
}

nothing := {"same_route_retry": "no", "same_contract_fallback": "no", "model_substitution": "no"}

# The row of this failure: one word for each act.
cells := row if {
	not exceptions.any
} else := object.union_n([row, said, denied])

row := matrix[input.failure.class][input.failure.phase]

# What the exceptions say of it. A later one wins …
said := object.union_n([exception.row | some exception in excepting])

# … but what one of them denies no other gives back.
denied := {act: word |
	some exception in excepting
	some act, word in exception.row
	word == "no"
}

excepting := [{"of": exception.of, "row": says} |
	some exception in exceptions.found
	says := row_of(exception.says.matrix)
	says != {}
]

# Of one exception the closer name wins: a class before "*", then a phase before "*".
row_of(table) := object.union_n([table[class][phase] |
	some class in ["*", input.failure.class]
	some phase in phases
])

# After output nothing is done again, so "*" does not stand for it.
phases := ["after_output"] if {
	input.failure.phase == "after_output"
} else := ["*", input.failure.phase]

rule := concat(".", [source, input.failure.class, input.failure.phase])

source := "matrix" if {
	not exceptions.any
} else := concat(".", ["overrides", excepting[count(excepting) - 1].of]) if {
	count(excepting) > 0
} else := "matrix"

# Doing the request again cannot do something twice.
harmless if input.request.idempotent

harmless if not input.failure.request_sent

harmless if input.failure.class in {"rate_limited", "upstream_auth", "model_unavailable"}

# The order. An untried equal route comes before a sick one again; another model comes after
# every equal route.
order := {
	"retry_first": [1, "same_route_retry", "lone_failure"],
	"fallback": [2, "same_contract_fallback", "untried_equal_route"],
	"retry_before_substitution": [3, "same_route_retry", "sick_route_again"],
	"substitution_before_retry": [4, "model_substitution", "approved_substitute"],
	"retry_last": [5, "same_route_retry", "sick_route_again"],
	"substitution_last": [6, "model_substitution", "approved_substitute"],
	"never": [7, "stop", "no_candidate"],
}

# What is open, in that order, and the stop at its end.
acts := sort({order[retry], order[fallback], order[substitution], order.never})

# The failed attempt was the first one on its route.
lone if input.attempt.same_route == 1

# Where the same route comes in the order, by its word.
retry := "never" if {
	input.candidates.same_route == 0
} else := "retry_first" if {
	cells.same_route_retry == "once"
	lone
} else := "retry_before_substitution" if {
	waits[cells.same_route_retry]
	lone
} else := "retry_last" if {
	waits[cells.same_route_retry]
} else := "retry_last" if {
	cells.same_route_retry == "last"
} else := "never"

waits := {"bounded": true, "after_retry_after": input.budget.retry_after_fits}

fallback := "fallback" if {
	input.candidates.same_contract > 0
	cells.same_contract_fallback in {"yes", "another_account", "capacity"}
} else := "fallback" if {
	input.candidates.same_contract_schema_verified > 0
	cells.same_contract_fallback == "verified"
} else := "never"

# Where another model comes in the order. `after_both` and `after_waiting` want the same route
# asked again before it, unless it was or cannot be.
substitution := "never" if {
	input.candidates.substitutes == 0
} else := "substitution_last" if {
	cells.model_substitution in {"after_both", "after_waiting"}
	retry != "never"
	lone
} else := "substitution_before_retry" if {
	cells.model_substitution in {
		"after_same_contract",
		"after_both",
		"after_waiting",
		"larger_window",
		"verified",
	}
} else := "never"
