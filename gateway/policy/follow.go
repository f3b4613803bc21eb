package policy

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Hooks are told what becomes of the bundles. They are called one at a time, from goroutines
// of the follower, and must not close it.
type Hooks struct {
	// Activate puts a revision in force. An error leaves the one before in force.
	Activate func(*Revision) error
	// Refused is told why a bundle is not taken, once for each reason.
	Refused func(Source, error)
	// RolledBack is told that from kept timing out and that to is in force again.
	RolledBack func(from, to *Revision)
	// NotKept is told that a bundle in force could not be written to disk.
	NotKept func(Source, error)
	// Changed says that Status may have changed. It must not wait; nil = nobody asks.
	Changed func()
}

// BundleStatus is one bundle of those in force, and what became of its latest change.
type BundleStatus struct {
	Name, Where string
	Revision    string   // the manifest's; ""
	Digest      string   // of the content, in hex
	Roots       []string // what it owns
	ETag        string
	Signed      bool // the signature was verified
	FromDisk    bool // the last good one: its server has not answered yet
	LoadedAt    time.Time
	LastError   string    // why the latest change is not in force; "": it is
	LastErrorAt time.Time // zero: nothing was refused yet
	Err         error     // LastError as it is; nil = none
	Size        int       // of what a server sent, bytes; 0 = none did
	// The last time that the source was asked, that it answered, and that it gave a bundle. Zero:
	// not since this is followed.
	Request, Answered, Downloaded time.Time
	NotKept                       string // why it could not be kept on disk for a start without its server; "": it could
}

// FollowStatus is what a follower knows.
type FollowStatus struct {
	Bundles   []BundleStatus
	Refused   int // changes that were refused
	RollBacks int
}

// Follower keeps a set of bundles up to date: files by watching them, servers by asking. Each
// change is all or nothing. It owns a goroutine for each bundle until Close.
type Follower struct {
	set   Set
	hooks Hooks
	ctx   context.Context
	stop  context.CancelFunc
	wg    sync.WaitGroup

	activating sync.Mutex // one change at a time, with its hook

	mu         sync.Mutex // of what follows; not held while anything is built
	active     *Revision
	previous   *Revision // to roll back to; nil: the active one has proved itself, or is the first
	superseded chan struct{}
	turn       int // counts activations
	members    []*member
	refused    int
	rollBacks  int
}

// member is one bundle of the set.
type member struct {
	source  Source
	active  *Bundle
	pending *Bundle // refused so far; it may do with another one of a sibling
	loaded  time.Time
	lastErr error
	errAt   time.Time

	refused                     string // digest of what was refused last …
	refusedTurn                 int    // … beside these siblings
	refusedAt                   time.Time
	asked, answered, downloaded time.Time
	notKept                     error // why it is not on disk; nil: it is, or need not be
}

// Follow begins with the revision that the set was opened as, and its troubles. previous, which
// may be nil, was in force before and is rolled back to where the decisions of active keep
// timing out.
func Follow(set Set, active, previous *Revision, troubles []Trouble, hooks Hooks) *Follower {
	if set.Withdrawn == nil {
		set.Withdrawn = &Withdrawn{by: map[string]withdrawal{}}
	}
	f := &Follower{set: set, hooks: hooks, active: active, previous: previous}
	f.ctx, f.stop = context.WithCancel(context.Background())
	now := time.Now()
	for _, src := range set.Sources {
		m := &member{source: src, active: active.bundleOf(src), loaded: now, asked: now}
		if m.active != nil && !m.active.fromDisk {
			m.answered, m.downloaded = now, now
		}
		for _, t := range troubles {
			if t.Source == src {
				m.lastErr, m.errAt = t.Err, now
			}
		}
		f.members = append(f.members, m)
		f.keep(m, m.active)
	}
	f.try(active)
	for i, m := range f.members {
		switch {
		case m.source.isRemote():
			f.wg.Go(func() { f.poll(i) })
		case m.source.path != "":
			f.wg.Go(func() {
				watch(f.ctx, m.source, m.active.digest,
					func(ctx context.Context, b *Bundle) error { f.saw(i, true, true); return f.offer(ctx, i, b) },
					func(err error) { f.refuse(i, err) })
			})
		}
	}
	return f
}

// Close ends it and waits until no hook is running.
func (f *Follower) Close() {
	f.stop()
	f.wg.Wait()
}

// Active is the revision in force.
func (f *Follower) Active() *Revision {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.active
}

// Status is safe for concurrent use and never waits for a build.
func (f *Follower) Status() FollowStatus {
	f.mu.Lock()
	defer f.mu.Unlock()
	st := FollowStatus{Refused: f.refused, RollBacks: f.rollBacks}
	for _, m := range f.members {
		b := BundleStatus{
			Name: m.source.name, Where: m.source.Where(), Revision: m.active.revision, Digest: m.active.digest,
			Roots: m.active.Roots(), ETag: m.active.etag, Signed: m.active.signed, FromDisk: m.active.fromDisk,
			LoadedAt: m.loaded, LastErrorAt: m.errAt, Err: m.lastErr, Size: len(m.active.raw),
			Request: m.asked, Answered: m.answered, Downloaded: m.downloaded,
		}
		if m.lastErr != nil {
			b.LastError = m.lastErr.Error()
		}
		if m.notKept != nil {
			b.NotKept = m.notKept.Error()
		}
		st.Bundles = append(st.Bundles, b)
	}
	return st
}

// tryAgain is when a content that was refused is looked at once more though nothing changed:
// it may have been the machine that was slow.
const tryAgain = time.Minute

// offer takes a bundle that a source gives now. An error says why it is not in force.
func (f *Follower) offer(ctx context.Context, i int, b *Bundle) error {
	f.activating.Lock()
	defer f.activating.Unlock()
	m := f.members[i]
	f.mu.Lock()
	same := b.digest == m.active.digest
	known := b.digest == m.refused && m.refusedTurn == f.turn && time.Since(m.refusedAt) < tryAgain
	reason := m.lastErr
	if same { // back to what is in force, or signed anew
		m.active, m.pending, m.lastErr, m.refused = b, nil, nil, ""
	}
	f.mu.Unlock()
	switch {
	case same:
		f.settle(m)
		f.keep(m, b)
		return nil
	case known && reason != nil:
		return reason
	}
	if err := f.set.Withdrawn.refuses(b); err != nil {
		return err
	}
	f.mu.Lock()
	m.pending = b
	f.mu.Unlock()
	r, err := f.build(ctx, i)
	if err == nil {
		err = f.activate(r)
	}
	if err != nil && ctx.Err() == nil {
		f.mu.Lock()
		m.refused, m.refusedTurn, m.refusedAt = b.digest, f.turn, time.Now()
		f.mu.Unlock()
	}
	return err
}

// build builds what is in force with everything that waits, or else with this one alone:
// bundles that must change together come into force when the last of them is there.
func (f *Follower) build(ctx context.Context, i int) (*Revision, error) {
	f.mu.Lock()
	alone, all := make([]*Bundle, len(f.members)), make([]*Bundle, len(f.members))
	for j, m := range f.members {
		alone[j], all[j] = m.active, m.active
		if m.pending != nil {
			all[j] = m.pending
			if j == i {
				alone[j] = m.pending
			}
		}
	}
	f.mu.Unlock()
	r, err := Build(ctx, all, f.set.Options)
	if err != nil && !slices.Equal(all, alone) {
		r, err = Build(ctx, alone, f.set.Options)
	}
	return r, err
}

// activate puts a revision in force. f.activating is held.
func (f *Follower) activate(r *Revision) error {
	defer f.changed()
	if err := f.hooks.Activate(r); err != nil {
		return err
	}
	now := time.Now()
	f.mu.Lock()
	f.previous, f.active = f.active, r
	f.turn++
	var changed []*member
	for _, m := range f.members {
		if b := r.bundleOf(m.source); b != m.active {
			if b == m.pending {
				m.pending = nil
			}
			m.active, m.loaded, m.lastErr, m.refused = b, now, nil, ""
			changed = append(changed, m)
		}
	}
	f.mu.Unlock()
	for _, m := range changed {
		f.settle(m)
		f.keep(m, r.bundleOf(m.source))
	}
	f.try(r)
	return nil
}

// saw notes that a source was asked. An answer without a bundle says that there is no other.
func (f *Follower) saw(i int, answered, bundle bool) {
	now := time.Now()
	f.mu.Lock()
	m := f.members[i]
	m.asked = now
	if answered {
		m.answered = now
	}
	if bundle {
		m.downloaded = now
	}
	f.mu.Unlock()
	f.changed()
}

func (f *Follower) changed() {
	if f.hooks.Changed != nil {
		f.hooks.Changed()
	}
}

// keep writes a member's bundle to disk. That it cannot be does not take it out of force, and is
// told once for each reason.
func (f *Follower) keep(m *member, b *Bundle) {
	err := f.set.keep(b)
	f.mu.Lock()
	told := err == nil || m.notKept != nil && m.notKept.Error() == err.Error()
	m.notKept = err
	f.mu.Unlock()
	if !told {
		f.hooks.NotKept(b.source, err)
	}
}

// settle forgets what of a member was rolled back: it has another content now.
func (f *Follower) settle(m *member) {
	if err := f.set.Withdrawn.settle(m.source); err != nil {
		f.hooks.NotKept(m.source, err)
	}
}

// refuse notes why a source's bundle is not in force.
func (f *Follower) refuse(i int, err error) {
	defer f.changed()
	f.mu.Lock()
	m := f.members[i]
	told := m.lastErr != nil && m.lastErr.Error() == err.Error()
	m.lastErr = err
	if !told {
		m.errAt = time.Now()
		f.refused++
	}
	f.mu.Unlock()
	if !told {
		f.activating.Lock()
		defer f.activating.Unlock()
		f.hooks.Refused(m.source, err)
	}
}

// fine notes that a source has nothing but what it calls etag. What could not be kept is tried
// again: there may be room now.
func (f *Follower) fine(i int, etag string) {
	m := f.members[i]
	f.mu.Lock()
	if m.active.etag != etag { // it was rolled back while the server was asked
		f.mu.Unlock()
		return
	}
	m.pending, m.lastErr, m.refused = nil, nil, ""
	again, b := m.notKept != nil, m.active
	f.mu.Unlock()
	f.settle(m)
	if again {
		f.keep(m, b)
	}
	f.changed()
}

// try watches a new revision until it has proved itself, is replaced or is rolled back.
func (f *Follower) try(r *Revision) {
	f.mu.Lock()
	if f.superseded != nil {
		close(f.superseded)
	}
	superseded := make(chan struct{})
	f.superseded = superseded
	alone := f.previous == nil
	f.mu.Unlock()
	if alone {
		return
	}
	f.wg.Go(func() {
		end := time.NewTimer(TrialFor)
		defer end.Stop()
		select {
		case <-f.ctx.Done():
		case <-superseded:
		case <-r.Failing():
			f.rollBack(r)
		case <-end.C:
			f.mu.Lock()
			if f.active == r {
				f.previous = nil
			}
			f.mu.Unlock()
		}
	})
}

// rollBack puts the revision before in force again. What was rolled back is not taken again
// until its content changes.
func (f *Follower) rollBack(r *Revision) {
	defer f.changed()
	f.activating.Lock()
	defer f.activating.Unlock()
	f.mu.Lock()
	to := f.previous
	stale := f.active != r || to == nil
	var back []*member
	var out []*Bundle
	for _, m := range f.members {
		if before := to.bundleOf(m.source); before != nil && before.digest != m.active.digest {
			back, out = append(back, m), append(out, m.active)
		}
	}
	f.mu.Unlock()
	if stale || f.ctx.Err() != nil {
		return
	}
	for i, m := range back { // before anything else may read them again
		if err := f.set.Withdrawn.add(out[i]); err != nil {
			f.hooks.NotKept(m.source, err)
		}
	}
	if err := f.hooks.Activate(to); err != nil {
		for _, m := range back {
			f.settle(m)
		}
		about := Builtin()
		if len(back) > 0 {
			about = back[0].source
		}
		f.hooks.Refused(about, fmt.Errorf("the rollback to %s failed: %w", to.id, err))
		return
	}
	now := time.Now()
	f.mu.Lock()
	f.active, f.previous = to, nil
	f.turn++
	f.rollBacks++
	for i, m := range back {
		m.active, m.pending, m.errAt, m.loaded = to.bundleOf(m.source), nil, now, now
		m.lastErr = &WithdrawnError{out[i].ID()}
	}
	f.mu.Unlock()
	for _, m := range back {
		f.keep(m, to.bundleOf(m.source))
	}
	f.hooks.RolledBack(r, to)
}
