package wasm

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	. "github.com/interlock-gateway/interlock/gateway/wasm/wasmtest"
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

// Many plugins of one module hold its code once, whatever their names, configurations and grants
// are, and the last one gives it back. What differs in the limit of memory has code of its own.
func TestPluginsOfOneModuleShareItsCode(t *testing.T) {
	var b book
	c, err := NewCache(t.TempDir())
	require.NoError(t, err)
	module := guest{imports: []Import{fdWrite()}}.module()
	var all []*Plugin
	for i := range 20 {
		o := Options{Name: "acme" + strconv.Itoa(i), Module: module, Config: []byte(`{"n":` + strconv.Itoa(i) + `}`), Cache: c, Log: b.logger()}
		if i%2 == 1 {
			o.Grants = []string{capabilityLog}
		}
		p, err := Load(context.Background(), o)
		require.NoError(t, err)
		all = append(all, p)
		require.Same(t, all[0].code, p.code)
	}
	small, err := Load(context.Background(), Options{Name: "small", Module: module, Cache: c, Limits: Limits{Memory: 1 << 20}})
	require.NoError(t, err)
	require.NotSame(t, all[0].code, small.code)
	require.Len(t, c.entries, 1)
	for i, p := range all {
		before := len(b.lines(t))
		out, err := p.Call(Wait{}, OpRequest, append([]byte{writes}, p.name...), nil)
		require.NoError(t, err)
		require.Equal(t, string(append([]byte{writes}, p.name...)), string(out))
		lines := b.lines(t)[before:]
		require.Len(t, lines, i%2, "what one is granted no other has")
		for _, l := range lines {
			require.Equal(t, p.name, l.Plugin)
		}
	}
	require.NoError(t, small.Close(context.Background()))
	for i, p := range all {
		require.Len(t, c.entries, 1)
		require.NoError(t, p.Close(context.Background()))
		if i < len(all)-1 {
			_, err := all[i+1].Call(Wait{}, OpRequest, []byte{echoes}, nil)
			require.NoError(t, err, "the others go on")
		}
	}
	require.Empty(t, c.entries)
}

// Plugins of one module come and go from many goroutines, while others call them.
func TestSharedCodeHammer(t *testing.T) {
	c, err := NewCache("")
	require.NoError(t, err)
	module := guest{}.module()
	var all sync.WaitGroup
	for n := range 8 {
		all.Go(func() {
			for range 30 {
				p, err := Load(context.Background(), Options{Name: "acme", Module: module, Cache: c, Limits: Limits{Memory: int64(1+n%2) << 20}})
				require.NoError(t, err)
				_, err = p.Call(Wait{}, OpRequest, []byte{echoes}, nil)
				require.NoError(t, err)
				require.NoError(t, p.Close(context.Background()))
			}
		})
	}
	all.Wait()
	require.Empty(t, c.entries)
}
