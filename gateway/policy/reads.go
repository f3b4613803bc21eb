package policy

import (
	"hash/maphash"
	"math/bits"
	"strings"
	"sync"

	"github.com/open-policy-agent/opa/v1/ast"
)

// A decision depends on nothing but the fields of its input that were read on the way to it. Who
// asks a whole domain, a check before a bundle is used or a comparison of two, need not ask again
// where only fields differ that were not read: of most classes of failure nothing but the class
// and the phase is.

// layout is the fields of a point's input: sections, and in them fields and sections. A field has
// the number of its place in the order in which facts are told. Immutable.
type layout struct {
	name     *ast.Term // nil: the whole input
	field    int       // -1: a section
	below    uint64    // the fields in it, a bit each
	children []*layout
}

// layoutOf returns the fields that an example of the input tells.
func layoutOf(in asked) *layout {
	s := &layoutSink{stack: []*layout{{field: -1}}}
	in.facts(s)
	root := s.stack[0]
	root.count()
	return root
}

func (l *layout) count() {
	for _, c := range l.children {
		c.count()
		l.below |= c.below
	}
}

type layoutSink struct {
	stack  []*layout
	fields int
}

func (s *layoutSink) add(name string) {
	in := s.stack[len(s.stack)-1]
	in.children = append(in.children, &layout{name: ast.StringTerm(name), field: s.fields, below: 1 << s.fields})
	s.fields++ // at most 64: a test holds it
}

func (s *layoutSink) open(name string) {
	section := &layout{name: ast.StringTerm(name), field: -1}
	in := s.stack[len(s.stack)-1]
	in.children = append(in.children, section)
	s.stack = append(s.stack, section)
}

func (s *layoutSink) close()                       { s.stack = s.stack[:len(s.stack)-1] }
func (s *layoutSink) text(name, _ string)          { s.add(name) }
func (s *layoutSink) flag(name string, _ bool)     { s.add(name) }
func (s *layoutSink) number(name string, _ int64)  { s.add(name) }
func (s *layoutSink) ratio(name string, _ float64) { s.add(name) }
func (s *layoutSink) raw(name, _ string)           { s.add(name) }

// paths returns the fields' paths by their numbers.
func (l *layout) paths() []string {
	all := make([]string, bits.OnesCount64(l.below))
	l.eachPath("", func(field int, path string) { all[field] = path })
	return all
}

func (l *layout) eachPath(prefix string, visit func(field int, path string)) {
	for _, c := range l.children {
		name, _ := c.name.Value.(ast.String)
		path := strings.TrimPrefix(prefix+"."+string(name), ".")
		if c.field >= 0 {
			visit(c.field, path)
		} else {
			c.eachPath(path, visit)
		}
	}
}

// build returns the input with those fields, as it is and as one that notes in read what is read
// of it.
func (l *layout) build(fields []*ast.Term, read *uint64) (plain ast.Object, noting *notingObject) {
	pairs := make([][2]*ast.Term, len(l.children))
	noting = &notingObject{layout: l, read: read, children: make([]*ast.Term, len(l.children))}
	for i, c := range l.children {
		if c.field >= 0 {
			noting.children[i] = fields[c.field]
			pairs[i] = [2]*ast.Term{c.name, fields[c.field]}
			continue
		}
		section, watched := c.build(fields, read)
		noting.children[i] = ast.NewTerm(watched)
		pairs[i] = [2]*ast.Term{c.name, ast.NewTerm(section)}
	}
	plain = ast.NewObject(pairs...)
	noting.Object = plain
	return plain, noting
}

// notingObject is an object of an input that notes which of its fields were read. What looks at
// it as a whole has read all of it.
type notingObject struct {
	ast.Object
	layout   *layout
	read     *uint64
	children []*ast.Term
}

func (o *notingObject) child(name *ast.Term) *ast.Term {
	text, ok := name.Value.(ast.String)
	if !ok {
		return nil
	}
	for i, c := range o.layout.children {
		if c.name.Value.(ast.String) != text {
			continue
		}
		if c.field >= 0 {
			*o.read |= c.below
		}
		return o.children[i]
	}
	return nil
}

// Get returns a field, as an ast.Object does.
func (o *notingObject) Get(name *ast.Term) *ast.Term { return o.child(name) }

// Find returns what lies at a path, as an ast.Object does.
func (o *notingObject) Find(path ast.Ref) (ast.Value, error) {
	if len(path) == 0 {
		return o, nil
	}
	child := o.child(path[0])
	if child == nil {
		return o.whole().Find(path)
	}
	return child.Value.Find(path[1:])
}

// whole is the object for those that look at all of it.
func (o *notingObject) whole() ast.Object {
	*o.read |= o.layout.below
	return o.Object
}

func plainValue(v ast.Value) ast.Value {
	if o, ok := v.(*notingObject); ok {
		return o.whole()
	}
	return v
}

func plainObject(v ast.Object) ast.Object {
	if o, ok := v.(*notingObject); ok {
		return o.whole()
	}
	return v
}

// The rest of ast.Object looks at all of it.

func (o *notingObject) Compare(other ast.Value) int { return o.whole().Compare(plainValue(other)) }
func (o *notingObject) Hash() int                   { return o.whole().Hash() }
func (o *notingObject) String() string              { return o.whole().String() }
func (o *notingObject) StringLength() int           { return o.whole().StringLength() }
func (o *notingObject) Len() int                    { return o.whole().Len() }
func (o *notingObject) Copy() ast.Object            { return o.whole().Copy() }

// Insert is not for an input. The evaluator's recovery makes an error of it, on which the plain
// input is asked.
func (o *notingObject) Insert(_, _ *ast.Term) { panic("policy: an input is not changed") }

func (o *notingObject) Foreach(f func(k, v *ast.Term))         { o.whole().Foreach(f) }
func (o *notingObject) Until(f func(k, v *ast.Term) bool) bool { return o.whole().Until(f) }
func (o *notingObject) Iter(f func(k, v *ast.Term) error) error {
	return o.whole().Iter(f)
}

func (o *notingObject) Diff(other ast.Object) ast.Object { return o.whole().Diff(plainObject(other)) }

func (o *notingObject) Intersect(other ast.Object) [][3]*ast.Term {
	return o.whole().Intersect(plainObject(other))
}

func (o *notingObject) Merge(other ast.Object) (ast.Object, bool) {
	return o.whole().Merge(plainObject(other))
}

func (o *notingObject) Map(f func(k, v *ast.Term) (*ast.Term, *ast.Term, error)) (ast.Object, error) {
	return o.whole().Map(f)
}

func (o *notingObject) MergeWith(other ast.Object, f func(a, b *ast.Term) (*ast.Term, bool)) (ast.Object, bool) {
	return o.whole().MergeWith(plainObject(other), f)
}

func (o *notingObject) Filter(filter ast.Object) (ast.Object, error) {
	return o.whole().Filter(plainObject(filter))
}
func (o *notingObject) Keys() []*ast.Term                    { return o.whole().Keys() }
func (o *notingObject) KeysIterator() ast.ObjectKeysIterator { return o.whole().KeysIterator() }

var _ ast.Object = (*notingObject)(nil)

// fieldSink takes an input's fields as terms, with a hash of each, in their order.
type fieldSink struct {
	astSink
	fields []*ast.Term
	hashes []uint64
}

// fieldsOfInput returns the fields of an input by their numbers.
func fieldsOfInput(in asked) *fieldSink {
	s := &fieldSink{astSink: astSink{shared: sharedTerms()}}
	in.facts(s)
	s.fields, s.hashes = make([]*ast.Term, len(s.astSink.fields)), make([]uint64, len(s.astSink.fields))
	for i, pair := range s.astSink.fields {
		s.fields[i], s.hashes[i] = pair[1], hashOf(pair[1])
	}
	return s
}

func (s *fieldSink) open(string) {}
func (s *fieldSink) close()      {}

var fieldSeed = maphash.MakeSeed()

func hashOf(t *ast.Term) uint64 { return maphash.String(fieldSeed, t.String()) }

// remembered are results by the fields that they depend on. Safe for concurrent use.
type remembered[T any] struct {
	mu   sync.RWMutex
	sets []uint64 // of fields, as they were met
	all  map[fieldsKey]T
}

// fieldsKey is some fields of an input, and a hash of what they are.
type fieldsKey struct{ set, hash uint64 }

func partOf(set uint64, hashes []uint64) fieldsKey {
	h := set
	for left := set; left != 0; left &= left - 1 {
		h = bits.RotateLeft64((h^hashes[bits.TrailingZeros64(left)])*0x9e3779b97f4a7c15, 29)
	}
	return fieldsKey{set, h}
}

// get returns the result of an input that has the same fields, as far as they were read.
func (r *remembered[T]) get(hashes []uint64) (result T, ok bool) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	for _, set := range r.sets {
		if result, ok = r.all[partOf(set, hashes)]; ok {
			return result, true
		}
	}
	return result, false
}

func (r *remembered[T]) put(set uint64, hashes []uint64, result T) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all == nil {
		r.all = map[fieldsKey]T{}
	}
	at := partOf(set, hashes)
	if _, there := r.all[at]; there {
		return
	}
	for _, known := range r.sets {
		if known == set {
			r.all[at] = result
			return
		}
	}
	r.sets = append(r.sets, set)
	r.all[at] = result
}
