package failure

// Word lists are short: a linear search beats a map and allocates nothing.

func word[T ~uint8](names []string, v T) string {
	if int(v) < len(names) {
		return names[v]
	}
	return "invalid"
}

func parse[T ~uint8](names []string, s string) (T, bool) {
	if s == "" {
		return 0, false
	}
	for i, n := range names {
		if n == s {
			return T(i), true
		}
	}
	return 0, false
}

func list[T ~uint8](names []string) []T {
	all := make([]T, 0, len(names)-1)
	for i := 1; i < len(names); i++ {
		all = append(all, T(i))
	}
	return all
}
