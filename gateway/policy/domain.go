package policy

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/storage"
)

// The domain of a point is every input that can make a difference to some bundles: the
// product of the fields that their rules can come to read. Words, booleans and counts are
// whole, the counts by examples where the rules only compare them with numbers that
// are written there. Names (of aliases, labels, providers, codes) are those that the tables
// and rules know, and one that they do not.

// dimension is one field of an input and what it can be.
type dimension struct {
	path   []string
	values []any
	terms  []*ast.Term // the values as the rules see them
	hashes []uint64    // of those
	field  int         // its number in the layout
}

func (d *dimension) name() string { return strings.Join(d.path, ".") }

// maxDomain bounds the inputs of one product. What is larger is walked in parts.
const maxDomain = 60_000

// first puts the fields that tell one cell from another before the others, point by point.
var first = [points][]string{
	PointAdmission:    {"request.kind", "key.labels", "request.alias"},
	PointFailure:      {"channel.provider", "failure.status", "failure.transport", "failure.adapter_class", "failure.phase"},
	PointSubstitution: {"failure.class", "request.side_effects", "caller.substitution", "candidate.context_window", "key.labels", "alias.name"},
	PointReplay: {
		"failure.class", "failure.phase", "request.idempotent", "failure.request_sent", "key.labels", "request.alias", "request.kind",
		"candidates.same_route", "candidates.same_contract", "candidates.same_contract_schema_verified", "candidates.substitutes",
		"attempt.same_route", "budget.retry_after_fits",
	},
}

// domainOf returns the fields of a point's input that may make a difference to any of the
// revisions.
func domainOf(ctx context.Context, p Point, revisions ...*Revision) ([]dimension, error) {
	var leaves leafSink
	example(p).facts(&leaves)
	known, err := namesOf(ctx, revisions)
	if err != nil {
		return nil, err
	}
	constants := constantsOf(p, revisions)
	var all []dimension
	for _, leaf := range leaves.all {
		path := strings.Join(leaf.path, ".")
		if !slices.ContainsFunc(revisions, func(r *Revision) bool { return r.reach[p].reads(path) }) {
			continue
		}
		values := valuesOf(path, leaf.value, known, constants)
		if len(values) > 1 {
			all = append(all, dimension{path: leaf.path, values: values})
		}
	}
	rank := func(d dimension) int {
		if i := slices.Index(first[p], d.name()); i >= 0 {
			return i
		}
		return len(first[p])
	}
	slices.SortStableFunc(all, func(a, b dimension) int { return cmp.Compare(rank(a), rank(b)) })
	return all, nil
}

// valuesOf returns what one field can be, its blank value first where it can be that.
func valuesOf(path string, blank any, known map[string][]any, c *constants) []any {
	if words := enums()[path]; len(words) > 0 {
		if _, isList := blank.([]any); isList {
			values := []any{blank}
			for _, w := range words {
				values = append(values, []any{w})
			}
			return values
		}
		var values []any
		if word, _ := blank.(string); slices.Contains(words, word) {
			values = append(values, word) // what is not varied is not known
		}
		for _, w := range words {
			values = append(values, w)
		}
		return distinct(values)
	}
	if values := known[path]; values != nil {
		if path == "failure.status" {
			return distinct(append(slices.Clone(values), c.numbers(path)...))
		}
		return distinct(append(slices.Clone(values), c.strings(path)...))
	}
	switch v := blank.(type) {
	case bool:
		return []any{true, false}
	case json.Number:
		return c.numbers(path)
	case string:
		if measuredField(path) {
			return append([]any{v}, c.numbers(path)...)
		}
		return distinct(append([]any{v}, c.strings(path)...))
	case map[string]any:
		return distinct(append([]any{v}, c.objects(path)...))
	}
	return []any{blank}
}

// measuredField reports whether a field is a number or "unknown".
func measuredField(path string) bool {
	return strings.Contains(path, ".price.") || strings.Contains(path, ".evidence.")
}

// distinct takes away what stands there already.
func distinct(values []any) []any {
	seen := map[string]bool{}
	return slices.DeleteFunc(values, func(v any) bool {
		text := canonical(v)
		again := seen[text]
		seen[text] = true
		return again
	})
}

// counts are the whole numbers that the core can give, by field; from 0, both ends included.
var counts = map[string]int{
	"attempt.number": 6, "attempt.same_route": 6, "attempt.same_group": 6, "budget.attempts_left": 5,
	"candidates.same_route": 3, "candidates.same_contract": 3, "candidates.same_contract_schema_verified": 3,
	"candidates.substitutes": 3,
}

// leaf is a field of an example input.
type leaf struct {
	path  []string
	value any
}

// leafSink collects the fields of an input in their order.
type leafSink struct {
	prefix []string
	all    []leaf
}

func (s *leafSink) add(name string, value any) {
	s.all = append(s.all, leaf{append(slices.Clone(s.prefix), name), value})
}

func (s *leafSink) open(name string)         { s.prefix = append(s.prefix, name) }
func (s *leafSink) close()                   { s.prefix = s.prefix[:len(s.prefix)-1] }
func (s *leafSink) text(name, value string)  { s.add(name, value) }
func (s *leafSink) flag(name string, v bool) { s.add(name, v) }

func (s *leafSink) number(name string, value int64) {
	s.add(name, json.Number(strconv.FormatInt(value, 10)))
}

func (s *leafSink) ratio(name string, value float64) { s.add(name, json.Number(ratioText(value))) }

func (s *leafSink) raw(name, text string) {
	v, err := decodeJSON([]byte(text))
	if err == nil { // made by canonical: it always parses
		s.add(name, v)
	}
}

// namesOf returns the names that the tables of the revisions know, by the field that looks
// them up, each with one that no table knows.
func namesOf(ctx context.Context, revisions []*Revision) (map[string][]any, error) {
	aliases, providers, labels := []any{""}, []any{"unknown"}, []any{map[string]any{}}
	codes, statuses, kinds := newRows(""), newRows(), newRows("chat")
	// A status of every family that no table has, and those that are in no family.
	statuses.add("0", "200", "302", "404", "418", "499", "500", "599")
	for _, r := range revisions {
		overrides, err := r.table(ctx, "overrides")
		if err != nil {
			return nil, err
		}
		classification, err := r.table(ctx, "classification")
		if err != nil {
			return nil, err
		}
		aliases = append(aliases, keysOf(overrides["aliases"])...)
		providers = append(providers, keysOf(overrides["providers"])...)
		kinds.table(overrides["kinds"])
		if slices.ContainsFunc(r.reach[:], func(p *reach) bool { return p.tables["interlock.kinds"] != nil }) {
			table, err := r.table(ctx, "kinds")
			if err != nil {
				return nil, err
			}
			kinds.table(table)
		}
		labels = append(labels, labelsIn(overrides["labels"])...)
		codes.table(classification["codes"])
		statuses.table(classification["status"])
		believed, _ := classification["believed"].(map[string]any)
		for _, class := range slices.Sorted(maps.Keys(believed)) {
			statuses.table(believed[class])
		}
		of, _ := overrides["providers"].(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(of)) {
			override, _ := of[name].(map[string]any)
			codes.table(override["codes"])
			statuses.table(override["status"])
		}
	}
	if two := bothLabels(labels); two != nil {
		labels = append(labels, two)
	}
	var numbers []any
	for _, s := range statuses.distinct(func(s string) string { return s[:1] }) {
		if word, _ := s.(string); isStatus(word) {
			numbers = append(numbers, json.Number(word))
		}
	}
	words := codes.distinct(func(string) string { return "" })
	return map[string][]any{
		"request.alias": aliases, "alias.name": append([]any{"unknown"}, aliases[1:]...), "channel.provider": providers,
		"request.kind": kinds.distinct(func(string) string { return "" }), "failure.provider_code": words, "failure.provider_type": words, "failure.status": numbers,
		"key.labels": labels,
	}, nil
}

// rows are names of which tables know something. Names of which all tables of all revisions
// know the same are one.
type rows struct {
	names []string
	known map[string]string // of each name, what the tables have for it
	count int               // of tables
}

func newRows(names ...string) *rows {
	r := &rows{known: map[string]string{}}
	r.add(names...)
	return r
}

func (r *rows) add(names ...string) {
	for _, name := range names {
		if _, there := r.known[name]; !there && name != "" || name == "" && len(r.names) == 0 {
			r.names = append(r.names, name)
			r.known[name] = ""
		}
	}
}

func (r *rows) table(v any) {
	r.count++
	table, _ := v.(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(table)) {
		r.add(name)
		r.known[name] += strconv.Itoa(r.count) + canonical(table[name]) + " "
	}
}

// distinct returns one name for each that the tables, and kind, tell from the others.
func (r *rows) distinct(kind func(name string) string) []any {
	seen := map[string]bool{}
	var all []any
	for _, name := range r.names {
		what := r.known[name]
		if name != "" {
			what += kind(name)
		}
		if !seen[what] {
			seen[what] = true
			all = append(all, name)
		}
	}
	return all
}

func isStatus(s string) bool {
	n, err := strconv.Atoi(s)
	return err == nil && (n == 0 || n >= 100 && n <= 999)
}

func keysOf(v any) []any {
	table, _ := v.(map[string]any)
	var all []any
	for _, k := range slices.Sorted(maps.Keys(table)) {
		all = append(all, k)
	}
	return all
}

// labelsIn returns one key's labels for each label and value that the overrides name.
func labelsIn(v any) []any {
	table, _ := v.(map[string]any)
	var all []any
	for _, name := range slices.Sorted(maps.Keys(table)) {
		for _, value := range keysOf(table[name]) {
			if value == "*" {
				value = "any"
			}
			all = append(all, map[string]any{name: value})
		}
	}
	return all
}

// bothLabels returns labels with a value of every name, so that exceptions meet; nil where
// there are no two names.
func bothLabels(labels []any) any {
	merged := map[string]any{}
	for _, l := range labels {
		object, _ := l.(map[string]any)
		for name, value := range object {
			if _, there := merged[name]; !there {
				merged[name] = value
			}
		}
	}
	if len(merged) < 2 {
		return nil
	}
	return merged
}

// table reads one of the documents below data.interlock; nil where there is none.
func (r *Revision) table(ctx context.Context, name string) (map[string]any, error) {
	v, err := r.at(ctx, "interlock", name)
	if err != nil || v == nil {
		return nil, err
	}
	plain, err := ast.JSON(v)
	if err != nil {
		return nil, err
	}
	table, _ := plain.(map[string]any)
	return table, nil
}

// at reads data as a term; nil where there is none.
func (r *Revision) at(ctx context.Context, path ...string) (ast.Value, error) {
	v, err := r.store.Read(ctx, r.txn, storage.Path(path))
	if storage.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return ast.InterfaceToValue(v)
}

// constants are what the rules of a point compare its input fields with.
type constants struct {
	words map[string][]any           // strings, by path
	nums  map[string][]float64       // numbers, by path
	free  map[string]bool            // paths of numbers that are used otherwise than compared
	below map[string]map[string]bool // for objects: names of which a string is compared
}

func constantsOf(p Point, revisions []*Revision) *constants {
	c := &constants{map[string][]any{}, map[string][]float64{}, map[string]bool{}, map[string]map[string]bool{}}
	for _, r := range revisions {
		for _, rule := range r.reach[p].rules {
			c.rule(rule)
		}
	}
	return c
}

var comparisons = []string{
	ast.Equality.Name, ast.Assign.Name, ast.Equal.Name, ast.NotEqual.Name,
	ast.GreaterThan.Name, ast.GreaterThanEq.Name, ast.LessThan.Name, ast.LessThanEq.Name,
}

// rule notes what one rule does with its input. A variable that stands for a field is that
// field: the compiler itself makes such ones.
func (c *constants) rule(rule *ast.Rule) {
	u := &uses{constants: c, named: map[*ast.Term]bool{}, inputs: map[ast.Var]string{}, held: map[ast.Var]int{}}
	ast.WalkExprs(rule, u.assign)
	ast.WalkExprs(rule, u.expression)
	all := map[ast.Var]int{}
	ast.WalkVars(rule, func(v ast.Var) bool {
		all[v]++
		return false
	})
	for v, path := range u.inputs {
		if all[v] > u.held[v] {
			c.free[path] = true
		}
	}
	ast.WalkTerms(rule, func(t *ast.Term) bool {
		if ref, isRef := t.Value.(ast.Ref); isRef {
			if path, ok := inputPath(ref); ok && !u.named[t] {
				c.free[path] = true
			}
		}
		return false
	})
}

// uses follows the input fields through one rule.
type uses struct {
	*constants
	named  map[*ast.Term]bool // refs that only give a variable its value, or are compared
	inputs map[ast.Var]string // variables that stand for a field
	held   map[ast.Var]int    // how often each is given its value or compared
}

func (u *uses) assign(e *ast.Expr) bool {
	if !isOperator(e, ast.Equality.Name, ast.Assign.Name) {
		return false
	}
	for _, side := range [][2]int{{0, 1}, {1, 0}} {
		v, isVar := e.Operand(side[0]).Value.(ast.Var)
		ref, isRef := e.Operand(side[1]).Value.(ast.Ref)
		if !isVar || !isRef {
			continue
		}
		if path, ok := inputPath(ref); ok && path != "" {
			u.inputs[v] = path
			u.held[v]++
			u.named[e.Operand(side[1])] = true
		}
	}
	return false
}

func (u *uses) expression(e *ast.Expr) bool {
	if isOperator(e, comparisons...) {
		a, b := e.Operand(0), e.Operand(1)
		u.compare(a, b)
		u.compare(b, a)
	}
	if isOperator(e, ast.Member.Name) {
		eachMember(e.Operand(1), func(t *ast.Term) { u.compare(e.Operand(0), t) })
	}
	return false
}

// compare notes that the rule holds a field to a constant.
func (u *uses) compare(field, constant *ast.Term) {
	path := ""
	switch v := field.Value.(type) {
	case ast.Ref:
		path, _ = inputPath(v)
	case ast.Var:
		path = u.inputs[v]
	}
	if path == "" {
		return
	}
	switch v := constant.Value.(type) {
	case ast.String:
		u.words[path] = append(u.words[path], string(v))
		if object, name, ok := cutLast(path); ok {
			if u.below[object] == nil {
				u.below[object] = map[string]bool{}
			}
			u.below[object][name] = true
		}
	case ast.Number:
		n, ok := v.Float64()
		if !ok {
			return
		}
		u.nums[path] = append(u.nums[path], n)
		if v, isVar := field.Value.(ast.Var); isVar {
			u.held[v]++
		} else {
			u.named[field] = true
		}
	}
}

func cutLast(path string) (before, last string, ok bool) {
	i := strings.LastIndexByte(path, '.')
	if i < 0 {
		return "", "", false
	}
	return path[:i], path[i+1:], true
}

func (c *constants) strings(path string) []any {
	if path == "key.labels" {
		return c.objects(path)
	}
	return c.words[path]
}

// objects returns an object for each name below the path that is compared with a string.
func (c *constants) objects(path string) []any {
	var all []any
	for _, name := range slices.Sorted(maps.Keys(c.below[path])) {
		for _, word := range c.words[path+"."+name] {
			all = append(all, map[string]any{name: word})
		}
	}
	return all
}

// numbers returns the numbers to try for a field: on both sides of each one that the rules
// compare it with, or the whole range where they use it otherwise.
func (c *constants) numbers(path string) []any {
	most, counted := counts[path]
	set := map[float64]bool{}
	switch {
	case counted && c.free[path]:
		for n := range most + 1 {
			set[float64(n)] = true
		}
	case measuredField(path):
		for _, n := range []float64{0, 0.5, 0.9, 0.99, 1, 24, 1000} {
			set[n] = true
		}
	case !counted && path != "failure.status":
		for _, n := range []float64{-1, 0, 1000, 60_000} { // detail
			set[n] = true
		}
	}
	step := 1.0
	if measuredField(path) {
		step = 0.01
	}
	for _, n := range c.nums[path] {
		for _, near := range []float64{n - step, n, n + step} {
			if (!counted || near >= 0 && near <= float64(most)) && near >= -1 {
				set[near] = true
			}
		}
	}
	if counted && len(set) == 0 {
		set[0], set[1] = true, true
	}
	var all []any
	for _, n := range slices.Sorted(maps.Keys(set)) {
		all = append(all, json.Number(strconv.FormatFloat(n, 'f', -1, 64)))
	}
	return all
}
