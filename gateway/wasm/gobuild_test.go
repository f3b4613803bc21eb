package wasm

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// goGuest builds the guest in testdata/goguest once for all tests.
var goGuest = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "goguest")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file := filepath.Join(dir, "guest.wasm")
	cmd := exec.Command("go", "build", "-buildmode=c-shared", "-ldflags=-s -w", "-o", file, "./testdata/goguest")
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm")
	if text, err := cmd.CombinedOutput(); err != nil {
		return nil, &exec.Error{Name: string(text), Err: err}
	}
	module, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	manifest, err := os.ReadFile("testdata/goguest/manifest.json")
	if err != nil {
		return nil, err
	}
	return WriteManifest(module, manifest)
})

// goCache keeps the guest's code from one test to the next.
var goCache = sync.OnceValues(func() (*Cache, error) {
	dir, err := os.MkdirTemp("", "gocache")
	if err != nil {
		return nil, err
	}
	goCacheDir = dir
	return NewCache(dir)
})

var goCacheDir string // removed when the tests are over

func loadGo(t testing.TB, change func(*Options)) host {
	t.Helper()
	if testing.Short() {
		t.Skip("it builds a guest with the Go toolchain")
	}
	module, err := goGuest()
	require.NoError(t, err)
	cache, err := goCache()
	require.NoError(t, err)
	return load(t, guest{}, func(o *Options) {
		o.Module, o.Cache = module, cache
		if change != nil {
			change(o)
		}
	})
}

func TestAGuestMadeByGo(t *testing.T) {
	h := loadGo(t, func(o *Options) { o.Config = []byte(`{"word":"yes"}`) })
	say := func(in string) string {
		t.Helper()
		out, m, err := h.CallMeasured(Wait{}, OpGuardRequest, []byte(in), nil)
		require.NoError(t, err)
		require.Positive(t, m.Units)
		t.Log(in[:1], m.Units, m.Took, m.Memory)
		return string(out)
	}
	require.Equal(t, "echo", say("echo"))
	require.Equal(t, `{"word":"yes"}`, say("config"))
	require.Equal(t, "20", say("garbage"))
	require.Equal(t, "j0", say(`j{}`))
	require.Equal(t, "written", say("write"))
	require.Equal(t, "0 args 0 env; no file; no folder; no socket", say("nothing"))
	require.NotEqual(t, say("random"), say("random"))

	passed, now, _ := strings.Cut(say("time"), " ")
	ns, err := strconv.ParseInt(passed, 10, 64)
	require.NoError(t, err)
	require.Positive(t, ns)
	require.Zero(t, ns%int64(time.Millisecond), "the clock is coarse")
	ms, err := strconv.ParseInt(now, 10, 64)
	require.NoError(t, err)
	require.WithinDuration(t, time.Now(), time.UnixMilli(ms), time.Minute)

	large := "e" + strings.Repeat("x", 3<<20)
	require.Equal(t, large, say(large))
}

func TestAGuestMadeByGoThatMisbehaves(t *testing.T) {
	h := loadGo(t, nil)
	for what, want := range map[string]Reason{
		"panic": Trapped, "memory": Trapped, "deadlock": Trapped, "xit": Trapped, "zzz": Exhausted,
	} {
		_, err := h.Call(Wait{}, OpGuardRequest, []byte(what), nil)
		require.Equal(t, want.String(), reason(t, err).String(), "%s: %v", what, err)
		t.Log(what, err)
		out, err := h.Call(Wait{}, OpGuardEvents, []byte("e"), nil)
		require.NoError(t, err)
		require.Equal(t, "e", string(out))
	}
}

func TestARefusedConfigurationIsAnErrorOfTheLoad(t *testing.T) {
	_ = loadGo(t, nil) // holds the code while the others are refused
	module, err := goGuest()
	require.NoError(t, err)
	cache, err := goCache()
	require.NoError(t, err)
	_, err = Load(context.Background(), Options{Name: "acme", Module: module, Cache: cache, Config: []byte(`{"word":"no"}`)})
	var e *LoadError
	require.ErrorAs(t, err, &e)
	require.Equal(t, StepConfigure, e.Step)
	var guest *GuestError
	require.ErrorAs(t, err, &guest)
	require.Equal(t, "this word is not wanted", guest.Message)

	_, err = Load(context.Background(), Options{Name: "acme", Module: module, Cache: cache, Config: []byte(`{"words":1}`)})
	require.ErrorAs(t, err, &e)
	require.Equal(t, StepConfig, e.Step)
	require.ErrorContains(t, err, "words")
}

// A Go guest that sees no time pass runs out of memory after a million calls; one whose
// collector works does not. Each call makes 20 copies of its input.
func TestAGuestMadeByGoCollectsItsGarbage(t *testing.T) {
	h := loadGo(t, func(o *Options) { o.PoolSize = 1 })
	in := []byte("g" + strings.Repeat("x", 2000))
	largest := int64(0)
	for range 5000 { // 200 MB
		_, m, err := h.CallMeasured(Wait{}, OpGuardEvents, in, nil)
		require.NoError(t, err)
		largest = max(largest, m.Memory)
	}
	require.Less(t, largest, int64(32<<20))
	t.Log("memory", largest>>20, "MiB")
}
