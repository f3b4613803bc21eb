package policy

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
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
	stop context.CancelFunc
	done chan struct{}
}

// Watch builds src again whenever its content changes and calls changed with the new revision,
// or with nil and the error while what is on disk is refused: the caller keeps what it has.
// Calls come one at a time, from the watcher's goroutine, once for each content; a content that
// comes back is built and reported anew. active is the revision in use, built from src alone;
// nil is none. What is not on disk never changes. Close ends it.
func Watch(src Source, opts Options, active *Revision, changed func(*Revision, error)) (*Watcher, error) {
	ctx, stop := context.WithCancel(context.Background())
	w := &Watcher{stop: stop, done: make(chan struct{})}
	seen := ""
	if b := active.bundleOf(src); b != nil {
		seen = b.digest
	}
	go func() {
		defer close(w.done)
		if src.path == "" {
			return
		}
		watch(ctx, src, seen, func(ctx context.Context, b *Bundle) error {
			r, err := Build(ctx, []*Bundle{b}, opts)
			if err == nil && ctx.Err() == nil {
				changed(r, nil)
			}
			return err
		}, func(err error) { changed(nil, err) })
	}()
	return w, nil
}

// Close stops watching and waits until no call of changed is running. It is not called from
// changed.
func (w *Watcher) Close() error {
	w.stop()
	<-w.done
	return nil
}

// watcher looks at one bundle on disk.
type watcher struct {
	src     Source
	take    func(context.Context, *Bundle) error
	refused func(error)

	notices *fsnotify.Watcher // nil: only polls
	seen    string            // the content that was last taken or refused
	stamp   string            // what the files looked like then
}

// watch gives take each other content of a bundle on disk, until ctx ends. What cannot be read,
// or is not taken and is still there a moment later, is told to refused. seen is the digest of
// the content that was taken before; "" is none.
func watch(ctx context.Context, src Source, seen string, take func(context.Context, *Bundle) error, refused func(error)) {
	w := &watcher{src: src, take: take, refused: refused, seen: seen}
	// Without notices (the system's limit on watches is reached) the poll alone is quick enough.
	if notices, err := fsnotify.NewWatcher(); err == nil {
		w.notices = notices
		defer func() { _ = notices.Close() }() // it holds nothing that could be lost
		w.follow()
	}
	w.run(ctx)
}

func (w *watcher) run(ctx context.Context) {
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
func (w *watcher) look(ctx context.Context) {
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
	if err == nil {
		err = w.take(ctx, f)
	}
	if err != nil && ctx.Err() == nil && w.stays(ctx) {
		w.refused(err)
	}
}

// stays reports whether a refused content is more than a file caught half written: whether
// it is still there a moment later. What has come in its place is looked at next.
func (w *watcher) stays(ctx context.Context) bool {
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
func (w *watcher) read(ctx context.Context) (f *Bundle, err error) {
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
func (w *watcher) concerns(name string) bool {
	root := filepath.Clean(w.src.path)
	name = filepath.Clean(name)
	return name == root || strings.HasPrefix(name, root+string(filepath.Separator))
}

// follow asks for notices about every folder of the bundle, and about the one that holds it:
// the whole bundle may be replaced by renaming.
func (w *watcher) follow() {
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
