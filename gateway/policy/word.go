package policy

// An enum is a closed list of words that policies see.
type enum interface{ ~uint8 }

// Word lists are short: a linear search beats a map and allocates nothing.

func word[T enum](names []string, v T) string {
	if int(v) < len(names) {
		return names[v]
	}
	return names[0]
}

func parse[T enum](names []string, s string) (T, bool) {
	for i, n := range names {
		if n == s {
			return T(i), true
		}
	}
	return 0, false
}
