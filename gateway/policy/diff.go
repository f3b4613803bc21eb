package policy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/open-policy-agent/opa/v1/ast"
)

// Change is one decision that differs between two revisions, with everything that it needs.
type Change struct {
	Point      Point
	When       []Fact // what must be so; a field that is not named can be anything
	Old, New   Verdict
	Same       bool            // the gateway does the same: only what the record says differs
	Situations int             // how many inputs of the domain it is
	Example    json.RawMessage // one of them, whole
}

// Fact is a field of an input and the values that it has in a change, as JSON.
type Fact struct {
	Name   string
	Values []json.RawMessage
}

// Difference is all that differs between two revisions.
type Difference struct {
	Changes []Change
	Kinds   []KindChange // the core reads these itself
	Points  []Coverage
}

// KindChange is a kind of request that may be done again otherwise: data.interlock.kinds.
// A kind that a revision does not know is "never" there.
type KindChange struct {
	Kind     string
	Old, New string
}

func kindsDiffer(a, b *Revision) []KindChange {
	var all []KindChange
	names := append(slices.Collect(maps.Keys(a.kinds)), slices.Collect(maps.Keys(b.kinds))...)
	slices.Sort(names)
	for _, kind := range slices.Compact(names) {
		if a.kinds[kind] != b.kinds[kind] {
			all = append(all, KindChange{kind, word(replayables, a.kinds[kind]), word(replayables, b.kinds[kind])})
		}
	}
	return all
}

// Coverage says how a point was compared.
type Coverage struct {
	Point  Point
	Equal  bool     // the same rules read the same tables: nothing can differ, and nothing was asked
	Inputs int      // how many were asked
	Fields []string // that were varied against each other
	Apart  []string // that were varied one at a time, since the whole would be too much
}

// Diff asks both revisions about the whole domain of their rules. It takes a core for
// seconds; an error is only that ctx has ended, or a revision cannot be read.
func Diff(ctx context.Context, a, b *Revision) (*Difference, error) {
	d := &Difference{Kinds: kindsDiffer(a, b)}
	for p := range points {
		c := Coverage{Point: p}
		equal, err := sameRules(ctx, p, a, b)
		if err != nil {
			return nil, err
		}
		if equal {
			c.Equal = true
			d.Points = append(d.Points, c)
			continue
		}
		changes, err := diffPoint(ctx, &c, a, b)
		if err != nil {
			return nil, err
		}
		d.Changes = append(d.Changes, changes...)
		d.Points = append(d.Points, c)
	}
	return d, nil
}

// sameRules reports whether a point's rules, and the data that they can come to read, are
// equal.
func sameRules(ctx context.Context, p Point, a, b *Revision) (bool, error) {
	if !a.reach[p].steady || !b.reach[p].steady || !slices.Equal(a.reach[p].texts(), b.reach[p].texts()) {
		return false, nil
	}
	for path := range a.reach[p].dataRead() {
		x, err := a.at(ctx, strings.Split(path, ".")...)
		if err != nil {
			return false, err
		}
		y, err := b.at(ctx, strings.Split(path, ".")...)
		if err != nil {
			return false, err
		}
		if (x == nil) != (y == nil) || x != nil && ast.Compare(x, y) != 0 {
			return false, nil
		}
	}
	return true, nil
}

// generated are the compiler's own variables, which it counts through all modules.
var generated = regexp.MustCompile(`__local[0-9]+__`)

// texts returns the rules as text, sorted, with the compiler's variables counted anew in each.
func (r *reach) texts() []string {
	texts := make([]string, len(r.rules))
	for i, rule := range r.rules {
		named := map[string]string{}
		texts[i] = generated.ReplaceAllStringFunc(rule.String(), func(v string) string {
			if named[v] == "" {
				named[v] = "__local" + strconv.Itoa(len(named)) + "__"
			}
			return named[v]
		})
		if rule.Module != nil {
			texts[i] = rule.Module.Package.String() + " " + texts[i]
		}
	}
	slices.Sort(texts)
	return texts
}

// dataRead returns the data that the rules can come to read, by as much of its path as stands
// in them; "" is all of it.
func (r *reach) dataRead() map[string]bool {
	all := map[string]bool{}
	for _, rule := range r.rules {
		ast.WalkRefs(rule, func(ref ast.Ref) bool {
			if !ref[0].Equal(ast.DefaultRootDocument) {
				return false
			}
			var names []string
			for _, term := range ref[1:] {
				name, ok := term.Value.(ast.String)
				if !ok || strings.Contains(string(name), ".") {
					break
				}
				names = append(names, string(name))
			}
			all[strings.Join(names, ".")] = true
			return false
		})
	}
	return all
}

// asking is one walk through the domain of a point.
type asking struct {
	point Point
	a, b  *Revision
	base  map[string]any
	dims  []dimension

	shape    *layout // nil: the decisions depend on more than the input's fields
	fields   []*ast.Term
	hashes   []uint64
	answered remembered[[2]Verdict]

	mu    sync.Mutex
	seen  map[string]bool // inputs that were asked, where walks overlap
	found []moved
	asked int
	err   error
}

// moved is one input that is decided otherwise, by the places of its values.
type moved struct {
	at       []int
	over     []int // the dimensions that were varied
	old, new Verdict
}

func diffPoint(ctx context.Context, c *Coverage, a, b *Revision) ([]Change, error) {
	dims, err := domainOf(ctx, c.Point, a, b)
	if err != nil {
		return nil, err
	}
	blank, err := decodeJSON(encodeJSON(example(c.Point)))
	if err != nil {
		return nil, err
	}
	base, _ := blank.(map[string]any)
	w := &asking{point: c.Point, a: a, b: b, base: base, dims: dims}
	if err := w.prepare(); err != nil {
		return nil, err
	}
	limit := maxDomain
	if c.Point == PointFailure {
		limit /= 2 // its tables make few of the fields meet
	}
	whole := fitting(dims, limit)
	for i := range dims {
		name := dims[i].name()
		if i < whole {
			c.Fields = append(c.Fields, name)
		} else {
			c.Apart = append(c.Apart, name)
		}
	}
	if whole < len(dims) {
		w.seen = map[string]bool{}
	}
	w.walk(ctx, indices(whole))
	for i := whole; i < len(dims); i++ {
		few := fitting(dims[:whole], limit/len(dims[i].values))
		w.walk(ctx, append(indices(few), i))
	}
	c.Inputs = w.asked
	if w.err != nil {
		return nil, w.err
	}
	return w.changes()
}

// fitting returns how many of the dimensions, from the first, have a product within the limit.
func fitting(dims []dimension, limit int) int {
	product := 1
	for i, d := range dims {
		if product *= len(d.values); product > limit {
			return i
		}
	}
	return len(dims)
}

func indices(n int) []int {
	all := make([]int, n)
	for i := range all {
		all[i] = i
	}
	return all
}

// walk asks the product of some of the dimensions; the others keep their first value.
func (w *asking) walk(ctx context.Context, over []int) {
	total := 1
	for _, i := range over {
		total *= len(w.dims[i].values)
	}
	workers := min(runtime.GOMAXPROCS(0), total)
	var all sync.WaitGroup
	for worker := range workers {
		all.Go(func() {
			for n := worker; n < total && w.one(ctx, over, n); n += workers {
			}
		})
	}
	all.Wait()
}

// one asks both about the n-th input of a product, and reports whether to go on.
func (w *asking) one(ctx context.Context, over []int, n int) bool {
	at := make([]int, len(w.dims))
	for _, i := range slices.Backward(over) {
		at[i], n = n%len(w.dims[i].values), n/len(w.dims[i].values)
	}
	if !w.possible(at) || !w.fresh(at) {
		return true
	}
	both, err := w.ask(ctx, at)
	old, new := both[0], both[1]
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked++
	if err != nil {
		w.err = errors.Join(w.err, err)
		return false
	}
	if old != new {
		w.found = append(w.found, moved{at, over, old, new})
	}
	return true
}

// prepare makes terms of the values that fields can have.
func (w *asking) prepare() error {
	in := example(w.point)
	shape := layoutOf(in)
	paths := shape.paths()
	for i := range w.dims {
		d := &w.dims[i]
		d.field = slices.Index(paths, d.name())
		for _, v := range d.values {
			value, err := ast.InterfaceToValue(v)
			if err != nil {
				return err
			}
			term := ast.NewTerm(value)
			d.terms, d.hashes = append(d.terms, term), append(d.hashes, hashOf(term))
		}
	}
	told := fieldsOfInput(in)
	w.fields, w.hashes = told.fields, told.hashes
	if w.a.reach[w.point].byFields(w.point) && w.b.reach[w.point].byFields(w.point) {
		w.shape = shape
	}
	return nil
}

// ask decides on the input at those places with both revisions, unless it was decided on one that
// differs from it only in fields that neither of them read.
func (w *asking) ask(ctx context.Context, at []int) (both [2]Verdict, err error) {
	if w.shape == nil {
		value, err := ast.InterfaceToValue(w.input(at))
		if err != nil {
			return both, err
		}
		for i, r := range []*Revision{w.a, w.b} {
			if both[i], err = r.verdict(ctx, w.point, value); err != nil {
				return both, err
			}
		}
		return both, nil
	}
	fields, hashes := slices.Clone(w.fields), slices.Clone(w.hashes)
	for i := range w.dims {
		d := &w.dims[i]
		fields[d.field], hashes[d.field] = d.terms[at[i]], d.hashes[at[i]]
	}
	if both, ok := w.answered.get(hashes); ok {
		return both, nil
	}
	var read uint64
	plain, noting := w.shape.build(fields, &read)
	for i, r := range []*Revision{w.a, w.b} {
		var failed *DecisionError
		if both[i], failed, err = r.judge(ctx, w.point, noting); err != nil {
			return both, err
		}
		if failed == nil {
			continue
		}
		switch failed.Code {
		case ErrorUndefined, ErrorConflict, ErrorBuiltin: // as the fields make it
		case ErrorTimeout:
			read = w.shape.below // the next one may be quicker
		default: // it may be the noting that the rules trip over
			read = w.shape.below
			if both[i], _, err = r.judge(ctx, w.point, plain); err != nil {
				return both, err
			}
		}
	}
	w.answered.put(read, hashes, both)
	return both, nil
}

// possible leaves out what the core never asks.
func (w *asking) possible(at []int) bool {
	if w.point != PointReplay {
		return true
	}
	equal, ok := w.value(at, "candidates.same_contract")
	verified, too := w.value(at, "candidates.same_contract_schema_verified")
	return !ok || !too || number(verified) <= number(equal)
}

func number(v any) float64 {
	n, _ := v.(json.Number)
	f, _ := n.Float64()
	return f
}

func (w *asking) value(at []int, name string) (any, bool) {
	for i := range w.dims {
		if w.dims[i].name() == name {
			return w.dims[i].values[at[i]], true
		}
	}
	return nil, false
}

// fresh reports whether the input was not asked yet.
func (w *asking) fresh(at []int) bool {
	if w.seen == nil {
		return true
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	b := make([]byte, 0, 2*len(at))
	for _, place := range at {
		b = append(b, byte(place), byte(place>>8))
	}
	key := string(b)
	if w.seen[key] {
		return false
	}
	w.seen[key] = true
	return true
}

// input builds the input that the places stand for.
func (w *asking) input(at []int) map[string]any {
	root := map[string]any{}
	for name, v := range w.base {
		root[name] = v
	}
	owned := map[string]bool{}
	for i := range w.dims {
		path, object, prefix := w.dims[i].path, root, ""
		for _, name := range path[:len(path)-1] {
			prefix += name + "."
			if !owned[prefix] {
				inner, _ := object[name].(map[string]any)
				copied := map[string]any{}
				for k, v := range inner {
					copied[k] = v
				}
				object[name] = copied
				owned[prefix] = true
			}
			object, _ = object[name].(map[string]any)
		}
		object[path[len(path)-1]] = w.dims[i].values[at[i]]
	}
	return root
}

// cells are the fields by which changes are told apart, where they are varied.
var cells = [points][]string{
	PointSubstitution: {"failure.class"},
	PointReplay:       {"failure.class", "failure.phase", "request.idempotent"},
}

// gathered are the inputs of one cell that change in one way.
type gathered struct {
	old, new Verdict
	inputs   []moved
}

// changes gathers what was found: a cell that changes in one way is one change.
func (w *asking) changes() ([]Change, error) {
	slices.SortFunc(w.found, func(x, y moved) int { return slices.Compare(x.at, y.at) })
	groups := map[string]*gathered{}
	var inOrder []*gathered
	for _, m := range w.found {
		id := fmt.Sprintf("%q %q", m.old, m.new)
		for i := range w.dims {
			if slices.Contains(cells[w.point], w.dims[i].name()) {
				id += fmt.Sprint(" ", m.at[i])
			}
		}
		g := groups[id]
		if g == nil {
			g = &gathered{old: m.old, new: m.new}
			groups[id] = g
			inOrder = append(inOrder, g)
		}
		g.inputs = append(g.inputs, m)
	}
	all := make([]Change, 0, len(inOrder))
	for _, g := range inOrder {
		c, err := w.change(g)
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	slices.SortStableFunc(all, func(x, y Change) int { // what only the record sees comes last
		switch {
		case x.Same == y.Same:
			return 0
		case x.Same:
			return 1
		default:
			return -1
		}
	})
	return all, nil
}

func (w *asking) change(g *gathered) (Change, error) {
	c := Change{Point: w.point, Old: g.old, New: g.new, Same: g.old.Does == g.new.Does, Situations: len(g.inputs)}
	for i, d := range w.dims {
		seen, varied := make([]bool, len(d.values)), false
		for _, m := range g.inputs {
			seen[m.at[i]] = true
			varied = varied || slices.Contains(m.over, i)
		}
		if !varied || !slices.Contains(seen, false) || w.implied(&c, d.name()) {
			continue
		}
		f := Fact{Name: d.name()}
		for place, there := range seen {
			if !there {
				continue
			}
			text, err := json.Marshal(d.values[place])
			if err != nil {
				return Change{}, err
			}
			f.Values = append(f.Values, text)
		}
		c.When = append(c.When, f)
	}
	var err error
	c.Example, err = json.Marshal(w.input(g.inputs[0].at))
	return c, err
}

// implied reports whether a field can be nothing else, after what the change says already.
func (w *asking) implied(c *Change, name string) bool {
	return name == "candidates.same_contract_schema_verified" && slices.ContainsFunc(c.When, func(f Fact) bool {
		return f.Name == "candidates.same_contract" && len(f.Values) == 1 && string(f.Values[0]) == "0"
	})
}
