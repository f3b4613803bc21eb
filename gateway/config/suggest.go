package config

import (
	"fmt"
	"strings"
)

func nearestFirst(name string, known []keyField) string {
	names := make([]string, len(known))
	for i, k := range known {
		names[i] = k.name
	}
	return strings.Join(names, ", ") + nearest(name, names)
}

// nearest suggests the allowed word that a misspelt one resembles.
func nearest(word string, allowed []string) string {
	best, distance := "", 3
	for _, a := range allowed {
		if n := edits(word, a); n < distance && n <= len(a)/3 {
			best, distance = a, n
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(" (is %s meant?)", best)
}

// edits is the Levenshtein distance; 99 where the lengths alone say that it is large.
func edits(a, b string) int {
	if len(a)-len(b) > 2 || len(b)-len(a) > 2 || len(a) > 64 {
		return 99
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		last := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := last
			if a[i] != b[j] {
				cost++
			}
			last = row[j+1]
			row[j+1] = min(cost, row[j+1]+1, row[j]+1)
		}
	}
	return row[len(b)]
}
