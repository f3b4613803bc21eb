package meter_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/interlock-gateway/interlock/gateway/wasm/meter"
	. "github.com/interlock-gateway/interlock/gateway/wasm/wasmtest"
)

// running is an instance of a module, rewritten or not.
type running struct {
	module                api.Module
	slice, budget, killed api.MutableGlobal
}

const plenty = 1 << 40

var engine = wazero.NewRuntimeConfig().WithCoreFeatures(api.CoreFeaturesV2).WithMemoryLimitPages(256)

func instantiate(t testing.TB, wasm []byte) *running {
	ctx := context.Background()
	r := wazero.NewRuntimeWithConfig(ctx, engine)
	t.Cleanup(func() { require.NoError(t, r.Close(ctx)) })
	_, err := r.NewHostModuleBuilder("host").NewFunctionBuilder().
		WithFunc(func(uint32) uint32 { return 7 }).Export("seven").Instantiate(ctx)
	require.NoError(t, err)
	m, err := r.InstantiateWithConfig(ctx, wasm, wazero.NewModuleConfig().WithStartFunctions())
	require.NoError(t, err)
	return wrap(m)
}

func wrap(m api.Module) *running {
	v := &running{module: m}
	if g := m.ExportedGlobal(meter.BudgetGlobal); g != nil {
		v.budget = g.(api.MutableGlobal)
		v.slice = m.ExportedGlobal(meter.SliceGlobal).(api.MutableGlobal)
		v.killed = m.ExportedGlobal(meter.KillGlobal).(api.MutableGlobal)
	}
	return v
}

// metered rewrites a module and runs it.
func metered(t testing.TB, m Module) *running {
	w, err := meter.Rewrite(m.Encode(), meter.DefaultLimits())
	require.NoError(t, err)
	return instantiate(t, w.Code)
}

// call gives a budget, calls, and says what was used of it.
func (r *running) call(budget int64, name string, args ...uint64) (uint64, int64, error) {
	first := min(budget, meter.Slice)
	if r.slice != nil {
		r.slice.Set(uint64(first))
		r.budget.Set(uint64(budget - first))
	}
	out, err := r.module.ExportedFunction(name).Call(context.Background(), args...)
	used := int64(0)
	if r.slice != nil {
		used = budget - int64(r.slice.Get()) - int64(r.budget.Get())
	}
	if len(out) == 0 {
		return 0, used, err
	}
	return out[0], used, err
}

// counting increments the word at 0 at each turn.
var counting = Code(I32Const(0), I32Const(0), Load32(0), I32Const(1), I32Add, Store32(0))

// within checks that the work which ran is no more than the budget: a turn counts itself, then works.
func within(t *testing.T, m Module, perTurn int64) {
	r := metered(t, m)
	for _, budget := range []int64{1, 100, meter.Slice - 1, meter.Slice, meter.Slice + 1, 3*meter.Slice + 17, 1_000_000} {
		r.module.Memory().WriteUint32Le(0, 0)
		_, _, err := r.call(budget, "f")
		require.Error(t, err)
		require.Negative(t, int64(r.budget.Get()), "budget %d", budget)
		turns, _ := r.module.Memory().ReadUint32Le(0)
		require.LessOrEqual(t, (int64(turns)-1)*perTurn, budget, "budget %d", budget)
		require.GreaterOrEqual(t, int64(turns)*(perTurn+8), min(budget-meter.Slice, budget/2)-10*perTurn, "budget %d", budget)
	}
}

func TestALoopStaysWithinItsBudget(t *testing.T) {
	within(t, Module{Pages: 1, Funcs: []Func{{Export: "f", Body: Loop(counting, Br(0))}}}, 1)
}

func TestRecursionStaysWithinItsBudget(t *testing.T) {
	// Twofold recursion of depth 30: it would go on for long, and has no loop.
	within(t, Module{Pages: 1, Funcs: []Func{
		{Export: "f", Body: Code(I32Const(30), Call(1))},
		{Params: []byte{I32}, Body: Code(counting, Get(0), If(
			Get(0), I32Const(1), I32Sub, Call(1), Get(0), I32Const(1), I32Sub, Call(1)))},
	}}, 1)
}

func TestWorkByLengthStaysWithinItsBudget(t *testing.T) {
	for name, op := range map[string][]byte{
		"fill": Code(I32Const(64), I32Const(1), I32Const(1<<16), Fill),
		"copy": Code(I32Const(64), I32Const(128), I32Const(1<<16), Copy),
		"init": Code(I32Const(64), I32Const(0), I32Const(1<<16), 0xfc, 8, 0, 0),
	} {
		t.Run(name, func(t *testing.T) {
			within(t, Module{
				Pages: 4, Passive: make([]byte, 1<<16), Funcs: []Func{{Export: "f", Body: Loop(counting, op, Br(0))}},
			}, 1<<16/64)
		})
	}
}

func TestGrowingStaysWithinItsBudget(t *testing.T) {
	within(t, Module{Pages: 1, Funcs: []Func{{Export: "f", Body: Loop(counting, I32Const(0), Grow, Drop, Br(0))}}}, meter.GrowCost)
}

func TestTablesAreChargedByLength(t *testing.T) {
	r := metered(t, Module{Pages: 1, Table: 4096, Funcs: []Func{
		{Export: "fill", Body: Code(I32Const(0), 0xd0, 0x70, I32Const(4096), 0xfc, 17, 0)},
		{Export: "copy", Body: Code(I32Const(0), I32Const(1), I32Const(4000), 0xfc, 14, 0, 0)},
		{Export: "grow", Body: Code(0xd0, 0x70, I32Const(8000), 0xfc, 15, 0, Drop)},
		{Export: "init", Body: Code(I32Const(0), I32Const(0), I32Const(0), 0xfc, 12, 0, 0)},
	}})
	for name, units := range map[string]int64{"fill": 4096 / 8, "copy": 4000 / 8, "grow": 8000 / 8, "init": 0} {
		_, used, err := r.call(plenty, name)
		require.NoError(t, err)
		require.Equal(t, units+1, used, name)
	}
}

func TestLengthIsChargedBeforeTheWork(t *testing.T) {
	r := metered(t, Module{Pages: 200, Funcs: []Func{{
		Export: "f",
		Body:   Code(I32Const(0), I32Const(7), I32Const(100<<16), Fill),
	}}})
	_, _, err := r.call(50_000, "f")
	require.ErrorContains(t, err, "unreachable")
	b, _ := r.module.Memory().ReadByte(0)
	require.Zero(t, b, "nothing was filled")
	_, used, err := r.call(plenty, "f")
	require.NoError(t, err)
	require.EqualValues(t, 100<<16/64+1, used)
}

func TestCallsOutAreCharged(t *testing.T) {
	r := metered(t, Module{
		Imports: []Import{{Module: "host", Name: "seven", Params: []byte{I32}, Results: []byte{I32}}}, Pages: 1,
		Funcs: []Func{{Export: "f", Results: []byte{I32}, Body: Code(I32Const(1), Call(0))}},
	})
	v, used, err := r.call(plenty, "f")
	require.NoError(t, err)
	require.EqualValues(t, 7, v)
	require.EqualValues(t, meter.ImportCost+1, used)
}

// However a body jumps about, what it executes is charged at least once in two stretches.
func TestNoPathAvoidsItsCharge(t *testing.T) {
	work := Repeat(10, Get(0), I32Const(3), I32Add, Set(0)) // weighs 10
	const pieces = 120
	for name, piece := range map[string][]byte{
		"straight":                         work,
		"jumping over the rest of a block": Block(work, I32Const(1), BrIf(0), Repeat(40, work)),
		"jumping by a table":               Block(Block(work, I32Const(1), 0x0e, 1, 0, 1, Repeat(9, work))),
		"one arm of an if":                 Code(I32Const(1), 0x04, 0x40, work, Else, Repeat(9, work), End),
		"the other arm":                    Code(I32Const(0), 0x04, 0x40, Repeat(9, work), Else, work, End),
		"an if without else":               Code(work, I32Const(0), 0x04, 0x40, Repeat(9, work), End),
		"dead code in between":             Block(work, Br(0), Repeat(9, work)),
		"loops that do not loop":           Loop(work),
		"a loop's table": Code(I32Const(0), Set(1), Loop(
			Block(Block(Get(1), 0x0e, 1, 0, 1), work, I32Const(1), Set(1), Br(1), Repeat(9, work)))),
	} {
		t.Run(name, func(t *testing.T) {
			r := metered(t, Module{Pages: 1, Funcs: []Func{{
				Export: "f", Params: []byte{I32}, Results: []byte{I32}, Locals: 1, Body: Code(Repeat(pieces, piece), Get(0)),
			}}})
			v, used, err := r.call(plenty, "f", 1)
			require.NoError(t, err)
			require.EqualValues(t, 1+pieces*10*3, v, "each piece ran its work once")
			require.GreaterOrEqual(t, used, int64(pieces*10/(2*meter.Stretch)))
		})
	}
}

func TestAKilledGuestStopsAtTheEndOfItsSlice(t *testing.T) {
	r := metered(t, Module{Pages: 1, Funcs: []Func{{Export: "f", Body: Loop(counting, Br(0))}}})
	r.killed.Set(1)
	_, used, err := r.call(plenty, "f")
	require.ErrorContains(t, err, "unreachable")
	require.LessOrEqual(t, used, int64(2*meter.Slice))
	require.Positive(t, int64(r.budget.Get()), "it was not the budget")
}

func TestEndlessRecursionIsShallow(t *testing.T) {
	for name, locals := range map[string]int{"small frames": 0, "large frames": 2000} {
		t.Run(name, func(t *testing.T) {
			// A sum over all that is live keeps it in the frame.
			keep := I32Const(0)
			for i := range locals {
				keep = Code(keep, Get(uint32(i+1)), I32Add)
			}
			fillLocals := []byte{}
			for i := range locals {
				fillLocals = Code(fillLocals, Get(0), I32Const(int32(i)), I32Add, Set(uint32(i+1)))
			}
			r := metered(t, Module{Pages: 1, Funcs: []Func{
				{
					Export: "f", Params: []byte{I32}, Results: []byte{I32}, Locals: locals,
					Body: Code(counting, fillLocals, Get(0), I32Const(1), I32Add, Call(0), keep, I32Add),
				},
			}})
			before := time.Now()
			_, _, err := r.call(plenty, "f", 0)
			t.Log(time.Since(before))
			require.ErrorContains(t, err, "unreachable")
			require.Greater(t, r.module.ExportedGlobal(meter.DepthGlobal).Get(), uint64(meter.StackWords))
			turns, _ := r.module.Memory().ReadUint32Le(0)
			require.Less(t, turns, uint32(200_000))
			require.Greater(t, turns, uint32(500))
			t.Log(turns, "calls")
		})
	}
}

// Every way out of a function gives its frame back.
func TestTheStackIsGivenBack(t *testing.T) {
	two := []byte{I32, I64}
	pair := Code(Get(0), I64Const(5))
	r := metered(t, Module{Pages: 1, Funcs: []Func{
		{Export: "leaf", Body: Code(I32Const(1), If(0x0f))},
		{Export: "falls", Params: []byte{I32}, Results: two, Body: Code(Call(0), pair)},
		{Export: "returns", Params: []byte{I32}, Results: two, Body: Code(Call(0), Block(Loop(pair, 0x0f)), Unreachable)},
		{Export: "jumps", Params: []byte{I32}, Results: two, Body: Code(Call(0), Block(pair, Br(1)), Unreachable)},
		{Export: "jumps if", Params: []byte{I32}, Results: two, Body: Code(Call(0), pair, Get(0), BrIf(0), Drop, Drop, pair)},
		{Export: "jumps by table", Params: []byte{I32}, Results: []byte{I32}, Body: Code(Call(0), Get(0), Get(0), 0x0e, 0, 0)},
	}})
	for _, name := range []string{"leaf", "falls", "returns", "jumps", "jumps if", "jumps by table"} {
		args := []uint64{7}
		if name == "leaf" {
			args = nil
		}
		v, _, err := r.call(plenty, name, args...)
		require.NoError(t, err, name)
		if args != nil {
			require.EqualValues(t, 7, v)
		}
		require.Zero(t, r.module.ExportedGlobal(meter.DepthGlobal).Get(), name)
	}
}

func TestWithoutABudgetNothingRuns(t *testing.T) {
	m, err := meter.Rewrite(returning(I32Const(1)).Encode(), meter.DefaultLimits())
	require.NoError(t, err)
	_, err = instantiate(t, m.Code).module.ExportedFunction("f").Call(context.Background())
	require.Error(t, err)
}

func TestWideFunctionsPayForTheirLocals(t *testing.T) {
	body := func(locals int) Module {
		return Module{Pages: 1, Funcs: []Func{{
			Export: "f", Locals: locals,
			Body: Repeat(100, I32Const(1), If(I32Const(1), Drop)),
		}}}
	}
	_, narrow, err := metered(t, body(10)).call(plenty, "f")
	require.NoError(t, err)
	_, wide, err := metered(t, body(5000)).call(plenty, "f")
	require.NoError(t, err)
	require.Greater(t, wide, 20*narrow)
}
