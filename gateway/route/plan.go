package route

import (
	"math/bits"
	"math/rand/v2"
	"slices"
	"time"
)

// PlanOptions narrow and order a plan.
type PlanOptions struct {
	Now     time.Time
	Regions []string    // only channels of these; nil = all
	Rand    rand.Source // for weighted order; nil = the process's own
}

// Plan appends to dst the routes of the groups that serve the model, in the order in which a
// request tries them, without repeats: group after group; within a group by priority, equal
// ones drawn by weight (strategy weighted: all drawn by weight). A route whose circuit closed
// lately stands back behind another for a part of the requests.
//
// It does not leave out what is unusable now: ask each route for its Availability. Call it
// once per request and model. It allocates nothing where dst is large enough and the model is
// listed, or was asked for before.
func (t *Table) Plan(dst []*Route, groups []*Group, model string, o PlanOptions) []*Route {
	from := len(dst)
	for i, g := range groups {
		if slices.Contains(groups[:i], g) {
			continue
		}
		dst = g.plan(dst, model, &o)
	}
	if plan := dst[from:]; len(plan) > 1 && t.state.circuits.Ramping(o.Now) {
		standBack(plan, o.Now)
	}
	return dst
}

// plan appends the group's routes in order.
func (g *Group) plan(dst []*Route, model string, o *PlanOptions) []*Route {
	from := len(dst)
	for _, r := range g.candidates(model) {
		if o.Regions == nil || slices.Contains(o.Regions, r.Channel.Region) {
			dst = append(dst, r)
		}
	}
	list := dst[from:]
	for len(list) > 1 {
		n := len(list)
		if !g.weighted {
			for n = 1; n < len(list) && list[n].Channel.Priority == list[0].Channel.Priority; {
				n++
			}
		}
		shuffle(list[:n], o.Rand)
		list = list[n:]
	}
	return dst
}

// shuffle draws the routes one after the other, each with a chance in proportion to its weight
// among those that are left.
func shuffle(list []*Route, src rand.Source) {
	total := uint64(0)
	for _, r := range list {
		total += uint64(r.Channel.Weight)
	}
	for i := 0; i < len(list)-1 && total > 0; i++ {
		x := random(src)
		left, _ := bits.Mul64(x, total) // uniform in [0, total)
		for j := i; j < len(list); j++ {
			w := uint64(list[j].Channel.Weight)
			if left < w {
				list[i], list[j] = list[j], list[i]
				total -= w
				break
			}
			left -= w
		}
	}
}

func random(src rand.Source) uint64 {
	if src == nil {
		return rand.Uint64()
	}
	return src.Uint64()
}

// standBack lets another route go first where the first usable one is ramping up and it is not
// its turn. Where no other route is well, nothing changes: a ramp refuses nobody.
func standBack(plan []*Route, now time.Time) {
	first := slices.IndexFunc(plan, func(r *Route) bool { return r.health(now, Ask{}).State.Usable() })
	if first < 0 || !plan[first].ramping(now) {
		return
	}
	for i := first + 1; i < len(plan); i++ {
		r := plan[i]
		if r.health(now, Ask{}).State != Ready || r.ramping(now) {
			continue
		}
		if !plan[first].turn(now) {
			copy(plan[first+1:i+1], plan[first:i])
			plan[first] = r
		}
		return
	}
}
