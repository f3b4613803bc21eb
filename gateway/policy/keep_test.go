package policy

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// fullDisk takes so many bytes and then no more, as long as it is full.
type fullDisk struct {
	*os.File
	room int
}

func (f *fullDisk) Write(p []byte) (int, error) {
	if len(p) <= f.room {
		f.room -= len(p)
		return f.File.Write(p)
	}
	n, _ := f.File.Write(p[:f.room])
	f.room = 0
	return n, &os.PathError{Op: "write", Path: f.Name(), Err: syscall.ENOSPC}
}

// A bundle that the disk has no room for is in force all the same; the one before stays on disk,
// whole, for a start without the server; and it is kept as soon as there is room.
func TestDiskIsFull(t *testing.T) {
	server := newBundleServer(t)
	server.publish(packed(t, "v1", nil, nil))
	full := make(chan bool, 1)
	full <- false
	set := Set{Options: patient, Dir: t.TempDir(), Sources: []Source{Remote("platform", server.URL, RemoteOptions{Poll: quick})}}
	set.create = func(dir string) (temporary, error) {
		f, err := os.CreateTemp(dir, ".new-*")
		if err != nil {
			return nil, err
		}
		is := <-full
		full <- is
		if is {
			return &fullDisk{f, 1000}, nil
		}
		return f, nil
	}
	r, troubles, err := set.Open(testContext(t), nil)
	require.NoError(t, err)
	p := &inForce{}
	p.revision.Store(r)
	told := make(chan error, 100)
	hooks := p.hooks()
	hooks.NotKept = func(_ Source, err error) { told <- err }
	p.Follower = Follow(set, r, nil, troubles, hooks)
	t.Cleanup(p.Close)
	kept := func() string {
		b, err := set.Offline(testContext(t), set.Sources[0])
		require.NoError(t, err)
		require.NotNil(t, b)
		return b.Revision()
	}
	require.Equal(t, "v1", kept())
	require.Empty(t, p.Status().Bundles[0].NotKept)

	<-full
	full <- true
	server.publish(packed(t, "v2", nil, nil))
	p.becomes(t, "v2")
	require.ErrorIs(t, <-told, syscall.ENOSPC)
	require.Contains(t, p.Status().Bundles[0].NotKept, "no space left")
	require.Empty(t, p.Status().Bundles[0].LastError, "it is in force")
	require.Equal(t, "v1", kept(), "whole")
	asked, _ := server.counts()
	require.Eventually(t, func() bool { now, _ := server.counts(); return now > asked+3 }, 20*time.Second, 5*time.Millisecond)
	left, err := filepath.Glob(filepath.Join(set.Dir, ".new-*"))
	require.NoError(t, err)
	require.LessOrEqual(t, len(left), 1, "half a file is not left behind, but for the one being written")

	<-full
	full <- false
	require.Eventually(t, func() bool { return kept() == "v2" }, 20*time.Second, 5*time.Millisecond)
	require.Eventually(t, func() bool { return p.Status().Bundles[0].NotKept == "" }, 20*time.Second, 5*time.Millisecond)
	p.Close()
	left, err = filepath.Glob(filepath.Join(set.Dir, ".new-*"))
	require.NoError(t, err)
	require.Empty(t, left)
	require.Empty(t, told, "it is not told each time that the server is asked")
}
