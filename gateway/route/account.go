package route

import (
	"strings"
	"sync/atomic"
	"time"

	"github.com/interlock-gateway/interlock/gateway/route/breaker"
	"github.com/interlock-gateway/interlock/gateway/storage"
)

// account is what a provider bills and throttles. Every channel that names it shares its
// cool-downs and its credential's health.
type account struct {
	name      string
	state     *State
	cool      breaker.CoolDowns
	isolation breaker.Isolation
	// fingerprints are those of the credentials in use. A dead credential that was replaced
	// says nothing about its successor.
	fingerprints atomic.Pointer[[]string]
}

// scope names the account in storage and investigations. One that stands for a single channel
// is called like it.
func (a *account) scope() string {
	if strings.Contains(a.name, "/") {
		return "channel/" + a.name
	}
	return "account/" + a.name
}

func (a *account) uses(fingerprint string) bool {
	list := a.fingerprints.Load()
	if list == nil {
		return true // no table is in force yet
	}
	for _, f := range *list {
		if f == fingerprint {
			return true
		}
	}
	return false
}

// isolate takes the account out of use: at once, for all requests, over restarts.
func (a *account) isolate(reason, fingerprint string, now time.Time) {
	if !a.uses(fingerprint) || !a.isolation.Isolate(reason, fingerprint, now) {
		return
	}
	a.state.keeper.changed(a)
	a.state.watcher.IsolationChanged(IsolationChange{Account: a.name, Isolated: true, Reason: reason, At: now})
	a.state.watcher.Investigate(Investigation{Kind: IsolatedAccount, Scope: a.scope(), Cause: reason, At: now})
}

// release ends the isolation; false if there was none.
func (a *account) release(why string, now time.Time) bool {
	if _, ok := a.isolation.End(); !ok {
		return false
	}
	a.released(why, now)
	return true
}

func (a *account) released(why string, now time.Time) {
	a.state.keeper.changed(a)
	a.state.watcher.IsolationChanged(IsolationChange{Account: a.name, Reason: why, At: now})
}

// kept is the isolation as it is stored; false if there is none.
func (a *account) kept() (storage.Isolation, bool) {
	f, ok := a.isolation.Fact(time.Now())
	return storage.Isolation{Scope: a.scope(), Reason: f.Reason, Since: f.Since, Fingerprint: f.Fingerprint}, ok
}
