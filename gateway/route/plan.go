package route

import (
	"math/bits"
	"math/rand/v2"
	"slices"
	"sort"
	"time"
)

// PlanOptions narrow and order a plan.
type PlanOptions struct {
	Now     time.Time
	Regions []string    // only channels of these; nil = all
	Rand    rand.Source // for weighted order; nil = the process's own
	// Enough is how many usable routes of each priority a plan needs: of more equal routes than
	// that, only so many are drawn, so that a plan costs the same for ten channels and for ten
	// thousand. 0 = all are listed.
	Enough int
	// Fits narrows what counts as usable; nil = everything fits. It must not keep the route.
	Fits Fitter
}

// Fitter says whether a route can carry the request that a plan is for.
type Fitter interface{ Fits(*Route) bool }

// Plan appends to dst the routes of the groups that serve the model, in the order in which a
// request tries them, without repeats: group after group; within a group by priority, equal
// ones drawn by weight (strategy weighted: all drawn by weight). A route whose circuit closed
// lately stands back behind another for a part of the requests.
//
// It does not leave out what is unusable now: ask each route for its Availability. With
// Enough it leaves out most of many equal routes, but never all usable ones. Call it once per
// request and model. It allocates nothing where dst is large enough and the model is listed,
// or was asked for before.
func (t *Table) Plan(dst []*Route, groups []*Group, model string, o PlanOptions) []*Route {
	from := len(dst)
	for i, g := range groups {
		if slices.Contains(groups[:i], g) {
			continue
		}
		if list := g.candidates(model); list != nil {
			for j := range list.tiers {
				dst = list.tiers[j].draw(dst, &o)
			}
		}
	}
	if plan := dst[from:]; len(plan) > 1 && t.state.circuits.Ramping(o.Now) {
		standBack(plan, o.Now)
	}
	return dst
}

// roster is what a group has for one model: its routes in order of priority, in tiers of equal
// ones.
type roster struct {
	routes []*Route
	tiers  []tier
}

// tier is a part of a group's routes among which only weight decides.
type tier struct {
	routes []*Route
	upTo   []uint64 // the sum of the weights up to and with each route; nil where all weigh the same
}

// newRoster makes the tiers of routes that are in order of priority.
func newRoster(routes []*Route, weighted bool) *roster {
	l := &roster{routes: routes}
	for from := 0; from < len(routes); {
		n := len(routes)
		if !weighted {
			for n = from + 1; n < len(routes) && routes[n].Channel.Priority == routes[from].Channel.Priority; {
				n++
			}
		}
		l.tiers = append(l.tiers, newTier(routes[from:n:n]))
		from = n
	}
	return l
}

func newTier(routes []*Route) tier {
	t := tier{routes: routes}
	if !slices.ContainsFunc(routes, func(r *Route) bool { return r.Channel.Weight != routes[0].Channel.Weight }) {
		return t
	}
	total := uint64(0)
	t.upTo = make([]uint64, len(routes))
	for i, r := range routes {
		total += uint64(r.Channel.Weight) // #nosec G115 -- never negative
		t.upTo[i] = total
	}
	return t
}

// pick draws one route by weight.
func (t *tier) pick(src rand.Source) *Route {
	x := random(src)
	if t.upTo == nil {
		return t.routes[bounded(x, len(t.routes))]
	}
	x, _ = bits.Mul64(x, t.upTo[len(t.upTo)-1]) // uniform in [0, total)
	return t.routes[sort.Search(len(t.upTo)-1, func(i int) bool { return t.upTo[i] > x })]
}

// draw appends the tier's routes in drawn order: all of them, or of many enough.
func (t *tier) draw(dst []*Route, o *PlanOptions) []*Route {
	if o.Enough > 0 && len(t.routes) > o.Enough {
		return t.sample(dst, o)
	}
	from := len(dst)
	for _, r := range t.routes {
		if o.allows(r) {
			dst = append(dst, r)
		}
	}
	shuffle(dst[from:], o.Rand)
	return dst
}

// sample draws by weight, without replacement, until enough of the drawn are usable. Where
// most are not, or few carry nearly all the weight, drawing would go on for long: the rest is
// then looked for from a random place on, and put in order by weight.
func (t *tier) sample(dst []*Route, o *PlanOptions) []*Route {
	const patience = 4 // draws per route that is needed
	from, usable := len(dst), 0
	n := len(t.routes)
	for range patience * o.Enough {
		r := t.pick(o.Rand)
		if slices.Contains(dst[from:], r) || !o.allows(r) {
			continue
		}
		dst = append(dst, r)
		if o.usable(r) {
			if usable++; usable == o.Enough {
				return dst
			}
		}
	}
	drawn, start := len(dst), bounded(random(o.Rand), n)
	for i := range n {
		r := t.routes[(start+i)%n]
		if !o.allows(r) || !o.usable(r) || slices.Contains(dst[from:drawn], r) {
			continue
		}
		dst = append(dst, r)
		if usable++; usable == o.Enough {
			break
		}
	}
	shuffle(dst[drawn:], o.Rand)
	if len(dst) == from { // nothing is usable, and no draw has hit an allowed one
		for i := range n {
			if r := t.routes[(start+i)%n]; o.allows(r) {
				dst = append(dst, r)
				if len(dst)-from == o.Enough {
					break
				}
			}
		}
	}
	return dst
}

func (o *PlanOptions) allows(r *Route) bool {
	return o.Regions == nil || slices.Contains(o.Regions, r.Channel.Region)
}

// usable reports whether an attempt on the route could start now, without a queue.
func (o *PlanOptions) usable(r *Route) bool {
	if o.Fits != nil && !o.Fits.Fits(r) {
		return false
	}
	a := r.Availability(o.Now, Ask{})
	return a.State.Usable() && !a.Busy
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

// bounded turns 64 random bits into a number below n.
func bounded(x uint64, n int) int {
	high, _ := bits.Mul64(x, uint64(n)) // #nosec G115 -- a length
	return int(high)                    // #nosec G115 -- below n
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
