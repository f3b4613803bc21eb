package flow

import (
	"time"

	"github.com/interlock-gateway/interlock/gateway/catalog"
	"github.com/interlock-gateway/interlock/gateway/failure"
	"github.com/interlock-gateway/interlock/gateway/openai"
	"github.com/interlock-gateway/interlock/gateway/policy"
	"github.com/interlock-gateway/interlock/gateway/recovery"
	"github.com/interlock-gateway/interlock/gateway/route"
	"github.com/interlock-gateway/interlock/gateway/route/breaker"
)

// target is one candidate of the plan: a route, for the requested model or for a substitute.
type target struct {
	route      *route.Route
	link       *Link
	offer      *offer // what is known of its model; never nil
	substitute int    // 0 = the requested model, n = the alias's n-th substitute

	disclosure string        // why a substitution was approved, as the caller is told
	lastClass  failure.Class // of the latest attempt on it
	full       bool          // its queue was full, or waited out, in this request
	groupFull  time.Duration // its group's requests per minute are used up for so long; 0 = they are not
	busy       bool          // usable, but an attempt would wait in its queue
	refused    bool          // it turned out unusable when an attempt was about to start
}

// plan fixes the order of candidates for the whole request, and chooses the first step.
func (x *Exchange) plan(a *policy.Admission) *openai.Error {
	if x.alias != nil && x.gen.Table.AliasOff(x.rec.Alias, x.g.now()) {
		return openai.NewError(openai.NoEligibleRoute, "This alias is switched off.")
	}
	groups := x.groupsOf(a)
	opts := route.PlanOptions{
		Now: x.g.now(), Regions: a.Regions,
		Enough: max(leastCandidates, 2*x.budget.maxAttempts), Fits: (*carriers)(x),
	}
	x.targets, x.cands = x.targets[:0], x.cands[:0]
	if e := x.addTargets(groups, x.model, 0, opts); e != nil {
		return e
	}
	if len(x.targets) == 0 {
		if a.Regions == nil && a.Groups == nil {
			return x.notFound()
		}
		return openai.NewError(openai.NoEligibleRoute, "The policy leaves no route for this model.")
	}
	if x.facts.PreviousResponse || x.facts.Conversation {
		x.targets, x.cands = x.targets[:1], x.cands[:1] // the state is held upstream: never moved
	}
	if !x.m.SubstitutionDenied() {
		for i := range x.alias.substitutes {
			// A substitute that cannot do what the request asks for is no candidate.
			_ = x.addTargets(groups, x.alias.substitutes[i].model, i+1, opts)
		}
	}
	x.contract = x.fingerprint()
	if x.facts.Stream {
		x.forgetStream() // of the request before
	}
	x.step, x.decided = recovery.Step{}, false
	x.choose(opts.Now)
	return nil
}

// leastCandidates is of how many equal routes a plan holds at least, where there are so many.
const leastCandidates = 8

// carriers is an exchange that tells which routes can carry its request.
type carriers Exchange

// Fits implements route.Fitter.
func (c *carriers) Fits(r *route.Route) bool {
	l := c.gen.links[r.Channel]
	return l != nil && l.adapter.Serves(c.facts.Endpoint) && (l.carries == nil || l.carries.lacks(&c.facts) == "")
}

// fingerprint names the contract of the request: the alias's, or the one that its own facts
// imply.
func (x *Exchange) fingerprint() string {
	if x.alias != nil {
		return x.alias.contract.Fingerprint
	}
	f := &x.facts
	d := catalog.Demand{MaxOutputTokens: int(f.MaxOutputTokens)}
	for _, m := range [...]struct {
		asked bool
		bit   catalog.Modality
	}{
		{f.Modalities&openai.Text != 0, catalog.Text},
		{f.Modalities&openai.Image != 0, catalog.Image},
		{f.Modalities&openai.Audio != 0, catalog.Audio},
		{f.Modalities&openai.File != 0, catalog.File},
	} {
		if m.asked {
			d.Modalities |= m.bit
		}
	}
	for _, c := range [...]struct {
		asked bool
		bit   catalog.Capability
	}{
		{f.Stream, catalog.Streaming},
		{f.Tools, catalog.Tools},
		{f.ParallelToolCalls, catalog.ParallelToolCalls},
		{f.Structure == openai.JSONObject, catalog.JSONObject},
		{f.Structure == openai.JSONSchema, catalog.JSONSchema},
	} {
		if c.asked {
			d.Capabilities |= c.bit
		}
	}
	return catalog.Implied(x.model, x.asked.Endpoint, d, f.Stream)
}

func (x *Exchange) groupsOf(a *policy.Admission) []*route.Group {
	if a.Groups == nil {
		return x.caller.groups
	}
	left := make([]*route.Group, 0, len(a.Groups))
	for _, name := range a.Groups {
		for _, g := range x.caller.groups {
			if g.Name == name {
				left = append(left, g)
			}
		}
	}
	return left
}

// addTargets appends the routes of one model.
func (x *Exchange) addTargets(groups []*route.Group, model string, substitute int, opts route.PlanOptions) *openai.Error {
	o := x.gen.offer(model)
	lack := o.lacks(&x.facts)
	x.routes = x.gen.Table.Plan(x.routes[:0], groups, model, opts)
	before, uncarried := len(x.cands), ""
	for _, r := range x.routes {
		l := x.gen.links[r.Channel]
		if l == nil || !l.adapter.Serves(x.facts.Endpoint) {
			continue
		}
		if l.carries != nil {
			if lost := l.carries.lacks(&x.facts); lost != "" {
				uncarried = lost
				continue
			}
		}
		if lack != "" {
			if substitute > 0 {
				return nil
			}
			e := openai.NewError(openai.UnsupportedParameter, "The model does not support what "+lack+" asks for.")
			e.Param = lack
			return e
		}
		c := recovery.Candidate{
			Route: uint16(len(x.cands)), Group: uint16(l.group), Model: uint16(substitute),
			Mapped: r.Mapped, OffContract: x.alias != nil && !x.alias.meets(o.model, l.region),
		}
		if substitute > 0 {
			s := &x.alias.substitutes[substitute-1]
			c.Substitute = recovery.Substitute{
				Listed: true, Meets: !c.OffContract && o.fits(&x.facts), Priced: s.priced, AboveGate: true, Discloses: true,
			}
		}
		x.targets = append(x.targets, target{route: r, link: l, offer: o, substitute: substitute})
		x.cands = append(x.cands, c)
	}
	if uncarried != "" && substitute == 0 && len(x.cands) == before {
		e := openai.NewError(openai.UnsupportedParameter, "No channel of the model can carry what "+uncarried+" asks for.")
		e.Param = uncarried
		return e
	}
	return nil
}

// refresh reads how every candidate is at this moment.
func (x *Exchange) refresh(now time.Time) {
	x.changed = x.gen.Table.Changed() // before looking: a switch set from here on wakes whoever waits
	x.off = x.actsOff(now)
	x.m.SwitchOff(x.off)
	for i := range x.targets {
		t, c := &x.targets[i], &x.cands[i]
		av := t.route.Availability(now, x.askFor(i))
		c.Until = av.Until
		t.busy = av.Busy
		switch {
		case t.full || t.refused:
			c.State = recovery.Unusable
		case x.groupRefuses(t, now):
			c.State = recovery.Unusable
		case av.State == route.Ready:
			c.State = recovery.Ready
		case av.State == route.HalfOpen:
			c.State = recovery.HalfOpen
		case av.State == route.Cooling:
			c.State = recovery.Cooling
		default:
			c.State = recovery.Unusable
			t.full = t.full || av.State == route.Full
		}
	}
}

// askFor is the question about candidate i: a same-route retry is never a probe.
func (x *Exchange) askFor(i int) route.Ask {
	same := x.m.Made() > 0 && x.at.candidate == i
	g := x.at.gate
	return route.Ask{SameRoute: same, Entered: g != nil && g == x.targets[i].route.Channel.Gate, Uses: x.uses()}
}

func (x *Exchange) uses() breaker.Capabilities {
	f := &x.facts
	var u breaker.Capabilities
	if f.Tools {
		u |= breaker.UsesTools
	}
	if f.Structure == openai.JSONSchema {
		u |= breaker.UsesJSONSchema
	}
	if f.Stream {
		u |= breaker.UsesStreaming
	}
	if f.Modalities&openai.Image != 0 {
		u |= breaker.UsesVision
	}
	if f.Modalities&openai.Audio != 0 {
		u |= breaker.UsesAudio
	}
	return u
}

// groupRefuses reports whether the target's group has used up its requests per minute. A
// request counts once in a group, however many attempts it makes there.
func (x *Exchange) groupRefuses(t *target, now time.Time) bool {
	if x.admittedTo(t.link.group) {
		t.groupFull = 0
		return false
	}
	ok, next := t.route.Channel.Group.RPM.Room(now)
	t.groupFull = 0
	if !ok {
		t.groupFull = max(1, min(next.Sub(now), time.Minute))
	}
	return !ok
}

func (x *Exchange) admittedTo(group int) bool {
	for _, g := range x.admitted {
		if g == group {
			return true
		}
	}
	return false
}

// preferFree sets the busy routes aside while a route of the same group and model has
// capacity: to wait in a queue is for when nobody is free.
func (x *Exchange) preferFree() {
	for i := range x.targets {
		t, c := &x.targets[i], &x.cands[i]
		if !t.busy || c.State != recovery.Ready {
			continue
		}
		for j := range x.targets {
			u := &x.targets[j]
			if x.cands[j].State == recovery.Ready && !u.busy && u.substitute == t.substitute && u.link.group == t.link.group {
				c.State = recovery.Unusable
				break
			}
		}
	}
}

// actsOff are the acts that switches forbid for this request now.
func (x *Exchange) actsOff(now time.Time) recovery.Causes {
	acts := x.gen.Table.Acts(x.rec.Alias, now)
	var off recovery.Causes
	for _, c := range [...]failure.Cause{failure.SameRouteRetry, failure.SameContractFallback, failure.ModelSubstitution} {
		if acts.Has(c) {
			off = off.With(c)
		}
	}
	return off
}
