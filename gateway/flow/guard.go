package flow

import (
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/interlock-gateway/interlock/gateway/adapter"
	"github.com/interlock-gateway/interlock/gateway/config"
	"github.com/interlock-gateway/interlock/gateway/failure"
	"github.com/interlock-gateway/interlock/gateway/ledger"
	"github.com/interlock-gateway/interlock/gateway/openai"
)

// guard is a guard as a key or an alias names it.
type guard struct {
	plugin   string
	guard    *adapter.Guard // nil where its plugin could not be loaded
	on       []config.GuardPoint
	mayFail  bool // on_error: open
	evidence [3]json.RawMessage
}

// guardPoints are in the order of guard.evidence.
var guardPoints = [...]config.GuardPoint{config.GuardRequest, config.GuardResponse, config.GuardEvents}

const guardPoint = "guard" // where a ledger's decision was made

// guardsOf resolves the guards of a key or an alias.
func guardsOf(list []config.Guard, find func(plugin string) *adapter.Guard) (all []guard) {
	for _, c := range list {
		g := guard{plugin: c.Plugin, guard: find(c.Plugin), on: c.On, mayFail: c.OnError == config.OnErrorOpen}
		for i, p := range guardPoints {
			g.evidence[i], _ = json.Marshal(map[string]string{"plugin": c.Plugin, "on": string(p)}) // strings: no error
		}
		all = append(all, g)
	}
	return all
}

func labelsJSON(labels map[string]string) []byte {
	if len(labels) == 0 {
		return []byte("{}")
	}
	b, _ := json.Marshal(labels) // strings: no error
	return b
}

// guarding is what the guards of one request need. Its zero value has none.
type guarding struct {
	guards  []*guard // the key's, then the alias's
	call    adapter.Call
	subject adapter.Subject
	states  []adapter.GuardState // of a stream, beside guards
	body    []byte               // the request that a guard made of the caller's
	spare   []byte
	denied  *openai.Error // why nothing more is released
}

func (g *guarding) reset(keep int) {
	g.call.Release()
	clear(g.guards)
	g.guards, g.states, g.denied, g.subject = g.guards[:0], g.states[:0], nil, adapter.Subject{}
	g.body, g.spare = emptied(g.body, keep), emptied(g.spare, keep)
}

// guards finds who watches over the request. It is called once its alias is known.
func (x *Exchange) findGuards() {
	k := &x.guarding
	for i := range x.caller.guards {
		k.guards = append(k.guards, &x.caller.guards[i])
	}
	if x.alias != nil {
		for i := range x.alias.guards {
			k.guards = append(k.guards, &x.alias.guards[i])
		}
	}
	if len(k.guards) == 0 {
		return
	}
	k.subject = adapter.Subject{Key: x.caller.key.Name, Labels: x.caller.labelsJSON, Alias: x.rec.Alias}
	k.call = adapter.Call{Request: &x.facts, Model: x.public, ID: x.id, Now: x.rec.ReceivedAt, Gone: x.sig.done()}
}

// guardWait bounds the wait for a guard's instance.
const guardWait = 5 * time.Second

// askGuard has one guard decide. denied is what the caller gets; nil = go on, with what decide left
// in use where use is set.
func (x *Exchange) askGuard(g *guard, point config.GuardPoint, decide func(*adapter.Guard) (adapter.Verdict, error)) (use bool, denied *openai.Error) {
	began := x.g.now()
	x.guarding.call.Deadline = began.Add(guardWait)
	var v adapter.Verdict
	err := errNoGuard
	if g.guard != nil {
		v, err = decide(g.guard)
	}
	action, reason := "pass", v.Reason
	switch {
	case err != nil && g.mayFail:
		action = "failed_open"
	case err != nil:
		action = "failed_closed"
		denied = openai.NewError(openai.PolicyUnavailable, "A guard cannot decide about this request now.")
	case v.Action == adapter.Refuse:
		action = "refuse"
		message := v.Message
		if message == "" {
			message = "A guard does not allow this."
		}
		denied = openai.NewError(openai.PolicyDenied, message)
	case v.Action == adapter.Use:
		action, use = "rewrite", true
	}
	if err != nil {
		x.g.log.Warn("guard failed", "request_id", x.id, "plugin", g.plugin, "on", string(point), "error", err.Error())
	}
	x.g.metrics.CountDecision(guardPoint, action, g.plugin, x.g.now().Sub(began))
	if action != "pass" {
		x.noteGuard(g, point, action, reason)
	}
	return use, denied
}

var errNoGuard = errors.New("its plugin is not loaded")

// noteGuard keeps what a guard did for the ledger.
func (x *Exchange) noteGuard(g *guard, point config.GuardPoint, action, reason string) {
	out := append(append([]byte(`{"action":"`), action...), '"')
	if reason != "" {
		out = append(append(append(out, `,"reason":"`...), reason...), '"') // a code: nothing to escape
	}
	x.rec.Decisions = append(x.rec.Decisions, ledger.Decision{
		Attempt: x.m.Made(), Point: guardPoint, Input: g.evidence[slices.Index(guardPoints[:], point)],
		Output: append(out, '}'), Revision: x.policy.ID(),
	})
}

// guardRequest has the guards look at the request, and goes on with what they made of it.
func (x *Exchange) guardRequest() *openai.Error {
	x.findGuards()
	k := &x.guarding
	for _, g := range k.guards {
		if !slices.Contains(g.on, config.GuardRequest) {
			continue
		}
		use, denied := x.askGuard(g, config.GuardRequest, func(a *adapter.Guard) (v adapter.Verdict, err error) {
			v, k.spare, err = a.Request(k.spare[:0], &k.call, &k.subject, x.in)
			return v, err
		})
		if denied != nil {
			return denied
		}
		if !use {
			continue
		}
		k.body, k.spare = k.spare, k.body
		if e := x.rescan(k.body); e != nil {
			x.g.log.Warn("guard failed", "request_id", x.id, "plugin", g.plugin, "on", "request", "error", e.Message)
			return openai.NewError(openai.PolicyUnavailable, "A guard made a request that cannot be served.")
		}
	}
	return nil
}

// rescan takes over a body that a guard made. Neither the model nor the form of the answer is a
// guard's to change.
func (x *Exchange) rescan(body []byte) *openai.Error {
	stream, model := x.facts.Stream, string(x.facts.Model)
	if e := openai.ScanRequest(x.facts.Endpoint, body, &x.facts); e != nil {
		return e
	}
	if x.facts.Stream != stream || string(x.facts.Model) != model {
		return openai.NewError(openai.InvalidRequest, "it changed the model or stream")
	}
	x.in = body
	return nil
}

// guardAnswer has the guards look at a whole answer. It returns false where it may not go out:
// the attempt has then failed.
func (x *Exchange) guardAnswer() bool {
	k := &x.guarding
	for _, g := range k.guards {
		if !slices.Contains(g.on, config.GuardResponse) {
			continue
		}
		use, denied := x.askGuard(g, config.GuardResponse, func(a *adapter.Guard) (v adapter.Verdict, err error) {
			v, k.spare, err = a.Response(k.spare[:0], &k.call, &k.subject, x.body)
			return v, err
		})
		if denied != nil {
			return x.denyRelease(denied)
		}
		if use {
			x.body, k.spare = k.spare, x.body
		}
	}
	return true
}

// guardEvents has the guards look at what is about to go out of a stream.
func (x *Exchange) guardEvents(ended bool) bool {
	k := &x.guarding
	if len(k.guards) == 0 {
		return true
	}
	for len(k.states) < len(k.guards) {
		k.states = append(k.states, nil)
	}
	for i, g := range k.guards {
		if !slices.Contains(g.on, config.GuardEvents) {
			continue
		}
		use, denied := x.askGuard(g, config.GuardEvents, func(a *adapter.Guard) (v adapter.Verdict, err error) {
			v, k.spare, err = a.Events(k.spare[:0], &k.call, &k.subject, &k.states[i], ended, x.out)
			return v, err
		})
		if denied != nil {
			x.out = x.out[:0]
			return x.denyRelease(denied)
		}
		if use {
			x.out, k.spare = k.spare, x.out
		}
	}
	return true
}

// denyRelease ends the attempt: its answer is not released, and no other route is asked.
func (x *Exchange) denyRelease(e *openai.Error) bool {
	if x.committed.output() && e.Code == openai.PolicyDenied {
		e.Code = openai.GuardRefused
	}
	x.guarding.denied = e
	x.fail(fault{class: failure.GatewayDenied})
	return false
}
