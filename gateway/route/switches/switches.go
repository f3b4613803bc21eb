// Package switches owns the kill switches that are set: what they are about, until when, and
// how the path of a request learns of them without looking anything up while none is set.
//
// A Board holds an immutable Set behind one pointer and keeps it in storage; a change wakes
// whoever waits on Changed. It must not know routes or requests: who owns something that can
// be switched off asks the Set once and remembers the answer for as long as it is the same Set.
package switches

import (
	"strings"
	"time"

	"github.com/interlock-gateway/interlock/gateway/failure"
	"github.com/interlock-gateway/interlock/gateway/storage"
)

// The kinds of switches, as in the paths of the admin API. A switch's name is, in this order:
// GROUP/NAME; the name of a group, a provider, an account, a model or an alias; an act;
// ALIAS/ACT; and "candidate".
const (
	Channel     = "channel"
	Group       = "group"
	Provider    = "provider"
	Account     = "account"
	Model       = "model"
	Alias       = "alias"
	Action      = "action"
	AliasAction = "alias-action"
	Policy      = "policy"
)

// Candidate is the only name of the kind Policy.
const Candidate = "candidate"

var kinds = []string{Channel, Group, Provider, Account, Model, Alias, Action, AliasAction, Policy}

// Acts is a set of acts that are switched off, in the bits 1<<failure.Cause.
type Acts uint8

// Has reports whether the act is switched off.
func (a Acts) Has(c failure.Cause) bool { return a&(1<<c) != 0 }

// act finds the act with that word. The first attempt of a request is none: to forbid it is
// what the other kinds are for.
func act(word string) (Acts, bool) {
	c, ok := failure.ParseCause(word)
	return 1 << c, ok && c != failure.Initial
}

// splitAliasAction cuts ALIAS/ACT. An alias may hold slashes, an act holds none.
func splitAliasAction(name string) (alias, word string, ok bool) {
	i := strings.LastIndexByte(name, '/')
	if i <= 0 {
		return "", "", false
	}
	return name[:i], name[i+1:], true
}

// Active reports whether a switch is in force: until its end, if it has one.
func Active(s *storage.Switch, now time.Time) bool { return s.Until.IsZero() || now.Before(s.Until) }
