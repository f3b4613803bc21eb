package policy

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
)

// statusesNamed returns the error statuses that a point's rules can tell apart: those that its
// rules and tables name and their neighbours, so that both sides of a comparison are met, beside
// the ones that servers commonly send. All others are treated as one of these.
func (r *reach) statusesNamed(data map[string]any) []int {
	seen := map[int]bool{300: true, 399: true, 499: true, 599: true, 600: true, 999: true}
	add := func(from, to int) {
		for status := max(from, 300); status <= min(to, 999); status++ {
			seen[status] = true
		}
	}
	add(301, 308)
	add(400, 431)
	add(500, 511)
	add(520, 530)
	named := func(text string) {
		if len(text) < 3 || len(text) > 4 || text[0] < '0' || text[0] > '9' {
			return // tables are large: most of their words are no numbers
		}
		if n, err := strconv.Atoi(text); err == nil && n >= 299 && n <= 1000 {
			add(n-1, n+1)
		}
	}
	for _, rule := range r.rules {
		ast.WalkTerms(rule, func(t *ast.Term) bool {
			switch v := t.Value.(type) {
			case ast.Number:
				named(v.String())
			case ast.String:
				named(string(v))
			}
			return false
		})
	}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for name, inner := range v {
				named(name)
				walk(inner)
			}
		case []any:
			for _, inner := range v {
				walk(inner)
			}
		case string:
			named(v)
		case interface{ String() string }: // a number
			named(v.String())
		}
	}
	for path := range r.tables {
		first, second, _ := strings.Cut(path, ".")
		walk(lookUp(data, first, second))
	}
	return slices.Sorted(maps.Keys(seen))
}
