package config

import (
	"fmt"
	"time"
)

func (d *document) checkBudgets(c *Config) {
	for _, name := range keysOf(c.Budgets) {
		b, path := c.Budgets[name], Join("budgets", name)
		if !d.has(path) {
			continue // the default
		}
		d.checkReserve(&b, path)
		if b.Backoff.Max < b.Backoff.Base {
			place := path + ".backoff.max"
			if !d.has(place) {
				place = path + ".backoff.base"
			}
			d.fail(place, "backoff.max (%s) must be at least backoff.base (%s)", b.Backoff.Max, b.Backoff.Base)
		}
		d.checkLater(c, &b, path)
	}
}

func (d *document) checkReserve(b *Budget, path string) {
	s := b.ReserveForFallback
	place := path + ".reserve_for_fallback"
	if !d.has(place) {
		return
	}
	if s.Percent > 100.0/3+1e-9 || s.Percent == 0 && s.Duration > b.Deadline/3 {
		d.fail(place, "at most a third of the deadline is allowed: 33%%, here %s", b.Deadline/3)
	}
}

// attempt is the longest that one attempt without output may take, and what makes it so.
type attempt struct {
	channel string // GROUP/NAME; "": there is none
	stream  bool
	queue   time.Duration
	clocks  Clocks
}

// total is how long: the head's clock ends no sooner than the output's, which holds anyway.
func (a attempt) total() time.Duration { return a.queue + a.clocks.Connect + a.clocks.FirstOutput }

func (a attempt) String() string {
	kind := "a call that does not stream"
	if a.stream {
		kind = "a stream"
	}
	return fmt.Sprintf("%s on %s: queue %s + connect %s + first_output %s", kind, a.channel, a.queue, a.clocks.Connect, a.clocks.FirstOutput)
}

// worstAttempt finds the channel that may stay silent the longest under a budget.
func worstAttempt(c *Config, b *Budget) (worst attempt) {
	for i := range c.Groups {
		for j := range c.Groups[i].Channels {
			ch := &c.Groups[i].Channels[j]
			for _, stream := range []bool{true, false} {
				call := Call{Stream: stream, Deadline: b.Deadline, Reserve: b.Reserve()}
				for _, m := range ch.Models.timeouts() {
					a := attempt{
						channel: c.Groups[i].Name + "/" + ch.Name, stream: stream,
						queue: ch.Queue.longest(), clocks: ch.Timeouts.Resolve(m, call),
					}
					if worst.channel == "" || a.total() > worst.total() {
						worst = a
					}
				}
			}
		}
	}
	return worst
}

// timeouts lists the clocks of the models' own; with "*" there are some that have none.
func (s *Served) timeouts() (list []Timeouts) {
	if s.Any {
		list = append(list, Timeouts{})
	}
	for _, name := range keysOf(s.Models) {
		list = append(list, s.Models[name].Timeouts)
	}
	return list
}

// longest is the longest wait in the queue.
func (q Queue) longest() time.Duration {
	if q.Max == 0 {
		return 0
	}
	return q.Wait
}

// checkLater warns of a budget whose later attempts can never start, in the worst case that
// the first one stays silent as long as it may.
func (d *document) checkLater(c *Config, b *Budget, path string) {
	if b.MaxAttempts == 1 {
		return
	}
	if b.MaxAttemptsPerUserAction < b.MaxAttempts {
		d.warn(b.place(d, path, "max_attempts_per_user_action"),
			"attempts %d to %d can never start: max_attempts is %d, max_attempts_per_user_action %d",
			b.MaxAttemptsPerUserAction+1, b.MaxAttempts, b.MaxAttempts, b.MaxAttemptsPerUserAction)
	}
	if b.Reserve() > 0 {
		return // what is reserved is enough for a second attempt
	}
	why := fmt.Sprintf("no reserve is kept (reserve_for_fallback %s is less than min_useful %s)",
		b.ReserveForFallback.Of(b.Deadline), b.MinUseful)
	if b.MinUseful == 0 {
		why = "no reserve is kept (reserve_for_fallback is 0)"
	}
	if b.Deadline <= b.MinUseful {
		d.warn(b.place(d, path, "min_useful"), "attempts 2 to %d can never start: the deadline is %s, and with less than min_useful %s left no further attempt starts",
			b.MaxAttempts, b.Deadline, b.MinUseful)
		return
	}
	worst := worstAttempt(c, b)
	left := max(b.Deadline-worst.total(), 0)
	if worst.channel == "" || left > 0 && left >= b.MinUseful {
		return
	}
	d.warn(b.place(d, path, "reserve_for_fallback"),
		"in the worst case attempts 2 to %d can never start: attempt 1 may take %s (%s), which leaves %s of the deadline %s, min_useful is %s, and %s",
		b.MaxAttempts, min(worst.total(), b.Deadline), worst, left, b.Deadline, b.MinUseful, why)
}

// place is the key that a warning about a budget stands at: the one that is given.
func (b *Budget) place(d *document, path, key string) string {
	for _, k := range []string{key, "min_useful", "deadline", "max_attempts"} {
		if d.has(path + "." + k) {
			return path + "." + k
		}
	}
	return path
}
