package adapter_test

import (
	"slices"
	"testing"
	"time"

	"github.com/interlock-gateway/interlock/gateway/adapter"
)

// BenchmarkAdded runs the native build and the module of an adapter in turn on the same traffic.
// It reports what the fastest tenth of the calls took of each, which a busy machine changes
// little: native-ns, wasm-ns, and the difference, added-ns, which is what the sandbox costs; and
// the work in the guest, which is the same on every machine. ns/op is no figure of interest: it
// is both together.
func BenchmarkAdded(b *testing.B) {
	for _, of := range []traffic{anthropicTraffic, echoTraffic("go"), echoTraffic("c")} {
		b.Run(of.plugin, func(b *testing.B) {
			all := buildsOf(b, of)
			b.Run("call=4KiB", func(b *testing.B) { pairs(b, all, 1, all.exchange(b, all.chat(4<<10))) })
			b.Run("request=4KiB", func(b *testing.B) { pairs(b, all, 1, all.request(b, all.chat(4<<10))) })
			b.Run("request=64KiB", func(b *testing.B) { pairs(b, all, 1, all.request(b, all.chat(64<<10))) })
			b.Run("events=1", func(b *testing.B) { pairs(b, all, 1, all.stream(b, 1)) })
			b.Run("events=8", func(b *testing.B) { pairs(b, all, 8, all.stream(b, 8)) })
		})
	}
}

// BenchmarkImage is a prompt with an image that stays outside the guest.
func BenchmarkImage(b *testing.B) {
	all := buildsOf(b, anthropicTraffic)
	b.Run("20KiB", func(b *testing.B) { pairs(b, all, 1, all.request(b, imageOf(20<<10))) })
	b.Run("40KiB", func(b *testing.B) { pairs(b, all, 1, all.request(b, imageOf(40<<10))) })
	b.Run("20MiB", func(b *testing.B) { pairs(b, all, 1, all.request(b, imageOf(20<<20))) })
}

// pairs times both builds; each call does n of what is reported.
func pairs(b *testing.B, of *builds, n int, call func(*adapter.Guest)) {
	for range 20 { // buffers grow
		call(of.native)
		call(of.module)
	}
	var native, module []time.Duration
	of.work.units, of.work.calls = 0, 0
	b.ReportAllocs()
	for b.Loop() {
		began := time.Now()
		call(of.native)
		between := time.Now()
		call(of.module)
		native, module = append(native, between.Sub(began)), append(module, time.Since(between))
	}
	fast := func(all []time.Duration) float64 {
		slices.Sort(all)
		return float64(all[len(all)/10]) / float64(n)
	}
	b.ReportMetric(fast(native), "native-ns")
	b.ReportMetric(fast(module), "wasm-ns")
	b.ReportMetric(fast(module)-fast(native), "added-ns")
	b.ReportMetric(float64(of.work.units)/float64(len(module)*n), "units")
}
