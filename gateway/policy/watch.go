package policy

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	settleFor   = 50 * time.Millisecond  // quiet time after a change: editors and copies make several
	settleLimit = 500 * time.Millisecond // … but not for ever
	pollEvery   = time.Second            // where the system's notices do not reach: network mounts, links
	readAgain   = 100 * time.Millisecond // a bundle that changed while it was read, or is gone for a moment
	readTries   = 4
)

// Watcher follows a bundle on disk. It owns one goroutine until Close.
type Watcher struct {
	src     Source
	opts    Options
	changed func(*Revision, error)

	notices *fsnotify.Watcher // nil: only polls
	stop    context.CancelFunc
	done    chan struct{}
	once    sync.Once

	seen  string // the content that was last built or refused
	stamp string // what the files looked like then
}

// Watch builds src again whenever its content changes and calls changed with the new revision,
// or with nil and the error while what is on disk is refused: the caller keeps what it has.
// Calls come one at a time, from the watcher's goroutine, once for each content; a content that
// comes back is built and reported anew. active is the revision in use, built from src before;
// nil is none. The built-in bundle never changes. Close ends it.
func Watch(src Source, opts Options, active *Revision, changed func(*Revision, error)) (*Watcher, error) {
	ctx, stop := context.WithCancel(context.Background())
	w := &Watcher{src: src, opts: opts, changed: changed, stop: stop, done: make(chan struct{})}
	if active != nil {
		w.seen = active.parts[0].Bundle.digest
	}
	if src.path == "" {
		close(w.done)
		return w, nil
	}
	// Without notices (the system's limit on watches is reached) the poll alone is quick enough.
	if notices, err := fsnotify.NewWatcher(); err == nil {
		w.notices = notices
		w.follow()
	}
	go w.run(ctx)
	return w, nil
}

// Close stops watching and waits until no call of changed is running. It is not called from
// changed.
func (w *Watcher) Close() error {
	w.once.Do(func() {
		w.stop()
		<-w.done
		if w.notices != nil {
			_ = w.notices.Close() // it holds nothing that could be lost
		}
	})
	return nil
}

func (w *Watcher) run(ctx context.Context) {
	defer close(w.done)
	poll := time.NewTicker(pollEvery)
	defer poll.Stop()
	settle := time.NewTimer(0) // once at the start: it may have changed since it was loaded
	defer settle.Stop()
	var began time.Time // of the changes that have not settled yet
	var events <-chan fsnotify.Event
	var errors <-chan error
	if w.notices != nil {
		events, errors = w.notices.Events, w.notices.Errors
	}
	for {
		select {
		case <-ctx.Done():
			return
		case event := <-events:
			if !w.concerns(event.Name) {
				continue
			}
			if began.IsZero() {
				began = time.Now()
			}
			settle.Reset(min(settleFor, time.Until(began.Add(settleLimit))))
		case <-errors: // notices were lost: look
			settle.Reset(0)
		case <-poll.C:
			if began.IsZero() && w.src.stampOf() != w.stamp {
				settle.Reset(0)
			}
		case <-settle.C:
			began = time.Time{}
			w.look(ctx)
		}
	}
}

// look reads the bundle and, if its content is another than the last one, builds it.
func (w *Watcher) look(ctx context.Context) {
	f, err := w.read(ctx)
	if ctx.Err() != nil {
		return
	}
	if w.notices != nil {
		w.follow()
	}
	content := ""
	if err != nil {
		content = "unreadable: " + err.Error()
	} else {
		content = f.digest
	}
	if content == w.seen {
		return
	}
	w.seen = content
	var r *Revision
	if err == nil {
		r, err = Build(ctx, []*Bundle{f}, w.opts)
	}
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		r = nil
		if !w.stays(ctx) {
			return
		}
	}
	w.changed(r, err)
}

// stays reports whether a refused content is more than a file caught half written: whether
// it is still there a moment later. What has come in its place is looked at next.
func (w *Watcher) stays(ctx context.Context) bool {
	stamp := w.stamp
	select {
	case <-ctx.Done():
		return false
	case <-time.After(settleLimit / 2):
	}
	if w.src.stampOf() == stamp {
		return true
	}
	w.look(ctx)
	return false
}

// read reads the bundle as it is at one moment: what changes meanwhile is read again.
func (w *Watcher) read(ctx context.Context) (f *Bundle, err error) {
	for range readTries {
		before := w.src.stampOf()
		f, err = Read(ctx, w.src)
		w.stamp = w.src.stampOf()
		if err == nil && w.stamp == before {
			return f, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(readAgain):
		}
	}
	return f, err
}

// concerns leaves out what happens beside the bundle in the folder that holds it.
func (w *Watcher) concerns(name string) bool {
	root := filepath.Clean(w.src.path)
	name = filepath.Clean(name)
	return name == root || strings.HasPrefix(name, root+string(filepath.Separator))
}

// follow asks for notices about every folder of the bundle, and about the one that holds it:
// the whole bundle may be replaced by renaming.
func (w *Watcher) follow() {
	_ = w.notices.Add(filepath.Dir(filepath.Clean(w.src.path))) // the poll finds what this does not
	if isTarball(w.src.path) {
		return
	}
	_ = w.src.walk(func(name string, info fs.FileInfo) {
		if info.IsDir() {
			_ = w.notices.Add(name)
		}
	})
}

// stampOf is what the bundle's files look like from outside, without reading them.
func (s Source) stampOf() string {
	var b strings.Builder
	err := s.walk(func(name string, info fs.FileInfo) {
		if !info.IsDir() {
			fmt.Fprintf(&b, "%s %d %d\n", name, info.Size(), info.ModTime().UnixNano())
		}
	})
	if err != nil {
		b.WriteString(err.Error())
	}
	return b.String()
}

// walk visits the folders and files of a bundle on disk, through links, hidden ones left out.
func (s Source) walk(visit func(name string, info fs.FileInfo)) error {
	return walk(filepath.Clean(s.path), 0, visit)
}

func walk(name string, depth int, visit func(string, fs.FileInfo)) error {
	info, err := os.Stat(name)
	if err != nil {
		if depth > 0 && os.IsNotExist(err) {
			return nil
		}
		return err
	}
	visit(name, info)
	if !info.IsDir() || depth > maxFolderDepth {
		return nil
	}
	entries, err := os.ReadDir(name)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if ignored(entry.Name()) {
			continue
		}
		if err := walk(filepath.Join(name, entry.Name()), depth+1, visit); err != nil {
			return err
		}
	}
	return nil
}
