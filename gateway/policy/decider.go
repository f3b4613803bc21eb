package policy

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"
	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/metrics"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/topdown"
)

// input is one of the four inputs: a comparable value, so that it can be the key of a cache.
type input interface {
	comparable
	with(*Detail) asked
}

// decider makes the decisions of one point for one revision.
type decider[I input, D any] struct {
	revision *Revision
	point    Point
	query    rego.PreparedEvalQuery
	decode   func(any) (D, error)
	closed   func(reason string) (D, any)
	detail   bool                       // the rules read free numbers
	cache    *otter.Cache[I, *entry[D]] // nil: decisions are not kept
}

// maxKeptInput bounds what one kept decision holds, in bytes of its input: the names in it may
// be a caller's or a provider's.
const maxKeptInput = 4 << 10

// entry is one kept decision. Only decisions that were made are kept, no failed ones.
type entry[D any] struct {
	decision D
	record   *Record
}

func newDecider[I input, D any](
	r *Revision, p Point, queries []rego.PreparedEvalQuery,
	decode func(any) (D, error), closed func(string) (D, any), to **decider[I, D],
) error {
	d := &decider[I, D]{revision: r, point: p, query: queries[p], decode: decode, closed: closed, detail: r.reach[p].detail()}
	if r.Memoised(p) {
		cache, err := otter.New(&otter.Options[I, *entry[D]]{MaximumSize: r.options.CacheSize})
		if err != nil {
			return fmt.Errorf("decision cache: %w", err)
		}
		d.cache = cache
	}
	*to = d
	return nil
}

// decide returns the kept decision, or makes one. key is the input without its detail.
func (d *decider[I, D]) decide(ctx context.Context, key *I, detail *Detail) (D, Meta) {
	if d.cache != nil {
		if kept, ok := d.cache.GetIfPresent(*key); ok {
			return kept.decision, Meta{Record: kept.record, Cached: true}
		}
	}
	return d.make(ctx, *key, detail)
}

func (d *decider[I, D]) make(ctx context.Context, key I, detail *Detail) (D, Meta) {
	if !d.detail {
		detail = nil
	} else if detail == nil {
		detail = unknownDetail
	}
	in := key.with(detail)
	record := &Record{Point: d.point, Revision: d.revision.id, Input: encodeJSON(in), mask: d.revision.mask}
	sum := sha256.Sum256(append([]byte(d.point.String()+" "), record.Input...))
	record.Hash = hex.EncodeToString(sum[:16])

	start := time.Now()
	output, err := d.revision.evaluate(ctx, d.query, encodeAST(in), d.revision.options.Timeout)
	meta := Meta{Record: record, Took: time.Since(start)}
	d.revision.trial.saw(d.point, err != nil && isTimeout(err), d.revision.options.Timeout)
	var decision D
	if err == nil {
		if decision, err = d.decode(output); err != nil {
			err = &DecisionError{Code: ErrorUndecodable, Err: err}
		} else if record.Output, err = json.Marshal(output); err != nil {
			err = &DecisionError{Code: ErrorUndecodable, Err: err}
		}
	}
	if err != nil {
		var failed *DecisionError
		if !errors.As(err, &failed) {
			failed = &DecisionError{Err: err}
		}
		failed.Point = d.point
		meta.Err = failed
		var output any
		decision, output = d.closed("policy_error:" + failed.Code.String())
		record.Output, _ = json.Marshal(output) // of words and booleans: it marshals
		return decision, meta
	}
	if d.cache != nil && len(record.Input) <= maxKeptInput {
		d.cache.Set(key, &entry[D]{decision, record})
	}
	return decision, meta
}

// evaluate runs one prepared query. Every error is a *DecisionError.
func (r *Revision) evaluate(
	ctx context.Context, query rego.PreparedEvalQuery, in ast.Value, timeout time.Duration,
) (output any, err error) {
	if ctx.Err() != nil {
		return nil, &DecisionError{Code: ErrorCancelled, Err: context.Cause(ctx)}
	}
	// A panic in the evaluator is one decision that cannot be made, not the end of the process.
	defer func() {
		if p := recover(); p != nil {
			output, err = nil, &DecisionError{Code: ErrorOther, Err: fmt.Errorf("the evaluator panicked: %v", p)}
		}
	}()
	cancel := topdown.NewCancel()
	var late atomic.Bool
	timer := time.AfterFunc(timeout, func() {
		late.Store(true)
		cancel.Cancel()
	})
	defer timer.Stop()
	if ctx.Done() != nil {
		defer context.AfterFunc(ctx, cancel.Cancel)()
	}
	results, err := query.Eval(ctx,
		rego.EvalParsedInput(in),
		rego.EvalTransaction(r.txn),
		rego.EvalMetrics(metrics.NoOp()),
		rego.EvalExternalCancel(cancel),
	)
	switch {
	case err != nil:
		return nil, &DecisionError{Code: r.codeOf(ctx, err, late.Load()), Err: err}
	case late.Load(): // it ended, but past its time
		return nil, &DecisionError{Code: ErrorTimeout, Err: fmt.Errorf("no decision within %v", timeout)}
	case len(results) == 0 || len(results[0].Expressions) == 0:
		return nil, &DecisionError{Code: ErrorUndefined, Err: errors.New("the rule gives nothing for this input")}
	}
	return results[0].Expressions[0].Value, nil
}

func (r *Revision) codeOf(ctx context.Context, err error, late bool) Code {
	if topdown.IsCancel(err) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		if !late && errors.Is(ctx.Err(), context.Canceled) {
			return ErrorCancelled
		}
		return ErrorTimeout
	}
	var failed *topdown.Error
	if errors.As(err, &failed) {
		switch failed.Code {
		case topdown.ConflictErr:
			return ErrorConflict
		case topdown.BuiltinErr:
			return ErrorBuiltin
		}
	}
	return ErrorOther
}

func isTimeout(err error) bool {
	var failed *DecisionError
	return errors.As(err, &failed) && failed.Code == ErrorTimeout
}
