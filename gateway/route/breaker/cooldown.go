package breaker

import (
	"sync"
	"sync/atomic"
	"time"
)

// CoolDowns holds until when one account rests, for each model that it throttles on its own
// and for all of them. The zero value is ready. All methods may be called from any goroutine;
// while nothing rests, asking is one atomic read.
type CoolDowns struct {
	latest atomic.Int64 // instant: everything is over then

	mu     sync.Mutex
	all    instant
	models map[string]instant
}

// Rest lets the account rest for d, counted from now: for one model, or with an empty name
// for all. The longest holds.
func (c *CoolDowns) Rest(model string, now time.Time, d time.Duration) {
	if d <= 0 {
		return
	}
	t := at(now)
	end := t.add(d)
	c.mu.Lock()
	defer c.mu.Unlock()
	if model == "" {
		c.all = max(c.all, end)
	} else {
		for m, over := range c.models {
			if over <= t {
				delete(c.models, m)
			}
		}
		if c.models == nil {
			c.models = map[string]instant{}
		}
		c.models[model] = max(c.models[model], end)
	}
	if int64(end) > c.latest.Load() {
		c.latest.Store(int64(end))
	}
}

// Until returns when the account may be asked for the model again; false if it may now.
func (c *CoolDowns) Until(model string, now time.Time) (time.Time, bool) {
	t := at(now)
	if t >= instant(c.latest.Load()) {
		return time.Time{}, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	end := max(c.all, c.models[model])
	if end <= t {
		return time.Time{}, false
	}
	return end.time(now), true
}
