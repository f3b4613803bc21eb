package wasm

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/interlock-gateway/interlock/gateway/wasm/meter"
)

// Cache keeps compiled modules, in memory while they are in use and in a folder beyond that, by
// the content of the module and the version of the rewriter: plugins of the same content share one,
// whatever their names and configurations are. It is safe for concurrent use.
//
// The folder holds machine code: who can write to it owns the gateway. So it must belong to the
// gateway's user, and nobody else may write to it. What stands in it is checked against its
// digest; what is broken is thrown away and made again.
type Cache struct {
	dir string // "": memory only

	mu      sync.Mutex
	entries map[string]*compiled
}

// compiled is one module's code, shared by the plugins that use it.
type compiled struct {
	key  string
	refs int // under Cache.mu

	mu     sync.Mutex // held while the module is compiled
	engine wazero.CompilationCache
	ready  map[uint32]*code // by the most pages that an instance may have; under mu
}

// code is a module from which instances can be made. It holds nothing of any one plugin's: the
// host's functions in it find the instance that calls them by its context.
type code struct {
	runtime wazero.Runtime
	module  wazero.CompiledModule
	refs    int // under compiled.mu
}

func (c *code) close() {
	_ = c.module.Close(context.Background())
	_ = c.runtime.Close(context.Background()) // without files it cannot fail
}

const (
	keepCompiled = 64
	sumsFile     = "sums"
	freshPrefix  = "new-"
)

// NewCache opens the cache in a folder, which it makes if need be; with "" it keeps nothing
// beyond the process.
func NewCache(dir string) (*Cache, error) {
	c := &Cache{entries: map[string]*compiled{}}
	if dir == "" {
		return c, nil
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if err := private(dir); err != nil {
		return nil, fmt.Errorf("the cache of compiled plugins: %w", err)
	}
	c.dir = dir
	return c, nil
}

// private refuses a folder that another could write to.
func private(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a folder", dir)
	}
	if writableByOthers(info) {
		return fmt.Errorf("%s can be written by others: it holds machine code, so chmod 700 it", dir)
	}
	if !ownedByUs(info) {
		return fmt.Errorf("%s belongs to another user: it holds machine code", dir)
	}
	return nil
}

// cacheKey names a module's code.
func cacheKey(module []byte) string {
	sum := sha256.Sum256(module)
	return fmt.Sprintf("%s-m%d", hex.EncodeToString(sum[:]), meter.Version)
}

// compile returns the code of an admitted module, and what gives it back when no instance of it is
// left.
func (c *Cache) compile(ctx context.Context, key string, a *admitted) (*code, func(), error) {
	c.mu.Lock()
	e := c.entries[key]
	if e == nil {
		e = &compiled{key: key, ready: map[uint32]*code{}}
		c.entries[key] = e
	}
	e.refs++
	c.mu.Unlock()

	e.mu.Lock()
	defer e.mu.Unlock()
	pages := a.limits.pages()
	made := e.ready[pages]
	if made == nil {
		r, m, err := c.load(ctx, e, a.code, runtimeConfig(pages))
		if err != nil {
			c.release(e)
			return nil, nil, err
		}
		made = &code{runtime: r, module: m}
		if err := provide(ctx, r, a.imports); err != nil {
			made.close()
			c.release(e)
			return nil, nil, err
		}
		e.ready[pages] = made
	}
	made.refs++
	return made, sync.OnceFunc(func() {
		e.mu.Lock()
		made.refs--
		last := made.refs == 0
		if last {
			delete(e.ready, pages)
		}
		e.mu.Unlock()
		if last {
			made.close()
		}
		c.release(e)
	}), nil
}

func (c *Cache) release(e *compiled) {
	c.mu.Lock()
	e.refs--
	last := e.refs == 0
	if last {
		delete(c.entries, e.key)
	}
	c.mu.Unlock()
	if last && e.engine != nil {
		_ = e.engine.Close(context.Background()) // it unmaps code, and cannot fail
	}
}

// load takes the code from memory, from the folder, or makes it.
func (c *Cache) load(ctx context.Context, e *compiled, code []byte, config wazero.RuntimeConfig) (wazero.Runtime, wazero.CompiledModule, error) {
	if e.engine != nil {
		return build(ctx, e.engine, code, config)
	}
	if c.dir == "" {
		e.engine = wazero.NewCompilationCache()
		return build(ctx, e.engine, code, config)
	}
	dir := filepath.Join(c.dir, e.key)
	if sound(dir) {
		if engine, err := wazero.NewCompilationCacheWithDir(dir); err == nil {
			if r, m, err := build(ctx, engine, code, config); err == nil {
				e.engine = engine
				_ = os.Chtimes(dir, time.Time{}, time.Now()) // for trim: not worth an error
				return r, m, nil
			}
			_ = engine.Close(ctx)
		}
	}
	return c.make(ctx, e, dir, code, config)
}

// make compiles the module and puts its code into the folder: whole, or not at all. A folder
// that cannot be written costs time at the next start and nothing else.
func (c *Cache) make(ctx context.Context, e *compiled, dir string, code []byte, config wazero.RuntimeConfig) (wazero.Runtime, wazero.CompiledModule, error) {
	fresh, err := os.MkdirTemp(c.dir, freshPrefix)
	if err == nil {
		defer func() { _ = os.RemoveAll(fresh) }()
		if engine, err := wazero.NewCompilationCacheWithDir(fresh); err == nil {
			if r, m, err := build(ctx, engine, code, config); err == nil {
				e.engine = engine
				c.keep(fresh, dir)
				return r, m, nil
			}
			_ = engine.Close(ctx)
		}
	}
	e.engine = wazero.NewCompilationCache()
	return build(ctx, e.engine, code, config)
}

func (c *Cache) keep(fresh, dir string) {
	sums, err := digests(fresh)
	if err != nil || os.WriteFile(filepath.Join(fresh, sumsFile), sums, 0o600) != nil {
		return
	}
	if os.RemoveAll(dir) == nil && os.Rename(fresh, dir) == nil {
		c.trim()
	}
}

// build compiles a module in a runtime of its own.
func build(ctx context.Context, engine wazero.CompilationCache, code []byte, config wazero.RuntimeConfig) (r wazero.Runtime, m wazero.CompiledModule, err error) {
	r = wazero.NewRuntimeWithConfig(ctx, config.WithCompilationCache(engine))
	defer func() {
		if caught := recover(); caught != nil {
			err = fmt.Errorf("%w: %v", errFault, caught)
		}
		if err != nil {
			_ = r.Close(ctx)
			r, m = nil, nil
		}
	}()
	m, err = r.CompileModule(experimental.WithCompilationWorkers(ctx, goruntime.GOMAXPROCS(0)), code)
	return r, m, err
}

// runtimeConfig is what the ABI allows of Wasm.
func runtimeConfig(pages uint32) wazero.RuntimeConfig {
	return wazero.NewRuntimeConfig().
		WithCoreFeatures(api.CoreFeaturesV2).
		WithMemoryLimitPages(pages).
		WithDebugInfoEnabled(false).
		WithCustomSections(false)
}

// digests lists the files of an entry with their digests.
func digests(dir string) ([]byte, error) {
	var lines []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == sumsFile {
			return err
		}
		if !d.Type().IsRegular() {
			return errors.New("not a file")
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }()
		h := sha256.New()
		if _, err := io.Copy(h, f); err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		lines = append(lines, fmt.Sprintf("%x %s", h.Sum(nil), filepath.ToSlash(name)))
		return err
	})
	slices.Sort(lines)
	return []byte(strings.Join(lines, "\n")), err
}

// sound says whether an entry is there and as it was written.
func sound(dir string) bool {
	if private(dir) != nil {
		return false
	}
	want, err := os.ReadFile(filepath.Join(dir, sumsFile))
	if err != nil || len(want) == 0 {
		return false
	}
	have, err := digests(dir)
	return err == nil && bytes.Equal(want, have)
}

// trim removes the entries that were not used for longest, and what a killed process left.
func (c *Cache) trim() {
	list, err := os.ReadDir(c.dir)
	if err != nil {
		return
	}
	type entry struct {
		path string
		used time.Time
	}
	var all []entry
	for _, d := range list {
		info, err := d.Info()
		if err != nil || !d.IsDir() {
			continue
		}
		path := filepath.Join(c.dir, d.Name())
		switch {
		case strings.HasPrefix(d.Name(), freshPrefix):
			if time.Since(info.ModTime()) > time.Hour {
				_ = os.RemoveAll(path)
			}
		case strings.Contains(d.Name(), "-m"):
			all = append(all, entry{path, info.ModTime()})
		}
	}
	slices.SortFunc(all, func(a, b entry) int { return b.used.Compare(a.used) })
	for _, e := range all[min(keepCompiled, len(all)):] {
		_ = os.RemoveAll(e.path)
	}
}
