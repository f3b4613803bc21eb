package wasm

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/interlock-gateway/interlock/gateway/wasm/meter"
)

const (
	recycleCalls = 100_000
	leastBuffer  = 16 << 10
)

// instance is one guest. One goroutine at a time uses it.
type instance struct {
	plugin *Plugin
	module api.Module
	memory api.Memory
	ctx    context.Context // names the instance to the host's functions
	alloc  api.Function
	call   api.Function

	slice, budget api.MutableGlobal
	depth         api.Global
	watched       watched

	buffer, room uint32 // the guest's buffer for input
	born         uint32 // bytes of memory when it was ready
	calls        int
	lines        int  // logged in this call
	wrote        bool // something in this call that nobody keeps
	said         output
	used         int64
	stack        [2]uint64
}

type instanceKey struct{}

var (
	errFault = errors.New("the engine failed")
	errDeep  = errors.New("its calls are nested too deep")
)

// instantiate makes an instance whose memory is laid out, but in which nothing has run.
func (p *Plugin) instantiate() (i *instance, err error) {
	defer func() {
		if caught := recover(); caught != nil { // a fault of the engine's, or no memory
			i, err = nil, fmt.Errorf("%w: %v", errFault, caught)
		}
	}()
	ctx := experimental.WithMemoryAllocator(context.Background(), experimental.MemoryAllocatorFunc(newMemory))
	m, err := p.code.runtime.InstantiateModule(ctx, p.code.module, wazero.NewModuleConfig().WithName("").WithStartFunctions())
	if err != nil {
		return nil, err
	}
	i = &instance{
		plugin: p, module: m, memory: m.Memory(),
		alloc:  m.ExportedFunction(exportAlloc),
		call:   m.ExportedFunction(exportCall),
		slice:  m.ExportedGlobal(meter.SliceGlobal).(api.MutableGlobal),
		budget: m.ExportedGlobal(meter.BudgetGlobal).(api.MutableGlobal),
		depth:  m.ExportedGlobal(meter.DepthGlobal),
	}
	i.watched.kill = m.ExportedGlobal(meter.KillGlobal).(api.MutableGlobal)
	i.ctx = context.WithValue(context.Background(), instanceKey{}, i)
	watcher.add(&i.watched)
	return i, nil
}

// close frees the instance. Nothing of it may be running.
func (i *instance) close() {
	watcher.remove(&i.watched)
	_ = i.module.Close(context.Background()) // it has no files to close, the only thing that can fail
}

// worn says that the instance is to be replaced: guests leak.
func (i *instance) worn() bool {
	size := i.memory.Size()
	return i.calls >= recycleCalls || size > i.born && uint64(size) >= uint64(i.plugin.limits.Memory)/4*3
}

// allow gives the guest a budget for what comes.
func (i *instance) allow(budget int64) {
	first := min(budget, meter.Slice)
	i.slice.Set(uint64(first))
	i.budget.Set(uint64(budget - first))
}

// charge takes units for work that the host did for the guest.
func (i *instance) charge(units int) { i.slice.Set(i.slice.Get() - uint64(units)) }

// spent is what is used of a budget.
func (i *instance) spent(budget int64) int64 {
	left := int64(i.budget.Get())
	if left < 0 {
		return budget
	}
	return min(budget, budget-left-int64(i.slice.Get()))
}

// invoke runs one function of the guest under the watcher.
func (i *instance) invoke(f api.Function, wall time.Duration, stack []uint64) error {
	until := i.watched.begin(wall)
	err := f.CallWithStack(i.ctx, stack)
	inTime := i.watched.end(until)
	if err == nil && inTime {
		return nil
	}
	return i.stopped(err, inTime)
}

// stopped says why a guest did not come back as it should.
func (i *instance) stopped(err error, inTime bool) error {
	f := &Failure{Plugin: i.plugin.name, Reason: Trapped, Said: i.said.text()}
	switch {
	case !inTime:
		f.Reason = Killed
	case int64(i.budget.Get()) < 0:
		f.Reason = Exhausted
	}
	if f.Reason != Trapped {
		return f
	}
	if i.depth.Get() > meter.StackWords {
		f.Err = errDeep
		return f
	}
	text, trace, _ := strings.Cut(err.Error(), "\n")
	i.plugin.log.Debug("plugin trapped", "plugin", i.plugin.name, "trap", text, "trace", clean(trace, maxMessage))
	f.Err = errors.New(clean(strings.TrimSuffix(text, " (recovered by wazero)"), maxMessage) + i.wherePanic())
	return f
}

// wherePanic says where what the guest wrote before it trapped can be read: not in an error of the
// gateway's, since it may quote a prompt.
func (i *instance) wherePanic() string {
	switch {
	case i.wrote:
		return "; what it wrote is not kept: see it with `interlock plugin test`, or grant it log"
	case i.lines > 0 && i.plugin.granted[capabilityLog]:
		return "; what it wrote is in the log, at level debug"
	}
	return ""
}

func (i *instance) malformed(format string, args ...any) error {
	return i.plugin.pool.fail(Malformed, fmt.Errorf(format, args...))
}

// do is one call: bytes in, bytes out, appended to dst. The error is a *GuestError or a *Failure.
func (i *instance) do(op Op, in, dst []byte, budget int64, wall time.Duration) ([]byte, error) {
	i.calls++
	i.lines, i.wrote = 0, false
	i.said.reset()
	i.allow(budget)
	out, err := i.exchange(op, in, dst, wall)
	i.used = i.spent(budget)
	return out, err
}

func (i *instance) exchange(op Op, in, dst []byte, wall time.Duration) ([]byte, error) {
	if uint64(len(in)) > uint64(i.room) || i.room == 0 {
		if err := i.reserve(len(in), wall); err != nil {
			return dst, err
		}
	}
	if !i.memory.Write(i.buffer, in) {
		return dst, i.malformed("its buffer lies outside its memory")
	}
	i.stack = [2]uint64{uint64(op), uint64(len(in))}
	if err := i.invoke(i.call, wall, i.stack[:]); err != nil {
		return dst, err
	}
	result := i.stack[0]
	at, size := uint32(result>>32)&0x7fffffff, uint32(result)
	if uint64(size) > maxResult(len(in)) {
		return dst, i.plugin.pool.fail(Oversized, fmt.Errorf("%d bytes for an input of %d", size, len(in)))
	}
	out, ok := i.memory.Read(at, size)
	if !ok {
		return dst, i.malformed("its result lies outside its memory")
	}
	if result>>63 == 0 {
		return append(dst, out...), nil
	}
	guestErr, err := decodeError(out)
	if err != nil {
		return dst, i.malformed("%w", err)
	}
	return dst, guestErr
}

// reserve has the guest make a buffer for n bytes of input.
func (i *instance) reserve(n int, wall time.Duration) error {
	want := max(n, leastBuffer)
	i.stack[0] = uint64(want)
	i.buffer, i.room = 0, 0
	if err := i.invoke(i.alloc, wall, i.stack[:1]); err != nil {
		return err
	}
	at := uint32(i.stack[0])
	if uint64(at)+uint64(want) > uint64(i.memory.Size()) {
		return i.malformed("its buffer lies outside its memory")
	}
	i.buffer, i.room = at, uint32(want)
	return nil
}
