package meter_test

import (
	"context"
	"hash/crc32"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"

	"github.com/interlock-gateway/interlock/gateway/wasm/meter"
	. "github.com/interlock-gateway/interlock/gateway/wasm/wasmtest"
)

// seeds are valid modules that between them have everything the rewriting looks at.
func seeds() [][]byte {
	all := [][]byte{
		{},
		[]byte("\x00asm\x01\x00\x00\x00"),
		returning(I32Const(1)).Encode(),
		Module{
			Imports: []Import{{Module: "host", Name: "seven", Params: []byte{I32}, Results: []byte{I32}}},
			Pages:   1, Table: 3, Globals: 2, Data: []byte("data"), Passive: []byte("passive"),
			Custom: map[string][]byte{"name": {0, 1, 2}},
			Funcs: []Func{
				{Export: "f", Params: []byte{I32}, Results: []byte{I32}, Locals: 3, Body: Code(Get(0), Call(0))},
				{Body: Code(Block(Loop(I32Const(1), BrIf(1), Br(0))), 0xfd, 12, make([]byte, 16), Drop)},
			},
		}.Encode(),
	}
	for n := range uint64(6) {
		all = append(all, makeProgram(choices(n)).Encode())
	}
	return all
}

func choices(seed uint64) []byte {
	r := rand.New(rand.NewPCG(seed, 1))
	b := make([]byte, 800)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

// compiles says whether the engine takes a module. It is asked only about modules that were
// admitted: it allocates what a broken one claims.
func compiles(t testing.TB, wasm []byte) error {
	ctx := context.Background()
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter().WithMemoryLimitPages(1024))
	defer func() { require.NoError(t, r.Close(ctx)) }()
	_, err := r.CompileModule(ctx, wasm)
	return err
}

func holds(t *testing.T, wasm []byte) bool {
	before := time.Now()
	m, err := meter.Rewrite(wasm, meter.DefaultLimits())
	require.Less(t, time.Since(before), 5*time.Second)
	if err != nil {
		require.IsType(t, &meter.Error{}, err)
		return false
	}
	require.LessOrEqual(t, len(m.Code), 24*len(wasm)+1000)
	if compiles(t, wasm) == nil {
		require.NoError(t, compiles(t, m.Code), "the module compiles, the rewritten one must too")
	}
	return true
}

func FuzzRewrite(f *testing.F) {
	for _, s := range seeds() {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, wasm []byte) { holds(t, wasm) })
}

// same runs a program with and without counting. It returns the units that the first run took,
// or zero where it trapped.
func same(t *testing.T, choices []byte) (units int64) {
	wasm := makeProgram(choices).Encode()
	m, err := meter.Rewrite(wasm, meter.DefaultLimits())
	require.NoError(t, err)
	plain, counted := instantiate(t, wasm), instantiate(t, m.Code)
	for _, in := range []uint64{0, 1, 77, 0xffffffff} {
		const budget = 2_000_000 // loops in loops in calls in loops can go on for years
		got, used, gotErr := counted.call(budget, "f", in, 3)
		require.LessOrEqual(t, used, int64(budget+meter.Slice))
		if int64(counted.budget.Get()) < 0 {
			require.Error(t, gotErr)
			return units
		}
		want, _, wantErr := plain.call(plenty, "f", in, 3)
		if wantErr != nil {
			require.Error(t, gotErr)
			require.Equal(t, firstLine(wantErr), firstLine(gotErr))
		} else {
			require.NoError(t, gotErr)
			units = max(units, used)
		}
		require.Equal(t, want, got)
		require.Equal(t, memory(plain), memory(counted))
		require.Positive(t, used)

		if wantErr != nil {
			return units // what follows a trap is nobody's business
		}
	}
	return units
}

func FuzzSameResults(f *testing.F) {
	for n := range uint64(8) {
		f.Add(choices(n))
	}
	f.Fuzz(func(t *testing.T, choices []byte) {
		if len(choices) > 4000 {
			t.Skip("longer ones make the same programs")
		}
		same(t, choices)
	})
}

func TestManyProgramsHaveTheSameResults(t *testing.T) {
	worked := 0
	for n := range uint64(150) {
		if same(t, choices(1000+n)) > 100 {
			worked++
		}
	}
	require.Greater(t, worked, 20, "the programs do something")
}

func TestMutatedModulesAreRefusedOrSound(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	accepted := 0
	for _, seed := range seeds()[2:] {
		for range 300 {
			b := append([]byte(nil), seed...)
			for range 1 + r.IntN(4) {
				b[r.IntN(len(b))] = byte(r.Uint32())
			}
			if holds(t, b) {
				accepted++
			}
		}
	}
	require.Greater(t, accepted, 200, "the mutants reach the code")
}

func firstLine(err error) string {
	for i, c := range err.Error() {
		if c == '\n' {
			return err.Error()[:i]
		}
	}
	return err.Error()
}

func memory(r *running) uint32 {
	b, _ := r.module.Memory().Read(0, r.module.Memory().Size())
	return crc32.ChecksumIEEE(b)
}
