package adapter_test

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/gateway/adapter"
	"github.com/interlock-gateway/interlock/gateway/openai"
)

// work is how many units the module of an adapter uses, which is the same on every machine: of a
// chat of 4 KiB the request, and the request with its answer; of the text of a stream an event that
// comes alone, and each of eight that come together. 0 is not measured.
type work struct{ request, call, event, eighth int64 }

// committed is what the modules used when somebody looked last. Whoever makes one dearer has to say
// so here, and whoever makes one cheaper too, so that it stays cheap.
var committed = map[string]work{
	"anthropic": {request: 12_033, call: 16_331, event: 825, eighth: 477},
	"azure":     {request: 13_952},
	"bedrock":   {request: 13_410},
	"gemini":    {request: 13_687},
	"mistral":   {request: 11_298},
	"echo-go":   {request: 11_997, call: 17_234, event: 485, eighth: 283},
	"echo-c":    {request: 14_326, call: 18_093, event: 219, eighth: 204},
}

// within is how far a figure may be off: another compiler makes a little more or less of it.
const within = 1.15

func TestWorkOfModules(t *testing.T) {
	if adapter.RaceDetector {
		t.Skip("it compiles modules, and looks at nothing in them")
	}
	whole := map[string]traffic{"anthropic": anthropicTraffic, "echo-go": echoTraffic("go"), "echo-c": echoTraffic("c")}
	for name, want := range committed {
		t.Run(name, func(t *testing.T) {
			of, all := whole[name]
			if !all {
				of = traffic{plugin: name, chat: anthropicTraffic.chat}
			}
			b := buildsOf(t, of)
			chat := b.chat(4 << 10)
			got := work{request: b.least(1, b.request(t, chat))}
			if all {
				got.call = b.least(1, b.exchange(t, chat))
				got.event = b.least(1, b.stream(t, 1))
				got.eighth = b.least(8, b.stream(t, 8))
			}
			t.Logf("%+v", got)
			near := func(what string, want, got int64) {
				t.Helper()
				if ratio := float64(got) / float64(max(want, 1)); want != got && (ratio > within || ratio < 1/within) {
					t.Errorf("%s: %d units, %d are committed: if that is meant, write it down", what, got, want)
				}
			}
			near("a request of 4 KiB", want.request, got.request)
			near("a request of 4 KiB and its answer", want.call, got.call)
			near("an event", want.event, got.event)
			near("an event of eight", want.eighth, got.eighth)
		})
	}
}

// least is what one of n parts of a call takes of the module when its collector does not run.
func (b *builds) least(n int64, call func(*adapter.Guest)) int64 {
	least := int64(0)
	for i := range 40 {
		b.work.units = 0
		if call(b.module); i == 0 || b.work.units < least {
			least = b.work.units
		}
	}
	return least / n
}

// A large image stays outside the guest: it costs the guest what one does that is just large
// enough for that, less than a small one that goes through it, and the host nothing but the result.
func TestWorkOfALargeImage(t *testing.T) {
	if adapter.RaceDetector {
		t.Skip("it compiles modules, and looks at nothing in them")
	}
	b := buildsOf(t, anthropicTraffic)
	inside := b.least(1, b.request(t, imageOf(20<<10)))
	outside := b.least(1, b.request(t, imageOf(40<<10)))
	large := imageOf(20 << 20)
	got := b.least(1, b.request(t, large))
	t.Log(inside, outside, got, "units")
	require.InEpsilon(t, outside, got, 0.02)
	require.Less(t, got, inside)

	c := callOf(large, false)
	defer c.Release()
	dst := make([]byte, 0, len(large)+4<<10)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	shaped, err := b.module.Request(dst, c)
	runtime.ReadMemStats(&after)
	require.NoError(t, err)
	require.Greater(t, len(shaped.Body), 20<<20)
	require.Same(t, &dst[:1][0], &shaped.Body[0], "it was not moved")
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(512<<10))
}

// A thousand streams share the instances of the module, and keep a state of some bytes each.
func TestWorkOfAThousandStreams(t *testing.T) {
	if adapter.RaceDetector {
		t.Skip("it compiles modules, and looks at nothing in them")
	}
	b := buildsOf(t, anthropicTraffic)
	const streams = 1000
	measure := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapInuse + m.StackInuse
	}
	before := measure()
	var calls [streams]*adapter.Call
	var decoders [streams]adapter.Events
	body := b.chat(200)
	head := []byte(b.head)
	delta := []byte(b.delta)
	var ev openai.Event
	feed := func(i int, what []byte) (heard int) {
		decoders[i].Feed(what)
		for {
			ok, err := decoders[i].Next(&ev)
			require.NoError(t, err)
			if !ok {
				return heard
			}
			heard++
		}
	}
	for i := range streams {
		calls[i] = callOf(body, true)
		_, err := b.module.Request(nil, calls[i])
		require.NoError(t, err)
		decoders[i] = b.module.Events(calls[i])
		feed(i, head)
	}
	for range 20 {
		for i := range streams {
			require.Equal(t, 1, feed(i, delta))
		}
	}
	used := measure() - before
	guests := uint64(b.work.memory) * uint64(max(2, runtime.GOMAXPROCS(0)))
	t.Logf("%d KiB a stream, and %d MiB of guests", used/streams>>10, guests>>20)
	require.Less(t, used+guests, uint64(250<<20))
	require.Less(t, used/streams, uint64(32<<10))
	for i := range streams {
		decoders[i].Release()
		calls[i].Release()
	}
}
