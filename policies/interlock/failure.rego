# What went wrong with an attempt, and what does that say about the route?
package interlock.failure

import data.interlock.classification
import data.interlock.overrides

decision := {
	"class": found.class,
	"reason": found.reason,
	"rule": concat(".", ["failure", found.reason]),
	"health": health,
	"scope": effect.scope,
	"isolate": effect.isolate,
}

# The first signal that speaks wins, the surest one first. Once output has gone downstream a
# failure is a broken stream, whatever broke it, but for the few classes that say more.
found := {"class": "cancelled", "reason": "caller_left"} if {
	input.failure.transport == "aborted"
} else := {"class": class, "reason": "after_output"} if {
	input.failure.phase == "after_output"
	class := object.get(classification.after_output, input.failure.adapter_class, "partial_stream")
} else := {"class": class, "reason": "transport"} if {
	input.failure.status < 400
	class := classification.transport[input.failure.transport]
} else := {"class": told.class, "reason": "provider_override"} if {
	told
} else := {"class": input.failure.adapter_class, "reason": "adapter"} if {
	input.failure.adapter_class != "unknown"
} else := {"class": class, "reason": "provider_code"} if {
	class := classification.codes[input.failure.provider_code]
	believed(class)
} else := {"class": class, "reason": "provider_type"} if {
	class := classification.codes[input.failure.provider_type]
	believed(class)
} else := {"class": class, "reason": "status"} if {
	class := classification.status[status]
} else := {"class": class, "reason": "status_family"} if {
	class := object.get(classification.family, family, "unknown") # there are servers that answer 999
}

# A code speaks only beside a status that it fits: providers put catch-all words everywhere.
believed(class) if {
	beside := classification.believed[class]
	object.get(beside, status, object.get(beside, family, false))
}

status := format_int(input.failure.status, 10)

family := substring(status, 0, 1)

# What the provider's exceptions say: first of its code, then of its type, then of its status.
# An entry is a class, or a class with an effect of its own.
told := {"class": entry} if {
	is_string(entry)
} else := entry

entry := said if {
	said := override.codes[input.failure.provider_code]
} else := said if {
	said := override.types[input.failure.provider_type]
} else := override.status[status]

override := overrides.providers[input.channel.provider]

# What the class says about the route, then what the provider's exceptions do, the entry last.
effect := classification.effects[found.class] if {
	not override
} else := object.union_n([
	classification.effects[found.class],
	object.get(override, ["effects", found.class], {}),
	object.filter(told, ["health", "scope", "isolate"]),
]) if {
	found.reason == "provider_override"
} else := object.union(
	classification.effects[found.class],
	object.get(override, ["effects", found.class], {}),
)

# A clock that the caller's deadline may have set says nothing about the route.
health := "ignore" if {
	classification.neutral_transport[input.failure.transport]
} else := effect.health
