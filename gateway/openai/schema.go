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
	maxSteps     = 100_000   // what one validation may do: subschemas applied, elements visited, text matched
	maxPattern   = 1 << 10   // bytes of a regular expression
	maxRepeat    = 2_000     // its size, repetitions unrolled
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
	leafCost int // what it costs at most to hold one element against one subschema
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
		// tooCostly, or a fault of the library's on what a stranger wrote.
		if recover() != nil {
			detail, result = "", unknown
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
	switch keyword {
	case "":
		keyword = "schema"
	case "format": // see count
		keyword = "enum"
	}
	return fmt.Sprintf("%s at depth %d", keyword, len(e.InstanceLocation))
}

// step counts work, and gives up when it is too much.
func (s *schema) step(weight int) {
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
	defer func() {
		if recover() != nil { // a fault of the library's on what a stranger wrote
			s.compiled = nil
		}
	}()
	c := jsonschema.NewCompiler()
	c.UseLoader(noLoader{})
	c.UseRegexpEngine(s.boundedRegexp)
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
// from 2019 on do not, unless told. The library looks through an enumeration before, and one value
// after the other: where all are text, that becomes a look-up behind the step.
func (s *schema) count(sub *jsonschema.Schema) (inPlace int) {
	branches := len(sub.AllOf) + len(sub.AnyOf) + len(sub.OneOf)
	if branches > 0 || sub.Ref != nil || sub.RecursiveRef != nil || sub.DynamicRef != nil ||
		sub.Not != nil || sub.If != nil || len(sub.DependentSchemas) > 0 || len(sub.Dependencies) > 0 {
		inPlace = 1
	}
	weight := 1 + branches + len(sub.Required)/8
	each := 1 + len(sub.PatternProperties)
	unique := sub.UniqueItems
	words := textEnumeration(sub)
	if sub.Enum != nil {
		s.leafCost = max(s.leafCost, len(sub.Enum.Values)/8)
	}
	sub.Format = &jsonschema.Format{Name: "step", Validate: func(value any) error {
		switch v := value.(type) {
		case map[string]any:
			s.step(weight + len(v)*(each+s.leafCost))
		case []any:
			s.step(weight + len(v)*(each+s.leafCost))
			if unique {
				s.step(len(v) * len(v) / 100)
			}
		default:
			s.step(weight)
		}
		if words == nil {
			return nil
		}
		if text, ok := value.(string); !ok || !words[text] {
			return errNotListed
		}
		return nil
	}}
	return inPlace
}

var errNotListed = errors.New("not one of the enumeration")

// textEnumeration takes an enumeration out of a schema where all its values are text.
func textEnumeration(sub *jsonschema.Schema) map[string]bool {
	if sub.Enum == nil || len(sub.Enum.Values) == 0 {
		return nil
	}
	words := make(map[string]bool, len(sub.Enum.Values))
	for _, v := range sub.Enum.Values {
		text, ok := v.(string)
		if !ok {
			return nil
		}
		words[text] = true
	}
	sub.Enum = nil
	return words
}

// noLoader refuses to load what a schema refers to.
type noLoader struct{}

var errNoLoading = errors.New("schemas are not loaded from anywhere")

func (noLoader) Load(string) (any, error) { return nil, errNoLoading }

var errPattern = errors.New("the pattern is too large")

// boundedRegexp compiles a pattern that is not too large once its repetitions are unrolled, such
// that matching it counts as work.
func (s *schema) boundedRegexp(pattern string) (jsonschema.Regexp, error) {
	if len(pattern) > maxPattern {
		return nil, errPattern
	}
	tree, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil, err
	}
	size := unrolled(tree)
	if size > maxRepeat {
		return nil, errPattern
	}
	re, err := regexp.Compile(pattern)
	if err != nil {
		return nil, err
	}
	return countedRegexp{re, s, size}, nil
}

// countedRegexp is a pattern of a schema.
type countedRegexp struct {
	*regexp.Regexp
	schema *schema
	size   int
}

// MatchString takes time in proportion to the text and the size of the pattern.
func (r countedRegexp) MatchString(text string) bool {
	r.schema.step(1 + len(text)*r.size/200)
	return r.Regexp.MatchString(text)
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
