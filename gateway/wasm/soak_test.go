package wasm

import (
	"context"
	"log/slog"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// soak calls a plugin and replaces it by a fresh one again and again, and returns the resident
// memory in KiB after each tenth of that.
func soak(t *testing.T, module []byte, op Op, in []byte, calls, reloads int) (resident []int) {
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o700))
	cache, err := NewCache(dir)
	require.NoError(t, err)
	ctx := context.Background()
	fresh := func() *Plugin {
		p, err := Load(ctx, Options{Name: "acme", Module: module, Cache: cache, Log: slog.New(slog.DiscardHandler), PoolSize: 4})
		require.NoError(t, err)
		return p
	}
	p := fresh()
	for n := range reloads {
		// Two callers are still at it when the next one is loaded.
		var all sync.WaitGroup
		for range 2 {
			require.True(t, p.Retain())
			all.Go(func() {
				defer p.Release()
				var dst []byte
				for range calls / reloads / 2 {
					out, err := p.Call(Wait{}, op, in, dst[:0])
					if err != nil {
						t.Error(err)
						return
					}
					dst = out
				}
			})
		}
		next := fresh()
		p.Release()
		all.Wait()
		<-p.closed
		p = next
		if (n+1)%(reloads/10) == 0 {
			runtime.GC()
			debug.FreeOSMemory()
			resident = append(resident, residentKiB(t))
		}
	}
	require.NoError(t, p.Close(ctx))
	return resident
}

func residentKiB(t *testing.T) int {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Skip("resident memory is read from /proc")
	}
	_, rest, found := strings.Cut(string(status), "VmRSS:")
	require.True(t, found)
	n, err := strconv.Atoi(strings.Fields(rest)[0])
	require.NoError(t, err)
	return n
}

// flat says that the second half needs hardly more than the first.
func flat(t *testing.T, resident []int) {
	t.Log("resident KiB:", resident)
	most := func(l []int) (m int) {
		for _, v := range l {
			m = max(m, v)
		}
		return m
	}
	half := len(resident) / 2
	require.Less(t, most(resident[half:]), most(resident[1:half])+16<<10, "%v", resident)
}

func TestReloadsGiveTheirMemoryBack(t *testing.T) {
	in := append([]byte{echoes}, make([]byte, 2000)...)
	if os.Getenv("INTERLOCK_SOAK") == "" {
		flat(t, soak(t, guest{}.module(), OpRequest, in, 5_000, 40))
		return
	}
	flat(t, soak(t, guest{}.module(), OpRequest, in, 100_000, 200))
	module, err := goGuest()
	require.NoError(t, err)
	flat(t, soak(t, module, OpGuardRequest, []byte("g"+string(in)), 100_000, 200))
}
