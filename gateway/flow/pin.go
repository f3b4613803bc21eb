package flow

import (
	"time"

	"github.com/interlock-gateway/interlock/gateway/policy/trial"
	"github.com/interlock-gateway/interlock/gateway/route/switches"
)

// pin chooses the revision that decides about the request, from here to its end, and the one
// that is asked beside it. A candidate that is switched off does neither.
func (x *Exchange) pin(now time.Time) {
	g := x.gen
	x.policy, x.beside = g.Policy, nil
	if g.trial == nil || g.Table.Switches().Off(switches.Policy, switches.Candidate, now) != nil {
		return
	}
	x.beside = g.trial.Candidate()
	if x.caller.canary {
		x.policy, x.beside = x.beside, x.policy
	}
}

// asker is whose decisions these are.
func (x *Exchange) asker() trial.Asker { return trial.Asker{RequestID: x.id, Key: x.caller.key.Name} }
