package policy

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
)

// Evaluate decides on a given JSON input, for the admin API: never from the cache and never
// into it. The input is held to the input schema; fields that the point has and the input
// leaves out are unknown, false, 0 or empty. The output is what the rule gave. An error is an
// Errors where the input is at fault, a *DecisionError where the decision cannot be made.
func (r *Revision) Evaluate(ctx context.Context, p Point, input json.RawMessage) (json.RawMessage, error) {
	value, err := filled(p, input)
	if err != nil {
		return nil, err
	}
	query, check := r.of(p)
	output, err := r.evaluate(ctx, query, value, r.options.Timeout)
	if err == nil {
		if err = check(output); err != nil {
			err = &DecisionError{Code: ErrorUndecodable, Err: err}
		}
	}
	if err != nil {
		if failed, ok := err.(*DecisionError); ok {
			failed.Point = p
		}
		return nil, err
	}
	return json.Marshal(output)
}

// filled holds a JSON input to the input schema, lays it over one of which nothing is known,
// and returns it as the rules see it.
func filled(p Point, input json.RawMessage) (ast.Value, error) {
	given := any(map[string]any{})
	if len(bytes.TrimSpace(input)) > 0 {
		var err error
		if given, err = decodeJSON(input); err != nil {
			return nil, Errors{{Message: "input: " + err.Error()}}
		}
	}
	if faults := violations(inputSchema, given); len(faults) > 0 {
		all := make(Errors, len(faults))
		for i, f := range faults {
			all[i] = Fault{Message: "input" + f.pointer + ": " + f.message}
		}
		return nil, all
	}
	blank, err := decodeJSON(encodeJSON(example(p)))
	if err != nil {
		return nil, err
	}
	return ast.InterfaceToValue(over(blank, given))
}

// of returns a point's query, and what accepts its output.
func (r *Revision) of(p Point) (rego.PreparedEvalQuery, func(any) error) {
	switch p {
	case PointAdmission:
		return r.admission.query, func(v any) error { _, err := decodeAdmission(v); return err }
	case PointFailure:
		return r.failure.query, func(v any) error { _, err := decodeFailure(v); return err }
	case PointSubstitution:
		return r.substitution.query, func(v any) error { _, err := decodeSubstitution(v); return err }
	case PointReplay:
		return r.replay.query, func(v any) error { _, err := decodeReplay(v); return err }
	default:
		panic(fmt.Sprintf("policy: no point %d", p))
	}
}

// over lays what was given over what is not known.
func over(blank, given any) any {
	below, ok := blank.(map[string]any)
	above, object := given.(map[string]any)
	if !ok || !object {
		return given
	}
	merged := maps.Clone(below)
	for name, v := range above {
		merged[name] = over(below[name], v)
	}
	return merged
}
