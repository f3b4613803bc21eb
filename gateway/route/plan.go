package route

import (
	"math/rand/v2"
	"time"
)

// PlanOptions narrow and order a plan.
type PlanOptions struct {
	Now     time.Time
	Regions []string    // only channels of these; nil = all
	Rand    rand.Source // for weighted order; nil = the process's own
}

// Table is one immutable generation of groups, channels and routes.
type Table struct{}

// Group finds a group by name; nil if there is none.
func (t *Table) Group(name string) *Group { panic("skeleton") }

// Plan appends to dst the routes of the groups that serve the model, in the order in which a
// request tries them, without repeats: group after group; within a group by priority, equal
// ones drawn by weight (strategy weighted: all drawn by weight). It does not leave out what is
// unusable now: ask each route for its Availability. Call it once per request and model. It
// allocates nothing where dst is large enough.
func (t *Table) Plan(dst []*Route, groups []*Group, model string, o PlanOptions) []*Route {
	panic("skeleton")
}
