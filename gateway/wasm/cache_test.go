package wasm

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func cacheFiles(t *testing.T, dir string) (entry string, files []string) {
	list, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, list, 1)
	entry = filepath.Join(dir, list[0].Name())
	require.NoError(t, filepath.WalkDir(entry, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files = append(files, path)
		}
		return err
	}))
	return entry, files
}

// once loads the guest with a cache of its own in dir, calls it, and closes it.
func once(t *testing.T, dir string) {
	t.Helper()
	c, err := NewCache(dir)
	require.NoError(t, err)
	p, err := Load(context.Background(), Options{Name: "acme", Module: guest{}.module(), Cache: c})
	require.NoError(t, err)
	out, err := p.Call(Wait{}, OpRequest, []byte{echoes, 'x'}, nil)
	require.NoError(t, err)
	require.Equal(t, "\x00x", string(out))
	require.NoError(t, p.Close(context.Background()))
	require.Empty(t, c.entries, "nothing is kept in memory that nobody uses")
}

func TestCodeIsKeptAndUsedAgain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "cache")
	once(t, dir)
	info, err := os.Stat(dir)
	require.NoError(t, err)
	require.EqualValues(t, 0o700, info.Mode().Perm())
	entry, files := cacheFiles(t, dir)
	require.Len(t, files, 2)
	require.True(t, sound(entry))
	before, err := os.Stat(files[0])
	require.NoError(t, err)
	once(t, dir)
	_, again := cacheFiles(t, dir)
	require.Equal(t, files, again)
	after, err := os.Stat(again[0])
	require.NoError(t, err)
	require.Equal(t, before.ModTime(), after.ModTime(), "it was not made again")
}

func TestABrokenEntryIsMadeAgain(t *testing.T) {
	for name, breaks := range map[string]func(t *testing.T, entry, file string){
		"a bit turned": func(t *testing.T, _, file string) {
			b, err := os.ReadFile(file)
			require.NoError(t, err)
			b[len(b)/2] ^= 1
			require.NoError(t, os.WriteFile(file, b, 0o600))
		},
		"cut off": func(t *testing.T, _, file string) { require.NoError(t, os.Truncate(file, 100)) },
		"empty":   func(t *testing.T, _, file string) { require.NoError(t, os.Truncate(file, 0)) },
		"another file": func(t *testing.T, e, _ string) {
			require.NoError(t, os.WriteFile(filepath.Join(e, "x"), []byte("y"), 0o600))
		},
		"a link":      func(t *testing.T, e, _ string) { require.NoError(t, os.Symlink("/dev/zero", filepath.Join(e, "x"))) },
		"sums gone":   func(t *testing.T, e, _ string) { require.NoError(t, os.Remove(filepath.Join(e, sumsFile))) },
		"not its own": func(t *testing.T, e, _ string) { require.NoError(t, os.Chmod(e, 0o777)) },
		"with good sums": func(t *testing.T, e, file string) {
			require.NoError(t, os.Truncate(file, 100))
			sums, err := digests(e)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(filepath.Join(e, sumsFile), sums, 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			require.NoError(t, os.Chmod(dir, 0o700))
			once(t, dir)
			entry, files := cacheFiles(t, dir)
			code := files[0]
			if filepath.Base(code) == sumsFile {
				code = files[1]
			}
			breaks(t, entry, code)
			once(t, dir)
			entry, _ = cacheFiles(t, dir)
			require.True(t, sound(entry))
			once(t, dir)
		})
	}
}

func TestAFolderThatOthersCanWriteToIsRefused(t *testing.T) {
	dir := t.TempDir()
	for _, mode := range []os.FileMode{0o770, 0o702, 0o777} {
		require.NoError(t, os.Chmod(dir, mode))
		_, err := NewCache(dir)
		require.ErrorContains(t, err, "can be written by others")
	}
	require.NoError(t, os.Chmod(dir, 0o700))
	link := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(dir, link))
	_, err := NewCache(link)
	require.ErrorContains(t, err, "is not a folder")
	if os.Geteuid() == 0 {
		require.NoError(t, os.Chown(dir, 12345, 12345))
		_, err = NewCache(dir)
		require.ErrorContains(t, err, "belongs to another user")
	}
}

func TestAFolderThatIsGoneCostsOnlyTime(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	c, err := NewCache(dir)
	require.NoError(t, err)
	require.NoError(t, os.RemoveAll(dir))
	p, err := Load(context.Background(), Options{Name: "acme", Module: guest{}.module(), Cache: c})
	require.NoError(t, err)
	require.NoError(t, p.Close(context.Background()))
}

func TestTwoPluginsShareTheirCode(t *testing.T) {
	c, err := NewCache("")
	require.NoError(t, err)
	a := load(t, guest{}, func(o *Options) { o.Cache = c })
	b := load(t, guest{}, func(o *Options) { o.Cache = c })
	require.Len(t, c.entries, 1)
	require.NoError(t, a.Close(context.Background()))
	_, err = b.do(echoes)
	require.NoError(t, err, "the other one goes on")
	require.Len(t, c.entries, 1)
	require.NoError(t, b.Close(context.Background()))
	require.Empty(t, c.entries)
}

func TestOldEntriesAreRemoved(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o700))
	c, err := NewCache(dir)
	require.NoError(t, err)
	old := time.Now().Add(-24 * time.Hour)
	for i := range keepCompiled + 5 {
		e := filepath.Join(dir, string(rune('a'+i/26))+string(rune('a'+i%26))+"-m1")
		require.NoError(t, os.Mkdir(e, 0o700))
		require.NoError(t, os.Chtimes(e, old, old.Add(time.Duration(i)*time.Minute)))
	}
	left := filepath.Join(dir, freshPrefix+"left")
	require.NoError(t, os.Mkdir(left, 0o700))
	require.NoError(t, os.Chtimes(left, old, old))
	other := filepath.Join(dir, "somebody's")
	require.NoError(t, os.Mkdir(other, 0o700))
	c.trim()
	require.NoDirExists(t, left)
	require.NoDirExists(t, filepath.Join(dir, "aa-m1"))
	require.DirExists(t, other)
	list, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, list, keepCompiled+1)
}
