package config

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// watching starts a watcher and returns what it reports.
func watching(t *testing.T, paths ...string) (*Watcher, <-chan []string) {
	w := NewWatcher(paths)
	reports := make(chan []string, 100)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.Run(ctx, func(list []string) { reports <- list })
	}()
	t.Cleanup(func() {
		cancel()
		select {
		case <-done:
		case <-time.After(10 * time.Second):
			t.Error("the watcher does not stop")
		}
	})
	return w, reports
}

func report(t *testing.T, reports <-chan []string) []string {
	t.Helper()
	select {
	case list := <-reports:
		return list
	case <-time.After(20 * time.Second):
		t.Fatal("no change was reported")
		return nil
	}
}

func put(t *testing.T, path, content string) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(content), 0o644))
}

// until waits for a report that names the path. A file that is written in place may be seen
// half written first, and then again.
func until(t *testing.T, reports <-chan []string, path string) {
	t.Helper()
	for !slices.Contains(report(t, reports), path) {
	}
}

func TestAFileThatIsWritten(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	put(t, a, "1")
	_, reports := watching(t, a, b)
	put(t, a, "2")
	until(t, reports, a)
	unrelated := filepath.Join(dir, "unrelated")
	put(t, unrelated, "x")
	put(t, b, "new")
	for {
		list := report(t, reports)
		require.NotContains(t, list, unrelated)
		if slices.Contains(list, b) {
			break
		}
	}
	require.NoError(t, os.Remove(a))
	until(t, reports, a)
}

func TestAFileThatIsReplaced(t *testing.T) {
	dir := t.TempDir()
	path, next := filepath.Join(dir, "interlock.yaml"), filepath.Join(dir, ".next")
	put(t, path, "1")
	_, reports := watching(t, path)
	for _, content := range []string{"2", "3"} {
		put(t, next, content)
		require.NoError(t, os.Rename(next, path))
		require.Equal(t, []string{path}, report(t, reports))
	}
}

// As Kubernetes swaps a ConfigMap: the file is a link through a link that is replaced.
func TestALinkThatIsPointedElsewhere(t *testing.T) {
	dir := t.TempDir()
	for _, v := range []string{"..v1", "..v2"} {
		require.NoError(t, os.Mkdir(filepath.Join(dir, v), 0o755))
		put(t, filepath.Join(dir, v, "interlock.yaml"), v)
	}
	require.NoError(t, os.Symlink("..v1", filepath.Join(dir, "..data")))
	path := filepath.Join(dir, "interlock.yaml")
	require.NoError(t, os.Symlink("..data/interlock.yaml", path))
	_, reports := watching(t, path)
	require.NoError(t, os.Symlink("..v2", filepath.Join(dir, "..next")))
	require.NoError(t, os.Rename(filepath.Join(dir, "..next"), filepath.Join(dir, "..data")))
	require.Equal(t, []string{path}, report(t, reports))
	put(t, filepath.Join(dir, "..v2", "interlock.yaml"), "changed in place")
	require.Equal(t, []string{path}, report(t, reports))
}

func TestADirectory(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "policies")
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "matrix"), 0o755))
	put(t, filepath.Join(dir, "matrix", "data.json"), "{}")
	_, reports := watching(t, dir)
	put(t, filepath.Join(dir, "matrix", "data.json"), "[]")
	require.Equal(t, []string{dir}, report(t, reports))
	require.NoError(t, os.Mkdir(filepath.Join(dir, "more"), 0o755))
	require.Equal(t, []string{dir}, report(t, reports))
	put(t, filepath.Join(dir, "more", "x.rego"), "package x")
	require.Equal(t, []string{dir}, report(t, reports))
}

func TestOtherPathsAreFollowed(t *testing.T) {
	dir, other := t.TempDir(), t.TempDir()
	a, b := filepath.Join(dir, "a"), filepath.Join(other, "b")
	put(t, a, "1")
	put(t, b, "1")
	w, reports := watching(t, a)
	w.Follow([]string{b})
	put(t, a, "2")
	put(t, b, "2")
	require.Equal(t, []string{b}, report(t, reports))
}

// What has changed before Run begins is not missed, and a file that is only touched is no
// change.
func TestTheStateIsThatOfTheBeginning(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a")
	put(t, path, "1")
	w := NewWatcher([]string{path})
	require.NoError(t, os.Chtimes(path, time.Now(), time.Now().Add(time.Hour)))
	require.Empty(t, w.changes(false))
	put(t, path, "2")
	require.Equal(t, []string{path}, w.changes(true))
	require.Empty(t, w.changes(true))
}
