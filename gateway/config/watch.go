package config

import (
	"context"
	"crypto/sha256"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
)

// How a watcher waits.
const (
	settle     = 100 * time.Millisecond // of quiet, before a change counts as whole
	settleMost = time.Second            // even if it never gets quiet
	pollEvery  = 2 * time.Second        // for file systems that tell nothing
)

// What a watcher reads at most.
const (
	maxWatchedFile    = 64 << 20
	maxWatchedEntries = 10_000 // below one directory
)

// Watcher tells when the content of files and directories has changed: by the file system's
// own notices about the folders around them, so that a file that is replaced (by a rename, or
// by a symbolic link that is pointed elsewhere) is followed, and by looking every two seconds,
// for file systems that give no notice. What is written without a change of content is none.
type Watcher struct {
	mu    sync.Mutex
	state map[string]watched
	taken map[string]string // the sums when Take was called
	moved chan struct{}     // the paths are others
}

type watched struct {
	look string // what a look at the names, sizes and times shows
	sum  string // of the content; "" for what is not there
}

// NewWatcher takes the files and directories as they are now.
func NewWatcher(paths []string) *Watcher {
	w := &Watcher{moved: make(chan struct{}, 1)}
	w.Follow(paths)
	return w
}

// Follow replaces the paths. Those followed already keep what is known of them, so that no
// change is missed.
func (w *Watcher) Follow(paths []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	next := make(map[string]watched, len(paths))
	for _, p := range paths {
		known, ok := w.state[p]
		if !ok {
			known = watched{look: look(p), sum: sum(p)}
		}
		next[p] = known
	}
	w.state = next
	select {
	case w.moved <- struct{}{}:
	default:
	}
}

// Take says that the content there is now is about to be read: a change of it that was not told
// yet is none, nor is one that is being told and that Taken is asked about.
func (w *Watcher) Take() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.taken = make(map[string]string, len(w.state))
	for p := range w.state {
		now := watched{look: look(p), sum: sum(p)}
		w.state[p] = now
		w.taken[p] = now.sum
	}
}

// Taken says whether the content of all these paths was there at the latest Take, and has not
// changed since.
func (w *Watcher) Taken(paths []string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range paths {
		if was, ok := w.taken[p]; !ok || was != w.state[p].sum {
			return false
		}
	}
	return true
}

// Run calls changed with the paths that have, until ctx is done. It calls from one goroutine,
// which is the caller's.
func (w *Watcher) Run(ctx context.Context, changed func(paths []string)) {
	notices, events, errs := notifier()
	defer func() {
		if notices != nil {
			_ = notices.Close()
		}
	}()
	w.subscribe(notices)
	poll := time.NewTicker(pollEvery)
	defer poll.Stop()
	report := func(thorough bool) {
		if list := w.changes(thorough); len(list) > 0 {
			w.subscribe(notices) // folders may be others now
			changed(list)
		}
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.moved:
			w.subscribe(notices)
			report(true)
		case <-poll.C:
			report(false)
		case _, ok := <-events:
			if !ok {
				events = nil
				continue
			}
			if !quiet(ctx, events) {
				return
			}
			report(true)
		case <-errs: // notices were lost
			report(true)
		}
	}
}

// notifier returns the file system's notices; none where it has none to give.
func notifier() (*fsnotify.Watcher, <-chan fsnotify.Event, <-chan error) {
	n, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, nil, nil
	}
	return n, n.Events, n.Errors
}

// quiet waits until nothing more happens for a moment; false when ctx is done.
func quiet(ctx context.Context, events <-chan fsnotify.Event) bool {
	most := time.NewTimer(settleMost)
	defer most.Stop()
	for {
		t := time.NewTimer(settle)
		select {
		case <-ctx.Done():
			t.Stop()
			return false
		case <-t.C:
			return true
		case <-most.C:
			t.Stop()
			return true
		case _, ok := <-events:
			t.Stop()
			if !ok {
				return true
			}
		}
	}
}

// subscribe asks for notices about every folder that matters: around a path, around what it
// links to, and below it.
func (w *Watcher) subscribe(n *fsnotify.Watcher) {
	if n == nil {
		return
	}
	w.mu.Lock()
	paths := make([]string, 0, len(w.state))
	for p := range w.state {
		paths = append(paths, p)
	}
	w.mu.Unlock()
	wanted := map[string]bool{}
	for _, p := range paths {
		wanted[filepath.Dir(p)] = true
		if real, err := filepath.EvalSymlinks(p); err == nil {
			wanted[filepath.Dir(real)] = true
			p = real
		}
		walk(p, func(path string, d fs.DirEntry) {
			if d.IsDir() {
				wanted[path] = true
			}
		})
	}
	for _, have := range n.WatchList() {
		if !wanted[have] {
			_ = n.Remove(have)
		}
		delete(wanted, have)
	}
	for dir := range wanted {
		_ = n.Add(dir) // a folder that is not there yet is looked for at the next poll
	}
}

// changes looks at all paths and returns those whose content has changed. Unless thorough it
// reads only those whose size or time has.
func (w *Watcher) changes(thorough bool) (list []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for p, before := range w.state {
		now := watched{look: look(p)}
		if !thorough && now.look == before.look {
			continue
		}
		now.sum = sum(p)
		w.state[p] = now
		if now.sum != before.sum {
			list = append(list, p)
		}
	}
	slices.Sort(list)
	return list
}

// walk visits a file, or a directory with everything in it; nothing for what is not there.
func walk(root string, visit func(path string, d fs.DirEntry)) {
	if real, err := filepath.EvalSymlinks(root); err == nil {
		root = real
	}
	n := 0
	_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if n++; n > maxWatchedEntries {
			return fs.SkipAll
		}
		if err == nil {
			visit(path, d)
		}
		return nil
	})
}

func look(root string) string {
	h := sha256.New()
	walk(root, func(path string, _ fs.DirEntry) {
		if info, err := os.Stat(path); err == nil {
			_, _ = fmt.Fprintf(h, "%s\x00%d\x00%d\x00%s\n", path, info.Size(), info.ModTime().UnixNano(), info.Mode())
		}
	})
	return string(h.Sum(nil))
}

// sum is a fingerprint of a file's content, or of the names and contents below a directory.
func sum(root string) string {
	real, err := filepath.EvalSymlinks(root)
	if err != nil {
		return ""
	}
	h := sha256.New()
	walk(real, func(path string, _ fs.DirEntry) {
		name, _ := filepath.Rel(real, path)
		_, _ = fmt.Fprintf(h, "%s\x00", name)
		content(h, path)
	})
	return string(h.Sum(nil))
}

func content(h hash.Hash, path string) {
	info, err := os.Stat(path)
	if err != nil || info.IsDir() {
		return
	}
	if !info.Mode().IsRegular() || info.Size() > maxWatchedFile {
		_, _ = fmt.Fprintf(h, "%d\x00%d\n", info.Size(), info.ModTime().UnixNano())
		return
	}
	f, err := os.Open(path)
	if err != nil {
		return
	}
	defer func() { _ = f.Close() }()
	n, _ := io.Copy(h, io.LimitReader(f, maxWatchedFile))
	_, _ = fmt.Fprintf(h, "\x00%d\n", n)
}
