package flow

import (
	"hash/maphash"
	"sync"
	"time"
)

// A user action may reach the gateway as several requests: SDKs ask again by themselves.
// userActions counts the attempts made for one since its last success, so that the cap holds
// over all of them. A count is kept for at most actionLife, and at most actionsPerShard of
// them a shard: beyond that the stalest goes.
type userActions struct {
	seed   maphash.Seed
	shards [16]actionShard
}

type actionShard struct {
	mu    sync.Mutex
	spent map[actionKey]*actionCount
	_     [40]byte // keep the locks of neighbours off one cache line
}

type actionKey struct{ key, action string }

type actionCount struct {
	attempts int
	since    time.Time // of the first attempt counted
}

const (
	actionLife      = 10 * time.Minute
	actionsPerShard = 8192
)

func newUserActions() *userActions {
	u := &userActions{seed: maphash.MakeSeed()}
	for i := range u.shards {
		u.shards[i].spent = map[actionKey]*actionCount{}
	}
	return u
}

func (u *userActions) shard(k actionKey) *actionShard {
	return &u.shards[maphash.Comparable(u.seed, k)%uint64(len(u.shards))]
}

// spent returns the attempts counted for an action.
func (u *userActions) spent(k actionKey, now time.Time) int {
	s := u.shard(k)
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.spent[k]; c != nil && now.Sub(c.since) < actionLife {
		return c.attempts
	}
	return 0
}

// take counts one more attempt; false if the action has none left.
func (u *userActions) take(k actionKey, limit int, now time.Time) bool {
	s := u.shard(k)
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.spent[k]
	if c == nil || now.Sub(c.since) >= actionLife {
		if limit < 1 {
			return false
		}
		if c == nil {
			s.makeRoom(now)
			k = actionKey{key: k.key, action: string([]byte(k.action))}
		}
		s.spent[k] = &actionCount{attempts: 1, since: now}
		return true
	}
	if c.attempts >= limit {
		return false
	}
	c.attempts++
	return true
}

// succeeded starts the action's count anew.
func (u *userActions) succeeded(k actionKey) {
	s := u.shard(k)
	s.mu.Lock()
	delete(s.spent, k)
	s.mu.Unlock()
}

// makeRoom drops what is too old and, if that is not enough, the stalest count.
func (s *actionShard) makeRoom(now time.Time) {
	if len(s.spent) < actionsPerShard {
		return
	}
	var stalest actionKey
	var since time.Time
	for k, c := range s.spent {
		if now.Sub(c.since) >= actionLife {
			delete(s.spent, k)
			continue
		}
		if since.IsZero() || c.since.Before(since) {
			stalest, since = k, c.since
		}
	}
	if len(s.spent) >= actionsPerShard {
		delete(s.spent, stalest)
	}
}
