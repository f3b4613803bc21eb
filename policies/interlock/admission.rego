# May this request begin, and what may it use?
package interlock.admission

import data.interlock.exceptions

decision := {"allow": true, "reason": "allowed", "rule": "admission.default"} if {
	not exceptions.any
} else := object.union(
	{"allow": false, "reason": "denied_by_override", "rule": "admission.overrides"},
	object.filter(merged, ["message"]),
) if {
	some said in says
	said.allow == false
} else := {"allow": true, "reason": "allowed", "rule": "admission.default"} if {
	count(says) == 0
} else := object.union(
	object.union({"allow": true, "reason": "narrowed_by_override", "rule": "admission.overrides"}, merged),
	narrowed,
)

# What the exceptions say about beginning. A later one wins …
says := [said | some exception in exceptions.found; said := exception.says.admission]

merged := object.remove(object.union_n(says), ["allow"])

# … but none gives back what another one takes: of several lists only what stands in all of
# them is left, in the last one's order, and a denial stays.
narrowed := object.union_n([forbidding, common("regions"), common("groups")])

default forbidding := {}

forbidding := {"substitution": "deny"} if {
	some said in says
	said.substitution == "deny"
}

common(field) := {field: [name |
	some name in lists[count(lists) - 1]
	every list in lists { name in list }
]} if {
	lists := [said[field] | some said in says]
	count(lists) > 0
} else := {}
