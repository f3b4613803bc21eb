package policy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"

	"github.com/interlock-gateway/interlock/gateway/failure"
)

// A bundle can compile and still have lost a table: its rules would then give nothing for
// some failures, hours later. So every point is asked over its finite domain before the
// bundle is used: each answer must be there, be one answer, and be a decision.

// probeTimeout bounds one probe: generous, since it runs off the request's path on a machine
// that may be busy.
const probeTimeout = 2 * time.Second

// probeBudget bounds the evaluations of all probes: a policy that takes a moment for each of
// thousands is no policy for a request's path. The default bundle needs less than a hundredth.
const probeBudget = 15 * time.Second

// maxProbeFaults ends a hopeless bundle early.
const maxProbeFaults = 5

func (r *Revision) probe(ctx context.Context, c *compiled) error {
	limited, cancel := context.WithTimeout(ctx, probeBudget)
	defer cancel()
	var faults Errors
	for p := range points {
		r.reach[p].kinds = r.reach[p].looksUp("request.kind", c.compiler, c.data.root)
		r.reach[p].endpoints = r.reach[p].looksUp("request.endpoint", c.compiler, c.data.root)
		if p == PointFailure {
			r.reach[p].statuses = r.reach[p].statusesNamed(c.data.root)
		}
		failed := r.probePoint(limited, p)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if limited.Err() != nil {
			return append(faults, faultAt(c.compiler.GetRulesWithPrefix(p.ref())[0].Location, fmt.Sprintf(
				"the probes of %s and of the points before it take longer than %v: its decisions are too slow", p, probeBudget)))
		}
		for _, f := range failed {
			fault := faultAt(c.compiler.GetRulesWithPrefix(p.ref())[0].Location, fmt.Sprintf("probe %s: %v", f.name, f.err))
			if faults = append(faults, fault); len(faults) == maxProbeFaults || isTimeout(f.err) {
				return faults
			}
		}
	}
	return faults.orNil()
}

// question is an input as a probe yields it, still without detail.
type question interface{ with(*Detail) asked }

type probeFault struct {
	name string
	err  error
}

// probePoint asks one point everything, on all processors, and returns what failed, in the
// order of the probes. It ends early where a time-out or enough faults were seen.
func (r *Revision) probePoint(ctx context.Context, p Point) []probeFault {
	type probe struct {
		name string
		in   asked
	}
	var all []probe
	var shape *layout
	answered := &remembered[struct{}]{}
	detail := (*Detail)(nil)
	if r.reach[p].detail() {
		detail = unknownDetail
	}
	for name, in := range r.probes(p) {
		all = append(all, probe{name, in.with(detail)})
	}
	if r.reach[p].byFields(p) && len(all) > 0 {
		shape = layoutOf(all[0].in)
	}
	checked := &checkedOutputs{}
	errs := make([]error, len(all))
	var next, failed atomic.Int64
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for failed.Load() < maxProbeFaults && ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= len(all) {
					return
				}
				if errs[i] = r.probeOne(ctx, p, all[i].in, shape, answered, checked); errs[i] == nil {
					continue
				}
				failed.Add(1)
				if isTimeout(errs[i]) {
					failed.Store(maxProbeFaults)
				}
			}
		})
	}
	wg.Wait()
	var faults []probeFault
	for i, err := range errs {
		if err != nil {
			faults = append(faults, probeFault{all[i].name, err})
		}
	}
	return faults
}

// probeOne asks one question, unless one was answered that differs from it only in fields that
// were not read. shape is nil where the answer depends on more than the fields.
func (r *Revision) probeOne(
	ctx context.Context, p Point, in asked, shape *layout, answered *remembered[struct{}], checked *checkedOutputs,
) error {
	if shape == nil {
		return r.probeInput(ctx, p, encodeAST(in), checked)
	}
	told := fieldsOfInput(in)
	if _, ok := answered.get(told.hashes); ok {
		return nil
	}
	var read uint64
	_, noting := shape.build(told.fields, &read)
	err := r.probeInput(ctx, p, noting, checked)
	if err == nil {
		answered.put(read, told.hashes, struct{}{})
		return nil
	}
	if failed := (*DecisionError)(nil); errors.As(err, &failed) && failed.Code != ErrorOther {
		return err
	}
	return r.probeInput(ctx, p, encodeAST(in), checked) // it may be the noting that the rules trip over
}

// checkedOutputs are outputs that were held to their schema, so that equal ones are held once.
type checkedOutputs struct{ sync.Map }

// probeInput holds one answer to the decoder and to the output schema, which must agree.
func (r *Revision) probeInput(ctx context.Context, p Point, in ast.Value, checked *checkedOutputs) error {
	query, check := r.of(p)
	output, err := r.evaluate(ctx, query, in, max(probeTimeout, r.options.Timeout))
	if err != nil {
		if failed := (*DecisionError)(nil); errors.As(err, &failed) {
			failed.Point = p
		}
		return err
	}
	text, err := json.Marshal(output)
	if err != nil {
		return err
	}
	if _, known := checked.Load(string(text)); known {
		return nil
	}
	if err := check(output); err != nil {
		return err
	}
	for _, fault := range violations(p.String(), output) {
		return fmt.Errorf("the output breaks its schema at %q: %s", fault.pointer, fault.message)
	}
	checked.Store(string(text), true)
	return nil
}

func (r *Revision) probes(p Point) iter.Seq2[string, question] {
	switch p {
	case PointAdmission:
		return r.admissionProbes
	case PointFailure:
		return r.failureProbes
	case PointSubstitution:
		return substitutionProbes
	default:
		return r.replayProbes
	}
}

// kindsToProbe returns the request kinds that can matter to a point: where its rules only look
// them up in tables, one and those that the tables know; where they do more, all of the bundle.
func (r *Revision) kindsToProbe(p Point) []string {
	by := r.reach[p]
	kinds := []string{"chat"}
	for _, kind := range slices.Sorted(maps.Keys(r.kinds)) {
		if kind != "chat" && (by.kinds.free || by.endpoints.free ||
			slices.Contains(by.kinds.names, kind) || slices.Contains(by.endpoints.names, endpointOf(kind))) {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// endpointOf is KindOf the other way round.
func endpointOf(kind string) string {
	switch kind {
	case "chat":
		return "chat_completions"
	case "responses_background", "responses_conversation", "responses_hosted_tools":
		return "responses"
	}
	if slices.Contains(enums()["request.endpoint"], kind) {
		return kind
	}
	return ""
}

var bothWays = []bool{false, true}

func (r *Revision) admissionProbes(yield func(string, question) bool) {
	for _, kind := range r.kindsToProbe(PointAdmission) {
		for _, idempotent := range bothWays {
			for _, stream := range bothWays {
				for wish := Unspecified; wish <= Deny; wish++ {
					in := AdmissionInput{
						Key: Key{Name: "probe"},
						Request: Request{
							Endpoint: endpointOf(kind), Kind: kind, Model: "probe", Modalities: ListOf("text"),
							StructuredOutput: FreeText, SideEffects: effectsOf(idempotent), Stream: stream, Idempotent: idempotent,
						},
						Caller: Caller{Substitution: wish},
					}
					if !yield(fmt.Sprintf("kind %s, idempotent %t, stream %t, substitution %s", kind, idempotent, stream, wish), &in) {
						return
					}
				}
			}
		}
	}
}

func effectsOf(idempotent bool) SideEffects {
	if idempotent {
		return NoSideEffects
	}
	return PossibleSideEffects
}

// failureProbes asks every transport fact, every adapter class and every error status that the
// rules tell apart. What they do not read makes no difference and is not varied.
func (r *Revision) failureProbes(yield func(string, question) bool) {
	sentOrNot := []bool{true}
	if r.reach[PointFailure].reads("failure.request_sent") {
		sentOrNot = bothWays
	}
	ask := func(f FailureFacts) bool {
		in := FailureInput{
			Failure: f, Channel: Channel{Group: "probe", Name: "probe", Provider: "probe"}, Model: "probe",
		}
		return yield(fmt.Sprintf("adapter class %s, transport %s, status %d, phase %s",
			classWord(f.AdapterClass, "unknown"), f.Transport, f.Status, f.Phase), &in)
	}
	for _, phase := range failure.Phases() {
		for _, transport := range failure.Transports() {
			for _, sent := range sentOrNot {
				if !ask(FailureFacts{Transport: transport, Phase: phase, RequestSent: sent}) {
					return
				}
			}
		}
		for _, class := range failure.Classes() {
			if !ask(FailureFacts{AdapterClass: class, Status: 200, Phase: phase, RequestSent: true}) {
				return
			}
		}
	}
	for _, status := range r.reach[PointFailure].statuses {
		if !ask(FailureFacts{Status: status, RequestSent: true}) {
			return
		}
	}
}

// substitutionProbes asks every class with a window that is larger and one that is not known,
// and for one class every wish and side effect.
func substitutionProbes(yield func(string, question) bool) {
	ask := func(class failure.Class, wish Wish, effects SideEffects, window Window) bool {
		in := SubstitutionInput{
			Request:      Request{Endpoint: "chat_completions", Kind: "chat", Model: "probe", Alias: "probe", SideEffects: effects},
			Alias:        Alias{Name: "probe", Version: 1},
			Requested:    Model{Name: "probe", Price: Price{Input: 1, Output: 1}},
			Candidate:    Candidate{Model: "other", Price: Price{Input: -1, Output: -1}, ContextWindow: window, Evidence: NoEvidence},
			Substitution: wish,
			Class:        class,
		}
		return yield(fmt.Sprintf("class %s, caller says %s, side effects %s, window %s",
			classWord(class, "none"), wish, effects, window), &in)
	}
	for _, class := range append(failure.Classes(), failure.None) {
		for _, window := range []Window{UnknownWindow, LargerWindow} {
			if !ask(class, Unspecified, NoSideEffects, window) {
				return
			}
		}
	}
	for wish := Unspecified; wish <= Deny; wish++ {
		for effects := UnknownEffects; effects <= PossibleSideEffects; effects++ {
			if !ask(failure.ServerError, wish, effects, LargerWindow) {
				return
			}
		}
	}
}

// replayProbes asks the whole matrix: class × phase × idempotent × kind, each after a first
// failure with everything open, after a second one and with nothing left.
func (r *Revision) replayProbes(yield func(string, question) bool) {
	for _, kind := range r.kindsToProbe(PointReplay) {
		for _, class := range append(failure.Classes(), failure.None) {
			for _, phase := range failure.Phases() {
				for _, idempotent := range bothWays {
					in := openInput(class, phase, idempotent)
					in.Request.Kind, in.Request.Endpoint = kind, endpointOf(kind)
					again := in
					again.Attempt = Attempt{Number: 2, SameRoute: 2, SameGroup: 2, Cause: failure.SameRouteRetry}
					spent := in
					spent.Candidates, spent.Budget = Candidates{}, Budget{}
					name := fmt.Sprintf("class %s, phase %s, idempotent %t, kind %s", classWord(class, "none"), phase, idempotent, kind)
					if !yield(name, &in) || !yield(name+", asked twice", &again) || !yield(name+", nothing left", &spent) {
						return
					}
				}
			}
		}
	}
}
