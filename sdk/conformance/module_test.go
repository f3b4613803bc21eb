package conformance_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/gateway/wasm"
	"github.com/interlock-gateway/interlock/sdk/abi/vectors"
	"github.com/interlock-gateway/interlock/sdk/conformance"
	interlock "github.com/interlock-gateway/interlock/sdk/go"
	"github.com/interlock-gateway/interlock/sdk/guests/go/echo"
)

// module builds the reference guest in that language, or skips the test where nothing can.
func module(t *testing.T, language string) []byte {
	if testing.Short() {
		t.Skip("builds a module")
	}
	if raceDetector {
		t.Skip("compiles a module ten times slower, and looks at nothing in it")
	}
	dir := t.TempDir()
	out, err := exec.Command("../guests/build.sh", dir, language).CombinedOutput()
	require.NoError(t, err, "%s", out)
	code, err := os.ReadFile(filepath.Join(dir, "echo-"+language+".wasm"))
	if errors.Is(err, os.ErrNotExist) {
		t.Skipf("%s", out)
	}
	require.NoError(t, err)
	return code
}

// hosted is a module in the gateway's own host.
type hosted struct{ p *wasm.Plugin }

func (h hosted) Call(op uint32, in, dst []byte) (out []byte, failed bool, err error) {
	// The budget of work judges a guest; the wall clock behind it judges a busy machine too.
	for range 3 {
		var f *wasm.Failure
		out, err = h.p.Call(wasm.Wait{}, wasm.Op(op), in, dst)
		if !errors.As(err, &f) || f.Reason != wasm.Killed {
			break
		}
	}
	var e *wasm.GuestError
	if !errors.As(err, &e) {
		return out, false, err
	}
	w := interlock.Writer(dst)
	w.Str(e.Code)
	w.Str(e.Message)
	w.Str(e.Param)
	w.U32(uint32(e.Status))
	return w, true, nil
}

// open loads a module with a configuration until the test ends.
func open(t *testing.T, code []byte, cache *wasm.Cache, config []byte) (conformance.Caller, error) {
	p, err := wasm.Load(context.Background(), wasm.Options{
		Name: "echo", Module: code, Manifest: []byte(echo.Manifest), Config: config, PoolSize: 1, Cache: cache,
	})
	var guest *wasm.GuestError
	var load *wasm.LoadError
	switch {
	case errors.As(err, &guest):
		return nil, &interlock.Error{Code: guest.Code, Message: guest.Message}
	case errors.As(err, &load) && (load.Step == wasm.StepConfig || load.Step == wasm.StepConfigure):
		return nil, interlock.Config(load.Error())
	case err != nil:
		return nil, err
	}
	t.Cleanup(func() { require.NoError(t, p.Close(context.Background())) })
	return hosted{p}, nil
}

func TestModules(t *testing.T) {
	for _, language := range []string{"go", "c", "rust"} {
		t.Run(language, func(t *testing.T) {
			code := module(t, language)
			cache, err := wasm.NewCache(filepath.Join(t.TempDir(), "cache"))
			require.NoError(t, err)
			t.Run("vectors", func(t *testing.T) { reproduces(t, code, cache) })
			t.Run("conformance", func(t *testing.T) {
				conformance.Run(t, conformance.Plugin{
					Manifest: []byte(echo.Manifest),
					Open:     func(config []byte) (conformance.Caller, error) { return open(t, code, cache, config) },
				}, fixtures(t))
			})
		})
	}
}

// reproduces holds a module to every vector.
func reproduces(t *testing.T, code []byte, cache *wasm.Cache) {
	all, err := vectors.All()
	require.NoError(t, err)
	plugins := map[string]conformance.Caller{}
	for _, v := range all {
		p := plugins[v.Config]
		if p == nil {
			config := v.Config
			if config == "" {
				config = "{}"
			}
			p, err = open(t, code, cache, []byte(config))
			require.NoError(t, err)
			plugins[v.Config] = p
		}
		out, failed, err := p.Call(v.Op, v.In, nil)
		require.NoError(t, err, v.Name)
		require.Equal(t, v.Failed, failed, v.Name)
		require.Equal(t, string(v.Out), string(out), v.Name)
	}
}
