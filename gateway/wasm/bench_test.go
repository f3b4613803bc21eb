package wasm

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestACallAllocatesNothing(t *testing.T) {
	h := load(t, guest{}, nil)
	in := append([]byte{echoes}, make([]byte, 4000)...)
	dst := make([]byte, 0, 8192)
	// The counter of the tests has a lock and a map: nothing of it is allocated either.
	for _, op := range []Op{OpRequest, OpEvents} {
		allocs := testing.AllocsPerRun(200, func() {
			out, err := h.Call(Wait{}, op, in, dst[:0])
			if err != nil || len(out) != len(in) {
				t.Fatal(err)
			}
		})
		require.Zero(t, allocs, op.String())
	}
}

func BenchmarkCall(b *testing.B) {
	for name, size := range map[string]int{"empty": 1, "4KiB": 4096} {
		b.Run(name, func(b *testing.B) {
			h := load(b, guest{}, func(o *Options) { o.Metrics = nil })
			in, dst := make([]byte, size), make([]byte, 0, 8192)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := h.Call(Wait{}, OpEvents, in, dst[:0]); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkUnits says how many units compiled code works off in a millisecond.
func BenchmarkUnits(b *testing.B) {
	body := strings.Repeat(`{"role":"user","content":"Some text of a caller, with \"quotes\" in it."},`, 1000)
	for name, in := range map[string]string{"scan": "j" + body, "garbage": "g" + body[:2000], "echo": "e" + body} {
		b.Run("go "+name, func(b *testing.B) {
			h := loadGo(b, func(o *Options) { o.Metrics = nil })
			measure(b, h, in)
		})
	}
	for name, what := range map[string]byte{"loop": loops, "recursion": branches, "copies": copies, "loads": chases} {
		b.Run("hand-made "+name, func(b *testing.B) {
			h := load(b, guest{}, func(o *Options) { o.Metrics = nil })
			i, err := h.pool.acquire(true, Wait{})
			require.NoError(b, err)
			defer h.pool.give(i, true, broken)
			const budget = 4_000_000
			for b.Loop() {
				_, err := i.do(OpRequest, []byte{what}, nil, budget, wallFactor*startTime)
				require.Equal(b, Exhausted, reason(b, err))
				i.stack, i.calls = [2]uint64{}, 0
				i.rewind()
			}
			b.ReportMetric(budget/(b.Elapsed().Seconds()*1000/float64(b.N)), "units/ms")
		})
	}
}

// rewind lets an instance be used again after it was stopped, which only a test does.
func (i *instance) rewind() { i.depth.(interface{ Set(uint64) }).Set(0) }

func measure(b *testing.B, h host, in string) {
	var used int64
	dst := make([]byte, 0, 1<<20)
	for b.Loop() {
		_, m, err := h.CallMeasured(Wait{}, OpGuardEvents, []byte(in), dst)
		require.NoError(b, err)
		used += m.Units
	}
	b.ReportMetric(float64(used)/(b.Elapsed().Seconds()*1000), "units/ms")
	b.ReportMetric(float64(used)/float64(b.N), "units/op")
}
