package wasm

import (
	"context"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	. "github.com/interlock-gateway/interlock/gateway/wasm/wasmtest"
)

// A module without a manifest, or with another one, says what it is, before it is configured.
func TestDescribe(t *testing.T) {
	bare := guest{change: func(m *Module) { m.Custom = nil }}.module()
	for name, module := range map[string][]byte{"bare": bare, "with one": guest{}.module()} {
		text, err := Describe(context.Background(), Options{Name: name, Module: module, Config: []byte(`7`)})
		require.NoError(t, err, name)
		require.JSONEq(t, string(manifest(nil)), string(text))
	}
	made, err := WriteManifest(bare, manifest(nil))
	require.NoError(t, err)
	p, err := Load(context.Background(), Options{Name: "acme", Module: made})
	require.NoError(t, err)
	require.NoError(t, p.Close(context.Background()))

	var e *LoadError
	_, err = Describe(context.Background(), Options{Name: "acme", Module: []byte("GIF89a, really")})
	require.ErrorAs(t, err, &e)
	require.Equal(t, StepModule, e.Step)
}

func TestPrepareFillsTheCache(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o700))
	cache, err := NewCache(dir)
	require.NoError(t, err)
	module := guest{}.module()
	require.False(t, cache.Has(module))
	m, err := Prepare(context.Background(), Options{Name: "acme", Module: module, Cache: cache, Config: []byte(`7`)})
	require.NoError(t, err)
	require.Equal(t, "acme", m.Name)
	require.True(t, cache.Has(module))

	memory, err := NewCache("")
	require.NoError(t, err)
	_, err = Prepare(context.Background(), Options{Name: "acme", Module: module, Cache: memory})
	require.NoError(t, err)
	require.False(t, memory.Has(module), "nothing is kept")

	other := manifest(func(m *Manifest) { m.Version = "2.0.0" })
	made, err := WriteManifest(module, other)
	require.NoError(t, err)
	_, err = Prepare(context.Background(), Options{Name: "acme", Module: made, Cache: cache})
	require.ErrorIs(t, err, errOtherManifest)
}

func TestInspect(t *testing.T) {
	s := Inspect(Options{Name: "acme", Module: guest{pages: 2}.module()})
	require.NoError(t, s.Refused)
	require.Equal(t, "acme", s.Manifest.Name)
	require.Equal(t, int64(2*pageSize), s.Memory)
	require.Len(t, s.SHA256, 64)
	names := map[string]string{}
	for _, e := range s.Exports {
		require.NotContains(t, e.Name, "meter")
		names[e.Name] = e.Type
	}
	require.Equal(t, "(i32, i32) -> (i64)", names[exportCall])
	total := int64(8)
	for _, x := range s.Sections {
		total += int64(x.Size)
	}
	require.Equal(t, s.Size, total, "every byte is in a section")
}

// What is refused is shown all the same, as far as it can be read, and never a panic.
func TestInspectOfWhatIsRefused(t *testing.T) {
	good := guest{}.module()
	for name, o := range map[string]Options{
		"nothing":     {},
		"not Wasm":    {Module: []byte("GIF89a, really")},
		"cut off":     {Module: good[:len(good)/2]},
		"no code":     {Module: good[:8]},
		"too large":   {Module: good, Limits: Limits{ModuleSize: 100}},
		"no manifest": {Module: guest{change: func(m *Module) { m.Custom = nil }}.module()},
		"an import": {Module: guest{change: func(m *Module) {
			m.Imports = append(m.Imports, Import{Module: "env", Name: "evil\x1b[2J"})
		}}.module()},
	} {
		s := Inspect(o)
		var e *LoadError
		require.ErrorAs(t, s.Refused, &e, name)
		require.Equal(t, int64(len(o.Module)), s.Size)
		for _, i := range s.Imports {
			require.NotContains(t, i.Name, "\x1b")
		}
	}
	s := Inspect(Options{Module: guest{imports: []Import{logImport()}, manifest: manifest(wantsLog)}.module()})
	require.NoError(t, s.Refused, "what it wants counts as granted")
	for at := 0; at < len(good); at += 1 + at/200 {
		bent := append([]byte(nil), good...)
		bent[at] ^= 0x80
		require.Equal(t, int64(len(good)), Inspect(Options{Module: bent}).Size)
	}
}
