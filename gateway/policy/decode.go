package policy

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/interlock-gateway/interlock/gateway/failure"
)

// The decoders take what a rule gave, as JSON values, and accept exactly what the point's
// output schema accepts. Anything else is undecodable: the decision fails closed.

func decodeAdmission(v any) (Admission, error) {
	f := fieldsOf(v)
	a := Admission{
		Allow:   f.flag("allow", true, false),
		Reason:  f.text("reason", true, 128),
		Rule:    f.text("rule", false, 256),
		Message: f.text("message", false, 1024),
		Budget:  f.text("budget", false, 128),
		Groups:  f.names("groups"),
		Regions: f.names("regions"),
	}
	a.Substitution = choice(f, "substitution", false, Unspecified, func(s string) (Wish, bool) {
		w, ok := parse[Wish](wishes, s)
		return w, ok && w != Unspecified
	})
	return a, f.done()
}

func decodeFailure(v any) (Failure, error) {
	f := fieldsOf(v)
	d := Failure{Reason: f.text("reason", true, 128), Rule: f.text("rule", false, 256)}
	d.Class = choice(f, "class", true, failure.Unknown, failure.ParseClass)
	health := HealthIgnore
	if d.Class.Health() == failure.Counts {
		health = HealthCounts
	}
	d.Health = choice(f, "health", false, health, func(s string) (Health, bool) { return parse[Health](healths, s) })
	d.Scope = choice(f, "scope", false, ScopeChannelModel, func(s string) (Scope, bool) { return parse[Scope](scopes, s) })
	d.Isolate = f.flag("isolate", false, d.Class.Health() == failure.Isolates)
	return d, f.done()
}

func decodeReplay(v any) (Replay, error) {
	f := fieldsOf(v)
	d := Replay{
		Actions: f.actions("actions"),
		Reason:  f.text("reason", true, 128),
		Rule:    f.text("rule", false, 256),
		Delay:   time.Duration(f.integer("delay_ms", 0, int64(24*time.Hour/time.Millisecond))) * time.Millisecond,
	}
	return d, f.done()
}

func decodeSubstitution(v any) (Substitution, error) {
	f := fieldsOf(v)
	d := Substitution{
		Approve: f.flag("approve", true, false),
		Reason:  f.text("reason", true, 128),
		Rule:    f.text("rule", false, 256),
	}
	d.Disclosure = f.text("disclosure", false, 256)
	if d.Disclosure == "" {
		d.Disclosure = d.Reason
	}
	return d, f.done()
}

// fields reads an object, remembers what was asked for and the first fault.
type fields struct {
	object map[string]any
	asked  []string
	err    error
}

func fieldsOf(v any) *fields {
	object, ok := v.(map[string]any)
	f := &fields{object: object, asked: make([]string, 0, 8)}
	if !ok {
		f.err = fmt.Errorf("the decision is %s, not an object", kindOfJSON(v))
	}
	return f
}

// take returns the field; ok is false where it is absent, which is a fault if it is required.
func (f *fields) take(name string, required bool) (any, bool) {
	f.asked = append(f.asked, name)
	v, ok := f.object[name]
	if !ok && required {
		f.fault("%s is missing", name)
	}
	return v, ok
}

func (f *fields) fault(format string, args ...any) {
	if f.err == nil {
		f.err = fmt.Errorf(format, args...)
	}
}

// done returns the first fault. A field that nobody asked for is one: it is a misspelt name,
// or something that this gateway cannot do.
func (f *fields) done() error {
	if f.err != nil {
		return f.err
	}
	if len(f.object) == 0 {
		return nil
	}
	var unknown []string
	for name := range f.object {
		if !slices.Contains(f.asked, name) {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) > 0 {
		return fmt.Errorf("%q is no field of this decision; it has %s", clip(slices.Min(unknown)), strings.Join(f.asked, ", "))
	}
	return nil
}

func (f *fields) flag(name string, required, otherwise bool) bool {
	v, ok := f.take(name, required)
	if !ok {
		return otherwise
	}
	b, ok := v.(bool)
	if !ok {
		f.fault("%s is %s, not a boolean", name, kindOfJSON(v))
	}
	return b
}

func (f *fields) text(name string, required bool, limit int) string {
	v, ok := f.take(name, required)
	if !ok {
		return ""
	}
	s, ok := v.(string)
	switch {
	case !ok:
		f.fault("%s is %s, not a string", name, kindOfJSON(v))
	case s == "" && (name == "reason" || name == "rule"):
		f.fault("%s is empty", name)
	case utf8.RuneCountInString(s) > limit:
		f.fault("%s is longer than %d characters", name, limit)
	}
	return s
}

func (f *fields) integer(name string, low, high int64) int64 {
	v, ok := f.take(name, false)
	if !ok {
		return 0
	}
	n, ok := v.(json.Number)
	if !ok {
		f.fault("%s is %s, not a number", name, kindOfJSON(v))
		return 0
	}
	x, err := n.Float64() // every integer in the range is exact
	if err != nil || x != math.Trunc(x) || x < float64(low) || x > float64(high) {
		f.fault("%s is %s, not a whole number from %d to %d", name, clip(n.String()), low, high)
		return 0
	}
	return int64(x)
}

// names reads a list of names; nil where it is absent, not nil where it is empty.
func (f *fields) names(name string) []string {
	v, ok := f.take(name, false)
	if !ok {
		return nil
	}
	list, ok := v.([]any)
	if !ok {
		f.fault("%s is %s, not a list", name, kindOfJSON(v))
		return nil
	}
	names := make([]string, 0, len(list))
	for _, v := range list {
		s, ok := v.(string)
		if !ok || s == "" {
			f.fault("%s holds something that is no name", name)
			return nil
		}
		names = append(names, s)
	}
	return names
}

// actions reads the actions; what follows a stop does not count, and a stop always ends them.
func (f *fields) actions(name string) []failure.Action {
	v, ok := f.take(name, true)
	if !ok {
		return nil
	}
	list, ok := v.([]any)
	if !ok || len(list) == 0 || len(list) > 4 {
		f.fault("%s is not a list of one to four actions", name)
		return nil
	}
	all := make([]failure.Action, 0, len(list)+1)
	for _, v := range list {
		word, _ := v.(string)
		action, ok := failure.ParseAction(word)
		if !ok {
			f.fault("%s holds %q; an action is same_route_retry, same_contract_fallback, model_substitution or stop",
				name, clip(fmt.Sprint(v)))
			return nil
		}
		if slices.Contains(all, action) {
			f.fault("%s holds %s twice", name, word)
			return nil
		}
		all = append(all, action)
	}
	if i := slices.Index(all, failure.Stop); i >= 0 {
		return all[:i+1]
	}
	return append(all, failure.Stop)
}

// choice reads one of a closed list of words.
func choice[T any](f *fields, name string, required bool, otherwise T, parse func(string) (T, bool)) T {
	v, ok := f.take(name, required)
	if !ok {
		return otherwise
	}
	word, ok := v.(string)
	if !ok {
		f.fault("%s is %s, not a string", name, kindOfJSON(v))
		return otherwise
	}
	value, ok := parse(word)
	if !ok {
		f.fault("%s is %q, which is none of its words", name, clip(word))
		return otherwise
	}
	return value
}

func kindOfJSON(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case json.Number, float64, int:
		return "a number"
	case string:
		return "a string"
	case []any:
		return "a list"
	default:
		return "an object"
	}
}

// clip shortens what a policy wrote, for an error message.
func clip(s string) string {
	const limit = 60
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "") + "…"
}
