package policy

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/metrics"
	"github.com/open-policy-agent/opa/v1/rego"
)

// maskQuery is where OPA looks for what decision logs must not show.
const maskQuery = "data.system.log.mask"

// mask is what of every decision of a revision is kept out of decision logs. Immutable.
type mask []masking

// masking is one of its elements.
type masking struct {
	pointer string   // as the bundle has it
	result  bool     // it is about the result, not the input
	at      []string // the path below
	upsert  bool     // give it value; else it is removed
	value   any
}

// maskOf evaluates the bundle's data.system.log.mask once, without an input: which parts are
// kept out does not depend on a decision. nil where the bundle has none.
func maskOf(ctx context.Context, r *Revision, c *compiled) (mask, error) {
	compiling.Lock()
	query, err := rego.New(
		rego.Compiler(c.compiler), rego.Store(c.store), rego.Transaction(r.txn), rego.Query(maskQuery),
		rego.StrictBuiltinErrors(true), rego.Metrics(metrics.NoOp()),
	).PrepareForEval(ctx)
	compiling.Unlock()
	if err != nil {
		return nil, fmt.Errorf("prepare %s: %w", maskQuery, err)
	}
	output, err := r.evaluate(ctx, query, ast.NewObject(), r.options.Timeout)
	if err != nil {
		if failed, ok := err.(*DecisionError); ok && failed.Code == ErrorUndefined {
			return nil, nil
		}
		return nil, Errors{{Message: maskQuery + ": " + err.Error()}}
	}
	list, ok := output.([]any)
	if !ok {
		return nil, Errors{{Message: fmt.Sprintf("%s is %s, not a set", maskQuery, kindOfJSON(output))}}
	}
	var m mask
	var faults Errors
	for _, v := range list {
		one, err := maskingOf(v)
		if err != nil {
			faults = append(faults, Fault{Message: maskQuery + ": " + err.Error()})
			continue
		}
		m = append(m, one)
	}
	if len(faults) > 0 {
		return nil, faults
	}
	slices.SortFunc(m, func(a, b masking) int { return strings.Compare(a.pointer, b.pointer) })
	return m, nil
}

// maskingOf reads a pointer, or OPA's {"op", "path", "value"}.
func maskingOf(v any) (m masking, err error) {
	switch v := v.(type) {
	case string:
		m.pointer = v
	case map[string]any:
		m.pointer, _ = v["path"].(string)
		switch op, _ := v["op"].(string); op {
		case "remove":
		case "upsert":
			m.upsert, m.value = true, v["value"]
		default:
			return m, fmt.Errorf("op %q: allowed are remove and upsert", clip(op))
		}
	default:
		return m, fmt.Errorf("an element is %s: allowed are a pointer and an object of op, path and value", kindOfJSON(v))
	}
	parts := strings.Split(m.pointer, "/")
	if len(parts) < 2 || parts[0] != "" || parts[1] != "input" && parts[1] != "result" {
		return m, fmt.Errorf("path %q: allowed is a pointer that begins with /input or /result", clip(m.pointer))
	}
	m.result = parts[1] == "result"
	for _, p := range parts[2:] {
		m.at = append(m.at, strings.NewReplacer("~1", "/", "~0", "~").Replace(p))
	}
	return m, nil
}

// Masked returns the input and the output as decision logs may show them, and which pointers of
// the bundle's mask changed or removed something, as OPA names them. nil is what is removed as a
// whole. The record itself, and so the ledger, is not changed.
func (r *Record) Masked() (input, output []byte, masked, erased []string) {
	input, output = r.Input, r.Output
	if len(r.mask) == 0 {
		return input, output, nil, nil
	}
	documents := [2]any{}
	for i, text := range [2][]byte{r.Input, r.Output} {
		v, err := decodeJSON(text)
		if err != nil {
			return nil, nil, nil, []string{"/input", "/result"} // rather nothing than too much
		}
		documents[i] = v
	}
	gone := [2]bool{}
	for i := range r.mask {
		m := &r.mask[i]
		which := 0
		if m.result {
			which = 1
		}
		switch changed, hit := m.apply(documents[which], m.at); {
		case !hit || gone[which]:
		case m.upsert:
			documents[which], masked = changed, append(masked, m.pointer)
		default:
			documents[which], erased = changed, append(erased, m.pointer)
			gone[which] = len(m.at) == 0
		}
	}
	texts := [2][]byte{}
	for i, v := range documents {
		if !gone[i] {
			texts[i], _ = json.Marshal(v) // it was decoded from JSON
		}
	}
	return texts[0], texts[1], masked, erased
}

// apply returns the document with the element masked, and whether it was there. What it changes
// it copies.
func (m *masking) apply(v any, at []string) (any, bool) {
	if len(at) == 0 {
		return m.value, true
	}
	object, ok := v.(map[string]any)
	if !ok {
		return v, false
	}
	inner, ok := object[at[0]]
	if !ok {
		return v, false
	}
	changed := maps.Clone(object)
	if len(at) == 1 && !m.upsert {
		delete(changed, at[0])
		return changed, true
	}
	below, hit := m.apply(inner, at[1:])
	changed[at[0]] = below
	return changed, hit
}
