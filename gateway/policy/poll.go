package policy

import (
	"context"
	"fmt"
	"time"
)

const (
	maxPause  = time.Minute     // between questions to a server that fails, unless poll is longer
	soonAgain = time.Second     // a server that says it waits, and does not, is asked like others
	afterDisk = 2 * time.Second // until a server that did not answer at the start is asked again
)

// poll asks a bundle server until the follower is closed.
func (f *Follower) poll(i int) {
	m := f.members[i]
	interval := m.source.remote.options.Poll
	c, err := newClient(m.source)
	if err != nil { // a file was there when the set was opened
		f.refuse(i, fmt.Errorf("policy bundle %s: %w", m.source.name, err))
		return
	}
	defer c.close()
	failures := 0
	delay := jitter(interval)
	if f.etag(i) == "" {
		delay = min(delay, afterDisk)
	}
	for pause(f.ctx, delay) {
		begun, etag := time.Now(), f.etag(i)
		a, err := c.get(f.ctx, etag, longPollWait)
		if f.ctx.Err() != nil {
			return
		}
		f.saw(i, err == nil, a.bundle != nil)
		delay = jitter(interval)
		switch {
		case err != nil:
			f.refuse(i, err)
			failures++
			delay = jitter(min(interval<<min(failures-1, 16), max(interval, maxPause)))
			continue
		case a.bundle == nil:
			f.fine(i, etag)
		default:
			if err := f.offerRemote(i, a.bundle); err != nil {
				if f.ctx.Err() != nil {
					return
				}
				f.refuse(i, err)
				failures = 0
				continue // the ETag in force stays: the server will say it again
			}
		}
		failures = 0
		if a.longPolls && (a.bundle != nil || time.Since(begun) >= soonAgain) {
			delay = 0
		}
	}
}

func (f *Follower) offerRemote(i int, b *Bundle) error {
	ctx, cancel := context.WithTimeout(f.ctx, time.Minute)
	defer cancel()
	return f.offer(ctx, i, b)
}

// etag is what the bundle in force is called: nothing is remembered before it is.
func (f *Follower) etag(i int) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.members[i].active.etag
}
