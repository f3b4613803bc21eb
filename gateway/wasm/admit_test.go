package wasm

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	. "github.com/interlock-gateway/interlock/gateway/wasm/wasmtest"
)

func logImport() Import {
	return Import{Module: hostModule, Name: hostLog, Params: []byte{I32, I32, I32}}
}

func wantsLog(m *Manifest) { m.Capabilities = []string{capabilityLog} }

func TestWhatIsRefusedWhenItIsLoaded(t *testing.T) {
	good := guest{}.module()
	changed := func(change func(*Module)) []byte { return guest{change: change}.module() }
	without := func(export string) []byte {
		return changed(func(m *Module) {
			for i := range m.Funcs {
				if m.Funcs[i].Export == export {
					m.Funcs[i].Export = ""
				}
			}
		})
	}
	for name, c := range map[string]struct {
		options Options
		step    Step
		reason  string
	}{
		"not Wasm":          {Options{Module: []byte("GIF89a, really")}, StepModule, "not a Wasm module"},
		"nothing":           {Options{}, StepModule, "not a Wasm module"},
		"cut off":           {Options{Module: good[:len(good)/2]}, StepManifest, "cut off"},
		"too large":         {Options{Module: good, Limits: Limits{ModuleSize: 100}}, StepModule, "at most 100"},
		"another digest":    {Options{Module: good, SHA256: strings.Repeat("0", 64)}, StepModule, "sha256"},
		"broken code":       {Options{Module: changed(func(m *Module) { m.Funcs[0].Body = []byte{0xfe, 0, 0} })}, StepModule, "0xfe"},
		"wrong types":       {Options{Module: changed(func(m *Module) { m.Funcs[1].Body = I64Const(1) })}, StepCompile, "cannot use i64"},
		"no manifest":       {Options{Module: changed(func(m *Module) { m.Custom = nil })}, StepManifest, "there is none"},
		"another beside it": {Options{Module: good, Manifest: manifest(func(m *Manifest) { m.Version = "2.0.0" })}, StepManifest, "is not the one in it"},
		"memory at start":   {Options{Module: guest{pages: 100}.module(), Limits: Limits{Memory: 1 << 20}}, StepModule, "100 pages"},
		"start function": {Options{Module: changed(func(m *Module) {
			m.Funcs = append(m.Funcs, Func{Body: Loop(Br(0))})
			m.StartFunc = len(m.Funcs)
		})}, StepModule, "start function"},
		"wrong ABI in code":     {Options{Module: guest{abi: 2 << 16}.module()}, StepStart, "version 2.0"},
		"wrong ABI in manifest": {Options{Module: guest{manifest: manifest(func(m *Manifest) { m.ABI = "2.0" })}.module()}, StepManifest, "2.0"},
		"no interlock_call":     {Options{Module: without(exportCall)}, StepExports, "does not export interlock_call"},
		"no interlock_alloc":    {Options{Module: without(exportAlloc)}, StepExports, "does not export interlock_alloc"},
		"no interlock_abi":      {Options{Module: without(exportABI)}, StepExports, "does not export interlock_abi"},
		"no memory export":      {Options{Module: changed(func(m *Module) { m.Hidden = true })}, StepExports, "does not export its memory"},
		"another signature": {Options{Module: changed(func(m *Module) {
			m.Funcs[1] = Func{Export: exportAlloc, Params: []byte{I64}, Results: []byte{I32}, Body: I32Const(0)}
		})}, StepExports, "(i32) -> (i32)"},
		"a command": {Options{Module: changed(func(m *Module) { m.Funcs = append(m.Funcs, Func{Export: "_start"}) })}, StepExports, "reactor"},
		"log without the grant": {
			Options{Module: guest{imports: []Import{logImport()}, manifest: manifest(wantsLog)}.module()},
			StepImports, "the capability log, which is not granted",
		},
		"log beside the manifest": {
			Options{Module: guest{imports: []Import{logImport()}}.module(), Grants: []string{capabilityLog}},
			StepImports, "not among the capabilities",
		},
		"log of another type": {
			Options{
				Module: guest{imports: []Import{{Module: hostModule, Name: hostLog}}, manifest: manifest(wantsLog)}.module(),
				Grants: []string{capabilityLog},
			}, StepImports, "(i32, i32, i32) -> ()",
		},
		"an import of the host's": {Options{Module: guest{imports: []Import{{Module: hostModule, Name: "fetch"}}}.module()}, StepImports, "fetch"},
		"an import of others'":    {Options{Module: guest{imports: []Import{{Module: "env", Name: "abort"}}}.module()}, StepImports, "abort"},
		"an import of WASI's":     {Options{Module: guest{imports: []Import{{Module: wasiModule, Name: "sock_open"}}}.module()}, StepImports, "sock_open"},
		"a grant that is none":    {Options{Module: good, Grants: []string{"network"}}, StepConfig, "network"},
		"a config that is none":   {Options{Module: good, Config: []byte("[]")}, StepConfig, "not an object"},
		"a config that is broken": {Options{Module: good, Config: []byte("{")}, StepConfig, "not JSON"},
		"endless _initialize":     {Options{Module: changed(initializes(Loop(Br(0)))), Limits: Limits{CallTimeout: time.Millisecond}}, StepStart, "budget_exhausted"},
		"trapping _initialize":    {Options{Module: changed(initializes([]byte{Unreachable}))}, StepStart, "trap"},
		"a bad configure":         {Options{Module: guest{configure: []byte{Unreachable}}.module()}, StepStart, "trap"},
		"a refusing configure":    {Options{Module: guest{configure: failing(errorAt, len(errorRecord(CodeUnsupportedParameter, "there is no logit_bias here", "logit_bias", 422)))}.module()}, StepConfigure, "logit_bias"},
		"another self-description": {Options{Module: changed(func(m *Module) {
			m.Data = slices.Concat(m.Data[:4], []byte(strings.Replace(string(m.Data[4:]), "acme", "axme", 1)))
		})}, StepManifest, "what it says of itself"},
		"a schema that loads a file": {Options{Module: guest{manifest: manifest(func(m *Manifest) {
			m.ConfigSchema = []byte(`{"$ref":"file:///etc/passwd"}`)
		})}.module()}, StepManifest, "stands for itself"},
	} {
		t.Run(name, func(t *testing.T) {
			c.options.Name = "acme"
			_, err := Load(context.Background(), c.options)
			var e *LoadError
			require.ErrorAs(t, err, &e)
			require.ErrorContains(t, err, c.reason)
			require.Equal(t, c.step, e.Step)
			require.ErrorContains(t, err, "plugin acme: ")
		})
	}
}

func initializes(body []byte) func(*Module) {
	return func(m *Module) { m.Funcs = append(m.Funcs, Func{Export: exportInitialize, Body: body}) }
}

func TestWhatIsAccepted(t *testing.T) {
	module := guest{}.module()
	sum := sha256.Sum256(module)
	p := load(t, guest{}, func(o *Options) { o.SHA256 = strings.ToUpper(hex.EncodeToString(sum[:])) })
	require.Equal(t, "acme", p.Name())
	require.Equal(t, KindAdapter, p.Manifest().Kind)

	beside := load(t, guest{change: func(m *Module) { m.Custom = nil }}, func(o *Options) { o.Manifest = manifest(nil) })
	require.Equal(t, []string{"chat_completions"}, beside.Manifest().Endpoints)

	// _initialize runs before the rest: without it this guest speaks version 0.
	late := load(t, guest{change: func(m *Module) {
		m.Globals = 1
		m.Funcs[0].Body = Code(0x23, 0)
		m.Funcs = append(m.Funcs, Func{Export: exportInitialize, Body: Code(I32Const(1<<16), 0x24, 0)})
	}}, nil)
	_, err := late.do(echoes)
	require.NoError(t, err)

	// A later minor version may say more.
	newer := strings.Replace(string(manifest(func(m *Manifest) { m.ABI = "1.7" })), "{", `{"flavour":"sweet",`, 1)
	load(t, guest{manifest: []byte(newer), abi: 1<<16 | 7}, nil)
}

func TestTheSmallerLimitHolds(t *testing.T) {
	wants := manifest(func(m *Manifest) {
		m.Limits = ManifestLimits{Memory: 4 << 20, CallTimeout: Duration(5 * time.Second), State: 4 << 10}
	})
	p := load(t, guest{manifest: wants}, func(o *Options) { o.Limits.Memory = 32 << 20 })
	require.EqualValues(t, 4<<20, p.Limits().Memory)
	require.Equal(t, 100*time.Millisecond, p.Limits().CallTimeout, "the default is the operator's word too")
	_, m, err := p.CallMeasured(Wait{}, OpRequest, []byte{fills}, nil)
	require.NoError(t, err)
	require.EqualValues(t, 4<<20, m.Memory)
}
