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

// Record is the evidence of one decision. It is shared and immutable.
type Record struct {
	Point    Point
	Revision string
	Input    []byte // JSON: the facts that were decided on
	Output   []byte // JSON: the decision, or the fail-closed one
	Hash     string // of Input and Point, hex: equal inputs of a point have equal hashes
}

// Meta says how a decision was made.
type Meta struct {
	Record *Record       // never nil
	Cached bool          // from the cache: Took is 0
	Took   time.Duration // the evaluation's
	Err    error         // not nil: why the decision failed closed, a *DecisionError
}

// Admission decides whether the request may begin. With an error it is a denial that the
// caller sees as 503 policy_unavailable. A time-out is tried once more.
func (r *Revision) Admission(ctx context.Context, in *AdmissionInput) (Admission, Meta) {
	panic("skeleton")
}

// Failure classifies a failed attempt. With an error the class is unknown.
func (r *Revision) Failure(ctx context.Context, in *FailureInput) (Failure, Meta) { panic("skeleton") }

// Substitution decides about one substitute. With an error it is not approved.
func (r *Revision) Substitution(ctx context.Context, in *SubstitutionInput) (Substitution, Meta) {
	panic("skeleton")
}

// Replay decides what may be done after a failure. With an error it is a stop.
func (r *Revision) Replay(ctx context.Context, in *ReplayInput) (Replay, Meta) { panic("skeleton") }
