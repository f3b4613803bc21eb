# May this request begin, and what may it use?
package interlock.admission

import data.interlock.overrides

decision := {"allow": true, "reason": "allowed", "rule": "admission.default"} if {
	count(exceptions) == 0
} else := object.union(
	{"allow": false, "reason": "denied_by_override", "rule": "admission.overrides"},
	object.filter(merged, ["message"]),
) if {
	some exception in exceptions
	exception.allow == false
} else := object.union(
	object.union({"allow": true, "reason": "narrowed_by_override", "rule": "admission.overrides"}, merged),
	forbidding,
)

# The exceptions that concern this request: those of its key's labels in the labels' order,
# then its alias's. A later one wins.
exceptions := array.concat(of_labels, of_alias)

of_labels := [exception |
	some name, value in input.key.labels
	exception := overrides.labels[name][value].admission
]

default of_alias := []

of_alias := [overrides.aliases[input.request.alias].admission]

merged := object.remove(object.union_n(exceptions), ["allow"])

# … but no exception gives back what another one forbids.
default forbidding := {}

forbidding := {"substitution": "deny"} if {
	some exception in exceptions
	exception.substitution == "deny"
}
