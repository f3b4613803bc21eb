package policy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/interlock-gateway/interlock/gateway/failure"
)

// Verdict is a decision as people compare two of them: what the gateway takes from it, in one
// line, and what the record says about it.
type Verdict struct {
	Does   string `json:"does"` // equal where the gateway does the same
	Reason string `json:"reason"`
	Rule   string `json:"rule,omitempty"`
}

// VerdictOf reads an output of a point, as it stands in a record. An error means that it is
// no decision.
func VerdictOf(p Point, output json.RawMessage) (Verdict, error) {
	v, err := decodeJSON(output)
	if err != nil {
		return Verdict{}, err
	}
	return verdictOf(p, v)
}

// Decide returns what the gateway would do on a given JSON input: that of Evaluate, or the
// fail-closed decision where none can be made. An error is one of the input.
func (r *Revision) Decide(ctx context.Context, p Point, input json.RawMessage) (Verdict, error) {
	value, err := filled(p, input)
	if err != nil {
		return Verdict{}, err
	}
	return r.verdict(ctx, p, value)
}

// verdict decides on an input that holds. An error is only that ctx has ended.
func (r *Revision) verdict(ctx context.Context, p Point, input ast.Value) (Verdict, error) {
	v, _, err := r.judge(ctx, p, input)
	return v, err
}

// judge is verdict with the reason why it failed closed, nil where it did not.
func (r *Revision) judge(ctx context.Context, p Point, input ast.Value) (Verdict, *DecisionError, error) {
	query, _ := r.of(p)
	output, err := r.evaluate(ctx, query, input, r.options.Timeout)
	if ctx.Err() != nil {
		return Verdict{}, nil, context.Cause(ctx)
	}
	if err == nil {
		v, err := verdictOf(p, output)
		if err == nil {
			return v, nil, nil
		}
	}
	failed := (*DecisionError)(nil)
	if !errors.As(err, &failed) {
		failed = &DecisionError{Code: ErrorUndecodable, Err: err}
	}
	return closedVerdict(p, "policy_error:"+failed.Code.String()), failed, nil
}

func verdictOf(p Point, output any) (Verdict, error) {
	switch p {
	case PointAdmission:
		d, err := decodeAdmission(output)
		return d.verdict(), err
	case PointFailure:
		d, err := decodeFailure(output)
		return d.verdict(), err
	case PointSubstitution:
		d, err := decodeSubstitution(output)
		return d.verdict(), err
	case PointReplay:
		d, err := decodeReplay(output)
		return d.verdict(), err
	default:
		return Verdict{}, fmt.Errorf("there is no decision point %d", p)
	}
}

func closedVerdict(p Point, reason string) Verdict {
	switch p {
	case PointAdmission:
		d, _ := closedAdmission(reason)
		return d.verdict()
	case PointFailure:
		d, _ := closedFailure(reason)
		return d.verdict()
	case PointSubstitution:
		d, _ := closedSubstitution(reason)
		return d.verdict()
	default:
		d, _ := closedReplay(reason)
		return d.verdict()
	}
}

func (d *Admission) verdict() Verdict {
	does := "deny"
	if d.Allow {
		does = "allow"
	}
	list := func(name string, values []string) {
		if values != nil {
			does += ", " + name + " [" + strings.Join(values, " ") + "]"
		}
	}
	if d.Budget != "" {
		does += ", budget " + d.Budget
	}
	list("groups", d.Groups)
	list("regions", d.Regions)
	if d.Substitution != Unspecified {
		does += ", substitution " + d.Substitution.String()
	}
	if d.Message != "" {
		does += ", says " + fmt.Sprintf("%q", d.Message)
	}
	return Verdict{does, d.Reason, d.Rule}
}

func (d *Failure) verdict() Verdict {
	does := d.Class.String() + ", "
	if d.Isolate {
		does += "isolates "
	} else {
		does += map[Health]string{HealthCounts: "counts against ", HealthIgnore: "leaves alone "}[d.Health]
	}
	return Verdict{does + d.Scope.String(), d.Reason, d.Rule}
}

func (d *Substitution) verdict() Verdict {
	if !d.Approve {
		return Verdict{"refuse", d.Reason, d.Rule}
	}
	return Verdict{"approve, tells the caller " + d.Disclosure, d.Reason, d.Rule}
}

func (d *Replay) verdict() Verdict {
	does := ActionList(d.Actions)
	if d.Delay > 0 {
		does += ", after " + d.Delay.String() + " at least"
	}
	return Verdict{does, d.Reason, d.Rule}
}

// ActionList writes actions in their order, without the stop that ends every list of them.
func ActionList(actions []failure.Action) string {
	var words []string
	for _, a := range actions {
		if a != failure.Stop {
			words = append(words, a.String())
		}
	}
	if len(words) == 0 {
		return failure.Stop.String()
	}
	return strings.Join(words, " → ")
}
