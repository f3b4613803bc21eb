package wasm

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"log/slog"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	. "github.com/interlock-gateway/interlock/gateway/wasm/wasmtest"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if goCacheDir != "" {
			_ = os.RemoveAll(goCacheDir)
		}
		os.Exit(code)
	}))
}

// manifest is a valid one, changed as a test needs it.
func manifest(change func(*Manifest)) []byte {
	m := Manifest{
		Name: "acme", Version: "1.0.0", ABI: "1.0", Kind: KindAdapter,
		Operations: []string{"request", "response", "events", "classify"},
		Endpoints:  []string{"chat_completions"},
	}
	if change != nil {
		change(&m)
	}
	text, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	return text
}

// What the guest does is chosen by the first byte of its input.
const (
	echoes = iota
	loops
	recurses      // endlessly
	branches      // recursion without end in sight, never deep
	fills         // grows its memory as far as it goes
	traps         // unreachable
	strays        // stores outside its memory
	claims        // a result of 1 GiB
	lies          // a result outside its memory
	garbles       // an error that is none
	refuses       // a proper error
	leaks         // a page at each call
	copies        // memory.copy in a loop
	divides       // by zero
	chases        // dependent loads over all its memory, for ever
	writes        // to standard output
	logs          // a line, thirty times
	wrongStatus   // an error with a status that is none
	overlongError // a message of 100,000 bytes
	exitsNow      // proc_exit
)

const (
	describeAt = 1024
	errorAt    = 32 << 10
	inputAt    = 64 << 10
)

type guest struct {
	manifest []byte
	imports  []Import
	pages    int
	abi      int32
	// configure runs for operation 0; it leaves an i64. nil: an empty result.
	configure []byte
	change    func(*Module)
}

func errorRecord(code, message, param string, status uint32) []byte {
	var b []byte
	for _, s := range []string{code, message, param} {
		b = append(binary.LittleEndian.AppendUint32(b, uint32(len(s))), s...)
	}
	return binary.LittleEndian.AppendUint32(b, status)
}

func packed(at, n int) []byte { return I64Const(int64(at)<<32 | int64(n)) }

func failing(at, n int) []byte { return I64Const(int64(uint64(1)<<63 | uint64(at)<<32 | uint64(n))) }

// module builds the guest.
func (g guest) module() []byte {
	if g.manifest == nil {
		g.manifest = manifest(nil)
	}
	if g.abi == 0 {
		g.abi = 1 << 16
	}
	if g.pages == 0 {
		g.pages = 4
	}
	described := append(binary.LittleEndian.AppendUint32(nil, uint32(len(g.manifest))), g.manifest...)
	proper := errorRecord(CodeUnsupportedParameter, "there is no logit_bias here", "logit_bias", 422)
	odd := errorRecord(CodeInternal, "x", "", 200)
	long := errorRecord(CodeBadRequest, string(make([]byte, 20_000)), "", 0)
	data := make([]byte, errorAt-describeAt)
	copy(data, described)
	data = append(data, proper...)
	oddAt := describeAt + len(data)
	data = append(data, odd...)
	longAt := describeAt + len(data)
	data = append(data, long...)

	first := uint32(len(g.imports))
	deep, twice := first+3, first+4
	configure := g.configure
	if configure == nil {
		configure = I64Const(0)
	}
	echo := Code(packed(inputAt, 0), Get(1), I64OfI32U, I64Or)
	var call []byte
	op := func(n int32, code ...any) { call = Code(call, Get(0), I32Const(n), 0x46, If(Code(code...), Return)) }
	op(int32(OpConfigure), configure)
	op(int32(OpDescribe), packed(describeAt, len(described)))
	do := func(n int32, code ...any) {
		call = Code(call, I32Const(inputAt), 0x2d, 0, 0, I32Const(n), 0x46, If(code...))
	}
	do(loops, Loop(Br(0)))
	do(recurses, I32Const(0), Call(deep), Drop)
	do(branches, I32Const(40), Call(twice))
	do(fills, Loop(I32Const(1), Grow, I32Const(-1), 0x47, BrIf(0)), echo, Return)
	do(traps, Unreachable)
	do(strays, I32Const(-4), I32Const(1), Store32(0))
	do(claims, packed(inputAt, 1<<30), Return)
	do(lies, packed(0x7ffffff0, 1000), Return)
	do(garbles, failing(inputAt, 3), Return)
	do(refuses, failing(errorAt, len(proper)), Return)
	do(wrongStatus, failing(oddAt, len(odd)), Return)
	do(overlongError, failing(longAt, len(long)), Return)
	do(leaks, I32Const(1), Grow, Drop, echo, Return)
	do(copies, Loop(I32Const(2*inputAt), I32Const(inputAt), I32Const(inputAt), Copy, Br(0)))
	do(divides, I32Const(1), I32Const(0), 0x6e, Drop)
	// A step of an odd multiplier and a mask visits words all over the memory.
	do(chases, Loop(
		Get(2), I32Const(1664525), I32Mul, I32Const(1013904223), I32Add, Tee(2),
		Pages, I32Const(16), 0x74, I32Const(1), I32Sub, I32Const(-4), I32And, I32And, Load32(0), Get(2), I32Add, Set(2), Br(0)))
	for i, f := range g.imports {
		switch f.Name {
		case hostLog:
			do(logs, I32Const(30), Set(2), Loop(
				I32Const(2), I32Const(inputAt), I32Const(100_000), Call(uint32(i)),
				Get(2), I32Const(1), I32Sub, Tee(2), BrIf(0)), echo, Return)
		case "fd_write": // one vector at 16: the input
			do(writes, I32Const(16), I32Const(inputAt), Store32(0), I32Const(20), Get(1), Store32(0),
				I32Const(1), I32Const(16), I32Const(1), I32Const(24), Call(uint32(i)), Drop, echo, Return)
		case exits:
			do(exitsNow, I32Const(3), Call(uint32(i)))
		}
	}
	call = Code(call, echo)

	m := Module{
		Imports: g.imports, Pages: g.pages, Data: data, DataAt: describeAt,
		Funcs: []Func{
			{Export: exportABI, Results: []byte{I32}, Body: I32Const(g.abi)},
			{Export: exportAlloc, Params: []byte{I32}, Results: []byte{I32}, Body: Code(
				// Grow to what is asked for and not there yet.
				Get(0), I32Const(inputAt), I32Add, I32Const(0xffff), I32Add, I32Const(16), 0x76, Tee(0),
				Pages, 0x4b, If(Get(0), Pages, I32Sub, Grow, I32Const(-1), 0x46, If(Unreachable)),
				I32Const(inputAt))},
			{Export: exportCall, Params: []byte{I32, I32}, Results: []byte{I64}, Locals: 2, Body: call},
			{Params: []byte{I32}, Results: []byte{I32}, Body: Code(Get(0), I32Const(1), I32Add, Call(deep), I32Const(1), I32Add)},
			{Params: []byte{I32}, Body: Code(Get(0), If(Get(0), I32Const(1), I32Sub, Call(twice), Get(0), I32Const(1), I32Sub, Call(twice)))},
		},
		Custom: map[string][]byte{manifestSection: g.manifest},
	}
	if g.change != nil {
		g.change(&m)
	}
	return m.Encode()
}

// host is a plugin under test and what was heard of it.
type host struct {
	*Plugin
	counted *counted
}

type counted struct {
	mu      sync.Mutex
	calls   map[string]int
	traps   int
	refused []string
}

func (c *counted) CountPluginCall(_, function string, _ time.Duration) {
	c.mu.Lock()
	c.calls[function]++
	c.mu.Unlock()
}

func (c *counted) CountPluginTrap() {
	c.mu.Lock()
	c.traps++
	c.mu.Unlock()
}

func (c *counted) CountPluginRefused(plugin, reason string) {
	c.mu.Lock()
	c.refused = append(c.refused, plugin+" "+reason)
	c.mu.Unlock()
}

func load(t testing.TB, g guest, change func(*Options)) host {
	t.Helper()
	c := &counted{calls: map[string]int{}}
	o := Options{Name: "acme", Module: g.module(), Metrics: c, Log: slog.New(slog.DiscardHandler), PoolSize: 2}
	if change != nil {
		change(&o)
	}
	p, err := Load(context.Background(), o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close(context.Background())) })
	return host{p, c}
}

// do calls with an input that begins with what the guest shall do.
func (h host) do(what byte, rest ...byte) ([]byte, error) {
	return h.Call(Wait{}, OpRequest, append([]byte{what}, rest...), nil)
}

func reason(t testing.TB, err error) Reason {
	t.Helper()
	var f *Failure
	require.ErrorAs(t, err, &f)
	require.Equal(t, "acme", f.Plugin)
	return f.Reason
}

// eventually waits for something that happens in the background.
func eventually(t testing.TB, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !is(); runtime.Gosched() {
		require.True(t, time.Now().Before(end), what)
	}
}
