# May this substitute answer in the requested model's place? That the alias lists it, and that
# it meets the alias's requirements, price ceiling and quality gates, the core has seen to.
package interlock.substitution

import data.interlock.exceptions

decision := object.union({"approve": false, "disclosure": ""}, refusal) if {
	refusal
} else := {
	"approve": true,
	"reason": "approved",
	"rule": "substitution.default",
	"disclosure": object.get({"none": "no_route_available"}, input.failure.class, input.failure.class),
}

refusal := {"reason": "caller_forbids", "rule": "substitution.caller"} if {
	input.caller.substitution == "deny"
} else := {"reason": "side_effects_possible", "rule": "substitution.side_effects"} if {
	input.request.side_effects != "none"
} else := {"reason": "window_not_larger", "rule": "substitution.context_overflow"} if {
	input.failure.class == "context_overflow"
	input.candidate.context_window != "larger"
} else := {"reason": "not_verified", "rule": "substitution.schema_invalid"} if {
	input.failure.class == "schema_invalid"
	not verified
} else := {"reason": "denied_by_override", "rule": "substitution.overrides"} if {
	exceptions.any
	some exception in exceptions.found
	exception.says.substitution == "deny"
}

# Verified for this schema: evidence that is known, and as good as the alias demands of it;
# flawless where the alias demands nothing.
verified if {
	rate := input.candidate.evidence.schema_valid_rate
	rate != "unknown"
	rate >= object.get(input.alias.quality_gates, "schema_valid_rate_min", 1)
}
