# Which exceptions (data.interlock.overrides) concern this request, and how do several combine?
#
# They come from general to particular: the request's kind, the key's labels in the order of
# their names (of one label "*" first, which is any value), the alias. A later one wins, but
# none gives back what another one denies.
package interlock.exceptions

import data.interlock.overrides

# Most requests meet none: the points ask this first.
any if overrides.kinds[input.request.kind]

any if overrides.aliases[input.request.alias]

any if {
	some name, _ in input.key.labels
	overrides.labels[name]
}

found := array.concat(of_kind, array.concat(of_labels, of_alias))

default of_kind := []

of_kind := [{"of": "kind", "says": overrides.kinds[input.request.kind]}]

of_labels := [{"of": "label", "says": says} |
	some name, value in input.key.labels
	some which in ["*", value]
	says := overrides.labels[name][which]
]

default of_alias := []

of_alias := [{"of": "alias", "says": overrides.aliases[input.request.alias]}]
