package policy

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"time"
)

// Set is the bundles that a configuration names, which make one revision together.
type Set struct {
	Sources []Source // none is the default bundle alone
	Dir     string   // where the last good bundles of servers are kept; "" keeps none
	Options Options
	// Withdrawn is what was rolled back; nil: a follower remembers it for itself.
	Withdrawn *Withdrawn

	create func(dir string) (temporary, error) // nil = on the disk; tests have a full one
}

// Trouble is what is wrong with one bundle of a set while the gateway runs on another one.
type Trouble struct {
	Source Source
	Err    error
}

// Retries of a start that has to ask a bundle server.
const (
	openTries       = 4
	openPause       = 250 * time.Millisecond // doubles, with jitter
	openWithKept    = 5 * time.Second        // … in all, where the last good bundle is on disk
	openWithoutKept = 20 * time.Second
)

// Open reads every bundle of the set and builds them. A server that does not answer, or gives
// what is refused, is made up for by its last good bundle on disk: that is a Trouble. Where
// there is none either it is an error: rules that were not asked for never take the place of
// those that were. in, which may be nil, is the revision in use: a server whose bundle is in it
// is not asked again.
func (s Set) Open(ctx context.Context, in *Revision) (*Revision, []Trouble, error) {
	bundles := make([]*Bundle, len(s.Sources))
	var troubles []Trouble
	fresh := map[int]bool{} // what a server has just sent
	for i, src := range s.Sources {
		if b := in.bundleOf(src); src.isRemote() && b != nil {
			bundles[i] = b
			continue
		}
		b, err := s.first(ctx, src)
		if b == nil {
			return nil, nil, err
		}
		if err == nil {
			if b, err = s.notWithdrawn(ctx, b, in); b == nil {
				return nil, nil, err
			}
		}
		if bundles[i] = b; err != nil {
			troubles = append(troubles, Trouble{src, err})
		}
		fresh[i] = src.isRemote() && !b.fromDisk
	}
	if len(bundles) == 0 {
		b, err := defaultBundle()
		if err != nil {
			return nil, nil, err
		}
		bundles = []*Bundle{b}
	}
	r, err := Build(ctx, bundles, s.Options)
	if err == nil || ctx.Err() != nil {
		return r, troubles, err
	}
	// What a server gives now is refused. The bundles that were in force before it are not.
	replaced := false
	for i, b := range bundles {
		if !fresh[i] {
			continue
		}
		if old, _ := kept(ctx, s.Dir, b.source); old != nil && old.digest != b.digest {
			bundles[i], replaced = old, true
			troubles = append(troubles, Trouble{b.source, err})
		}
	}
	if replaced {
		if r, again := Build(ctx, bundles, s.Options); again == nil {
			return r, troubles, nil
		}
	}
	return nil, nil, err
}

// notWithdrawn gives what was in force before a content that was rolled back, which is what the
// source still has; the error says so. A start that has nothing else takes it all the same.
func (s Set) notWithdrawn(ctx context.Context, b *Bundle, in *Revision) (*Bundle, error) {
	out := s.Withdrawn.refuses(b)
	if out == nil {
		return b, nil
	}
	if before := in.bundleOf(b.source); before != nil && before.digest != b.digest {
		return before, out
	}
	if b.source.isRemote() {
		if old, _ := kept(ctx, s.Dir, b.source); old != nil && old.digest != b.digest {
			return old, out
		}
	}
	if in != nil {
		return nil, fmt.Errorf("policy bundle %s: %w; and there is no other content to go on with", b.source.name, out)
	}
	return b, nil
}

// Offline reads one bundle of the set without asking a server: of a server it is the last good
// one, and nil where there is none yet. What the source itself has wrong is an error.
func (s Set) Offline(ctx context.Context, src Source) (*Bundle, error) {
	if !src.isRemote() {
		return Read(ctx, src)
	}
	c, err := newClient(src)
	if err != nil {
		return nil, fmt.Errorf("policy bundle %s: %w", src.name, err)
	}
	c.close()
	b, err := kept(ctx, s.Dir, src)
	if err != nil {
		return nil, nil // a start asks the server
	}
	return b, nil
}

// Read reads one bundle as a start does: a server is asked a few times, for as long as ctx
// lasts at most. With an error there may be a bundle, the last good one.
func (s Set) Read(ctx context.Context, src Source) (*Bundle, error) { return s.first(ctx, src) }

// first reads one bundle. With an error there may be the last good one.
func (s Set) first(ctx context.Context, src Source) (*Bundle, error) {
	if !src.isRemote() {
		return Read(ctx, src)
	}
	old, none := kept(ctx, s.Dir, src)
	limit := openWithoutKept
	if old != nil {
		limit = openWithKept
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	b, err := fetch(limited, src)
	if err == nil {
		return b, nil
	}
	if old != nil {
		return old, err
	}
	if !errors.Is(none, os.ErrNotExist) {
		return nil, fmt.Errorf("%w; and the last good one on disk is refused: %w", err, none)
	}
	return nil, fmt.Errorf("%w; and there is no last good one on disk", err)
}

// fetch asks a server a few times, unless its answer is final.
func fetch(ctx context.Context, src Source) (*Bundle, error) {
	var last error
	for try := range openTries {
		b, err := Read(ctx, src)
		if err == nil {
			return b, nil
		}
		if ctx.Err() == nil || last == nil {
			last = err // not that time ran out, where something better is known
		}
		var status *statusError
		var faults Errors
		if errors.As(err, &faults) || errors.As(err, &status) && status.final() {
			return nil, err
		}
		if try == openTries-1 || !pause(ctx, jitter(openPause<<try)) {
			break
		}
	}
	return nil, last
}

// jitter spreads what many gateways do at once: between three quarters and five quarters.
func jitter(d time.Duration) time.Duration { return d*3/4 + rand.N(d/2+1) }

// pause waits, and reports whether ctx has not ended.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// bundleOf returns the bundle of that source; nil where there is none.
func (r *Revision) bundleOf(src Source) *Bundle {
	if r == nil {
		return nil
	}
	for _, p := range r.parts {
		if p.Bundle.source == src {
			return p.Bundle
		}
	}
	return nil
}
