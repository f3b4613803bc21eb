package openai

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"
	"sync"

	"github.com/interlock-gateway/interlock/gateway/openai/jsonx"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// What a schema and a validation may cost. A caller writes the schema, and through the model it
// has a say in the answer too: both may be hostile.
const (
	maxSchema    = 256 << 10 // bytes of a schema
	maxSubschema = 5000      // objects in a schema
	maxInPlace   = 1000      // subschemas that apply others to the same value: $ref, allOf …
	maxNesting   = 20_000    // how deep a validation may recurse: those, for each level of the value
	maxInstance  = 8 << 20   // bytes of what is validated
	maxSteps     = 200_000   // subschemas that one validation may apply, and elements it may visit
	maxPattern   = 1 << 10   // bytes of a regular expression
	maxRepeat    = 10_000    // its size, repetitions unrolled
	maxExponent  = 400       // of a number: 1e999999999 would be computed with all its digits
)

// Validator holds answers against the schemas that requests promise. It keeps the compiled form of
// as many schemas as it was made for, loads nothing from anywhere, and gives up on what is too
// costly. It is safe for concurrent use.
type Validator struct {
	mu      sync.Mutex
	limit   int
	schemas map[[sha256.Size]byte]*schema
	order   [][sha256.Size]byte // a ring, oldest at next
	next    int
}

// NewValidator makes a validator that keeps at most that many compiled schemas, at least one.
func NewValidator(schemas int) *Validator {
	return &Validator{limit: max(schemas, 1), schemas: make(map[[sha256.Size]byte]*schema)}
}

type verdict uint8

const (
	satisfied verdict = iota
	violated
	unknown // the schema is none, or too costly
)

// schema is a compiled schema; compiled is nil when it cannot be used. One validation at a time:
// the steps are counted in it.
type schema struct {
	once     sync.Once
	mu       sync.Mutex
	compiled *jsonschema.Schema
	inPlace  int
	steps    int
}

// validate holds a valid JSON document against a schema, both raw. detail names the place and the
// keyword of the first violation.
func (v *Validator) validate(raw, document []byte) (detail string, _ verdict) {
	depth, huge := measure(document)
	if len(raw) > maxSchema || len(document) > maxInstance || huge {
		return "", unknown
	}
	s := v.lookUp(sha256.Sum256(raw))
	s.once.Do(func() { s.compile(raw) })
	if s.compiled == nil || (s.inPlace+1)*depth > maxNesting {
		return "", unknown
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(document))
	if err != nil {
		return "", unknown
	}
	return s.validate(value)
}

func (v *Validator) lookUp(key [sha256.Size]byte) *schema {
	v.mu.Lock()
	defer v.mu.Unlock()
	if s := v.schemas[key]; s != nil {
		return s
	}
	s := new(schema)
	v.schemas[key] = s
	if len(v.order) < v.limit {
		v.order = append(v.order, key)
		return s
	}
	delete(v.schemas, v.order[v.next])
	v.order[v.next] = key
	v.next = (v.next + 1) % v.limit
	return s
}

// tooCostly is the panic that ends a validation.
type tooCostly struct{}

func (s *schema) validate(value any) (detail string, result verdict) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() {
		switch p := recover().(type) {
		case nil:
		case tooCostly:
			detail, result = "", unknown
		default:
			panic(p)
		}
	}()
	s.steps = 0
	err := s.compiled.Validate(value)
	if err == nil {
		return "", satisfied
	}
	var invalid *jsonschema.ValidationError
	if errors.As(err, &invalid) {
		return place(invalid), violated
	}
	return "", unknown
}

// place names the keyword of the first cause and how deep in the value it stands. Member names are
// the model's words, and stay out.
func place(e *jsonschema.ValidationError) string {
	for len(e.Causes) > 0 {
		e = e.Causes[0]
	}
	keyword := strings.Join(e.ErrorKind.KeywordPath(), "/")
	if keyword == "" {
		keyword = "schema"
	}
	return fmt.Sprintf("%s at depth %d", keyword, len(e.InstanceLocation))
}

// step counts one application of a subschema to a value.
func (s *schema) step(weight int, value any) {
	switch v := value.(type) {
	case map[string]any:
		weight += len(v)
	case []any:
		weight += len(v)
	}
	if s.steps += weight; s.steps > maxSteps {
		panic(tooCostly{})
	}
}

const schemaURL = "interlock:promised"

func (s *schema) compile(raw []byte) {
	if bytes.Count(raw, []byte("{")) > maxSubschema || !jsonx.Valid(raw) {
		return
	}
	if _, huge := measure(raw); huge {
		return
	}
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(noLoader{})
	c.UseRegexpEngine(boundedRegexp)
	c.DefaultDraft(jsonschema.Draft2020)
	var all []*jsonschema.Schema
	c.RegisterVocabulary(&jsonschema.Vocabulary{
		URL: "interlock:steps",
		Compile: func(ctx *jsonschema.CompilerContext, _ map[string]any) (jsonschema.SchemaExt, error) {
			all = append(all, ctx.Enqueue(nil))
			return nil, nil
		},
	})
	c.AssertVocabs()
	if c.AddResource(schemaURL, document) != nil {
		return
	}
	compiled, err := c.Compile(schemaURL)
	if err != nil {
		return
	}
	for _, sub := range all {
		s.inPlace += s.count(sub)
	}
	if s.inPlace <= maxInPlace {
		s.compiled = compiled
	}
}

// count makes every application of a subschema a step, and says whether it applies others to the
// same value. The library offers no hook that is called before a schema's own subschemas are; the
// check of a format is, and any schema may have one. Formats themselves are not checked: drafts
// from 2019 on do not, unless told.
func (s *schema) count(sub *jsonschema.Schema) (inPlace int) {
	weight := 1 + len(sub.AllOf) + len(sub.AnyOf) + len(sub.OneOf) + len(sub.PatternProperties)
	if weight > 1 || sub.Ref != nil || sub.RecursiveRef != nil || sub.DynamicRef != nil ||
		sub.Not != nil || sub.If != nil || len(sub.DependentSchemas) > 0 || len(sub.Dependencies) > 0 {
		inPlace = 1
	}
	if sub.Enum != nil {
		weight += len(sub.Enum.Values)
	}
	sub.Format = &jsonschema.Format{Name: "step", Validate: func(value any) error {
		s.step(weight, value)
		return nil
	}}
	return inPlace
}

// noLoader refuses to load what a schema refers to.
type noLoader struct{}

var errNoLoading = errors.New("schemas are not loaded from anywhere")

func (noLoader) Load(string) (any, error) { return nil, errNoLoading }

var errPattern = errors.New("the pattern is too large")

// boundedRegexp compiles a pattern that is not too large once its repetitions are unrolled.
func boundedRegexp(pattern string) (jsonschema.Regexp, error) {
	if len(pattern) > maxPattern {
		return nil, errPattern
	}
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil, err
	}
	if unrolled(tree) > maxRepeat {
		return nil, errPattern
	}
	return regexp.Compile(pattern)
}

// unrolled is about how many instructions a pattern compiles to.
func unrolled(re *syntax.Regexp) int {
	n := 1 + len(re.Rune)
	for _, sub := range re.Sub {
		if n += unrolled(sub); n > maxRepeat {
			return maxRepeat + 1
		}
	}
	if re.Op == syntax.OpRepeat {
		n *= max(re.Min, re.Max, 1)
	}
	return min(n, maxRepeat+1)
}

// measure finds how deep a valid document nests, at least 1, and whether it holds a number whose
// length or exponent is out of all proportion.
func measure(document []byte) (depth int, huge bool) {
	var r jsonx.Reader
	r.Reset(document)
	return measureValue(&r)
}

func measureValue(r *jsonx.Reader) (depth int, huge bool) {
	k := r.Peek()
	switch k {
	case jsonx.Object, jsonx.Array:
		r.Enter()
		for {
			if k == jsonx.Object {
				if _, _, ok := r.Key(); !ok {
					break
				}
			} else if !r.Item() {
				break
			}
			d, h := measureValue(r)
			depth, huge = max(depth, d), huge || h
		}
	case jsonx.Number:
		from, to := r.Skip()
		huge = hugeNumber(r.Bytes(from, to))
	default:
		r.Skip()
	}
	return depth + 1, huge
}

// hugeNumber says whether a number has more digits than maxExponent, written or as its exponent
// says.
func hugeNumber(number []byte) bool {
	if len(number) > maxExponent {
		return true
	}
	k := bytes.IndexAny(number, "eE")
	if k < 0 {
		return false
	}
	exponent, ok := jsonx.Int(bytes.TrimLeft(number[k+1:], "+-0"))
	return ok && exponent > maxExponent || !ok && len(bytes.Trim(number[k+1:], "+-0")) > 0
}
