package policy

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/gateway/failure"
)

type news struct {
	revision *Revision
	err      error
	at       time.Time
}

// watched starts a watcher on a fresh copy of the default bundle.
func watched(t *testing.T, dir string) (*Revision, <-chan news) {
	t.Helper()
	active := loadDir(t, dir)
	heard := make(chan news, 100)
	w, err := Watch(Path("test", dir), patient, active, func(r *Revision, err error) { heard <- news{r, err, time.Now()} })
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, w.Close()) })
	return active, heard
}

func next(t *testing.T, heard <-chan news) news {
	t.Helper()
	select {
	case n := <-heard:
		return n
	case <-time.After(20 * time.Second):
		require.Fail(t, "nothing was heard of the change")
		return news{}
	}
}

const matrixFile = "interlock/matrix/data.json"

func lastInsteadOfOnce(t *testing.T) string {
	return edited(t, matrixFile, `"same_route_retry": "once"`, `"same_route_retry": "last"`)
}

func firstAction(t *testing.T, r *Revision) failure.Action {
	t.Helper()
	in := openInput(failure.Network, failure.BeforeHeaders, true)
	d, meta := r.Replay(testContext(t), &in)
	require.NoError(t, meta.Err)
	return d.Actions[0]
}

func TestWatch(t *testing.T) {
	dir := copyBundle(t, nil)
	active, heard := watched(t, dir)
	require.Equal(t, again, firstAction(t, active))

	// One cell.
	start := time.Now()
	writeFile(t, filepath.Join(dir, matrixFile), lastInsteadOfOnce(t))
	n := next(t, heard)
	require.NoError(t, n.err)
	require.Equal(t, elsewhere, firstAction(t, n.revision))
	require.Less(t, n.at.Sub(start), 10*time.Second) // 2 s on a machine that is not busy
	changed := n.revision.ID()

	// A broken change is refused; what is in use is the caller's to keep.
	writeFile(t, filepath.Join(dir, matrixFile), edited(t, matrixFile, `"same_route_retry": "once"`, `"same_route_retry": "twice"`))
	n = next(t, heard)
	require.Nil(t, n.revision)
	require.ErrorContains(t, n.err, "matrix/data.json:28:24")

	// Fixed, and back to what it was before the broken change: reported all the same.
	writeFile(t, filepath.Join(dir, matrixFile), lastInsteadOfOnce(t))
	n = next(t, heard)
	require.NoError(t, n.err)
	require.Equal(t, changed, n.revision.ID())
}

// An editor writes a new file beside the old one and renames it.
func TestWatchRename(t *testing.T) {
	dir := copyBundle(t, nil)
	_, heard := watched(t, dir)
	temporary := filepath.Join(dir, "interlock/matrix/.data.json.swx")
	writeFile(t, temporary, lastInsteadOfOnce(t))
	require.NoError(t, os.Rename(temporary, filepath.Join(dir, matrixFile)))
	n := next(t, heard)
	require.NoError(t, n.err)
	require.Equal(t, elsewhere, firstAction(t, n.revision))
}

// A deployment renames the whole folder.
func TestWatchFolderRename(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "policies")
	require.NoError(t, os.Rename(copyBundle(t, nil), dir))
	_, heard := watched(t, dir)
	fresh := copyBundle(t, map[string]string{matrixFile: lastInsteadOfOnce(t)})
	require.NoError(t, os.Rename(dir, dir+".old"))
	require.NoError(t, os.Rename(fresh, dir))
	n := next(t, heard)
	if n.err != nil { // caught between the two
		n = next(t, heard)
	}
	require.NoError(t, n.err)
	require.Equal(t, elsewhere, firstAction(t, n.revision))

	// Notices follow into the new folder.
	writeFile(t, filepath.Join(dir, "interlock/extra/data.json"), `{"x": 1}`)
	n = next(t, heard)
	require.NoError(t, n.err)
	writeFile(t, filepath.Join(dir, "interlock/extra/data.json"), `{"x": 2}`)
	require.NoError(t, next(t, heard).err)
}

// A mount swaps a link.
func TestWatchLinks(t *testing.T) {
	mount := t.TempDir()
	require.NoError(t, os.Symlink(copyBundle(t, nil), filepath.Join(mount, "..data")))
	require.NoError(t, os.Symlink(filepath.Join("..data", "interlock"), filepath.Join(mount, "interlock")))
	_, heard := watched(t, mount)
	fresh := copyBundle(t, map[string]string{matrixFile: lastInsteadOfOnce(t)})
	require.NoError(t, os.Symlink(fresh, filepath.Join(mount, "..data_tmp")))
	require.NoError(t, os.Rename(filepath.Join(mount, "..data_tmp"), filepath.Join(mount, "..data")))
	n := next(t, heard)
	require.NoError(t, n.err)
	require.Equal(t, elsewhere, firstAction(t, n.revision))
}

// What changed between loading and watching is not missed.
func TestWatchFromTheStart(t *testing.T) {
	dir := copyBundle(t, nil)
	active := loadDir(t, dir)
	writeFile(t, filepath.Join(dir, matrixFile), lastInsteadOfOnce(t))
	heard := make(chan news, 10)
	w, err := Watch(Path("test", dir), patient, active, func(r *Revision, err error) { heard <- news{revision: r, err: err} })
	require.NoError(t, err)
	n := next(t, heard)
	require.NoError(t, n.err)
	require.NotEqual(t, active.ID(), n.revision.ID())
	require.NoError(t, w.Close())
	require.NoError(t, w.Close())
	writeFile(t, filepath.Join(dir, matrixFile), "{")
	require.Empty(t, heard, "nothing is heard after Close")
}

// Where the system gives no notices the poll finds the change.
func TestWatchByPollAlone(t *testing.T) {
	dir := copyBundle(t, nil)
	active := loadDir(t, dir)
	heard := make(chan news, 10)
	ctx, stop := context.WithCancel(testContext(t))
	w := &watcher{src: Path("test", dir), seen: active.parts[0].Bundle.digest, refused: func(err error) { heard <- news{err: err} }}
	w.take = func(ctx context.Context, b *Bundle) error {
		r, err := Build(ctx, []*Bundle{b}, patient)
		heard <- news{revision: r, err: err}
		return nil
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		w.run(ctx)
	}()
	defer func() {
		stop()
		<-ended
	}()
	writeFile(t, filepath.Join(dir, matrixFile), lastInsteadOfOnce(t))
	n := next(t, heard)
	require.NoError(t, n.err)
	require.Equal(t, elsewhere, firstAction(t, n.revision))
}

func TestWatchGone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "policies")
	require.NoError(t, os.Rename(copyBundle(t, nil), dir))
	_, heard := watched(t, dir)
	require.NoError(t, os.RemoveAll(dir))
	for {
		n := next(t, heard)
		require.Error(t, n.err)
		if os.IsNotExist(unwrapAll(n.err)) {
			return
		}
	}
}

func unwrapAll(err error) error {
	for {
		inner, ok := err.(interface{ Unwrap() error })
		if !ok {
			return err
		}
		if _, isPath := err.(*os.PathError); isPath {
			return err
		}
		err = inner.Unwrap()
	}
}

func TestWatchBuiltin(t *testing.T) {
	w, err := Watch(Builtin(), patient, nil, func(*Revision, error) { t.Error("it never changes") })
	require.NoError(t, err)
	require.NoError(t, w.Close())
}
