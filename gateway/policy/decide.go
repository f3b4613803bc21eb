package policy

import (
	"context"
	"time"
)

// Point names a decision point.
type Point uint8

// The decision points.
const (
	PointAdmission Point = iota
	PointFailure
	PointSubstitution
	PointReplay
	points
)

var pointNames = []string{"admission", "failure", "substitution", "replay"}

func (p Point) String() string { return word(pointNames, p) }

// ParsePoint finds the point with that word.
func ParsePoint(s string) (Point, bool) { return parse[Point](pointNames, s) }

// Points lists the decision points.
func Points() []Point { return []Point{PointAdmission, PointFailure, PointSubstitution, PointReplay} }

// Record is the evidence of one decision. It is shared by every request that got the same one
// from the cache, and immutable.
type Record struct {
	Point    Point
	Revision string
	Input    []byte // JSON: the facts that were decided on
	Output   []byte // JSON: what the rule gave, or the fail-closed decision
	Hash     string // of point and input, hex: equal inputs have equal hashes, in every process

	mask mask // of its revision
}

// Meta says how a decision was made.
type Meta struct {
	Record *Record       // never nil
	Cached bool          // from the cache: Took is 0
	Took   time.Duration // of the evaluation
	Err    error         // not nil: why the decision failed closed, a *DecisionError
}

// Admission decides whether the request may begin. With an error it is a denial that the
// caller sees as 503 policy_unavailable. A time-out is tried once more.
//
// Like every decision: it blocks no longer than the time-out (admission: twice), but for a
// builtin function that cannot be interrupted, and ends when ctx does. ctx is looked at only
// where there is no cached decision.
func (r *Revision) Admission(ctx context.Context, in *AdmissionInput) (Admission, Meta) {
	key := *in
	key.Detail = nil
	d, meta := r.admission.decide(ctx, &key, in.Detail)
	if meta.Err != nil && isTimeout(meta.Err) && ctx.Err() == nil {
		return r.admission.decide(ctx, &key, in.Detail)
	}
	return d, meta
}

// Failure classifies a failed attempt. With an error the class is unknown.
func (r *Revision) Failure(ctx context.Context, in *FailureInput) (Failure, Meta) {
	key := *in
	key.Detail = nil
	return r.failure.decide(ctx, &key, in.Detail)
}

// Substitution decides about one substitute. With an error it is not approved.
func (r *Revision) Substitution(ctx context.Context, in *SubstitutionInput) (Substitution, Meta) {
	key := *in
	key.Detail = nil
	return r.substitution.decide(ctx, &key, in.Detail)
}

// Replay decides what may be done after a failure. With an error it is a stop.
func (r *Revision) Replay(ctx context.Context, in *ReplayInput) (Replay, Meta) {
	key := *in
	key.Detail = nil
	return r.replay.decide(ctx, &key, in.Detail)
}

// with returns the input with its free numbers, for a point whose rules read any.
func (in AdmissionInput) with(d *Detail) asked    { in.Detail = d; return &in }
func (in FailureInput) with(d *Detail) asked      { in.Detail = d; return &in }
func (in SubstitutionInput) with(d *Detail) asked { in.Detail = d; return &in }
func (in ReplayInput) with(d *Detail) asked       { in.Detail = d; return &in }
