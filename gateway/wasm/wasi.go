package wasm

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

const wasiModule = "wasi_snapshot_preview1"

// errno is an error number of WASI's.
type errno uint64

const (
	success     errno = 0
	errBadFile  errno = 8
	errAddress  errno = 21 // a bad address
	errInvalid  errno = 28
	errNoSystem errno = 52
	errDenied   errno = 76
)

var errExited = errors.New("the guest exited")

// hostFunction is a function that a guest may import. params has a letter for each parameter:
// i for i32, I for i64.
type hostFunction struct {
	params string
	run    func(i *instance, a []uint64) errno
}

func answer(e errno) func(*instance, []uint64) errno {
	return func(*instance, []uint64) errno { return e }
}

// wasi is what language runtimes ask for, all of it denied or harmless: no file, environment,
// argument or socket is behind it. Anything else of WASI's is refused when a module is loaded.
var wasi = map[string]hostFunction{
	"args_get":                {"ii", answer(success)},
	"args_sizes_get":          {"ii", none},
	"environ_get":             {"ii", answer(success)},
	"environ_sizes_get":       {"ii", none},
	"clock_res_get":           {"ii", clockResolution},
	"clock_time_get":          {"iIi", clockTime},
	"random_get":              {"ii", random},
	"sched_yield":             {"", answer(success)},
	"poll_oneoff":             {"iiii", poll},
	"fd_write":                {"iiii", write},
	"fd_fdstat_get":           {"ii", fileStatus},
	"fd_fdstat_set_flags":     {"ii", answer(success)},
	"fd_advise":               {"iIIi", answer(errBadFile)},
	"fd_allocate":             {"iII", answer(errBadFile)},
	"fd_close":                {"i", answer(errBadFile)},
	"fd_datasync":             {"i", answer(errBadFile)},
	"fd_fdstat_set_rights":    {"iII", answer(errBadFile)},
	"fd_filestat_get":         {"ii", answer(errBadFile)},
	"fd_filestat_set_size":    {"iI", answer(errBadFile)},
	"fd_filestat_set_times":   {"iIIi", answer(errBadFile)},
	"fd_pread":                {"iiiIi", answer(errBadFile)},
	"fd_prestat_get":          {"ii", answer(errBadFile)},
	"fd_prestat_dir_name":     {"iii", answer(errBadFile)},
	"fd_pwrite":               {"iiiIi", answer(errBadFile)},
	"fd_read":                 {"iiii", answer(errBadFile)},
	"fd_readdir":              {"iiiIi", answer(errBadFile)},
	"fd_renumber":             {"ii", answer(errBadFile)},
	"fd_seek":                 {"iIii", answer(errBadFile)},
	"fd_sync":                 {"i", answer(errBadFile)},
	"fd_tell":                 {"ii", answer(errBadFile)},
	"path_create_directory":   {"iii", answer(errDenied)},
	"path_filestat_get":       {"iiiii", answer(errDenied)},
	"path_filestat_set_times": {"iiiiIIi", answer(errDenied)},
	"path_link":               {"iiiiiii", answer(errDenied)},
	"path_open":               {"iiiiiIIii", answer(errDenied)},
	"path_readlink":           {"iiiiii", answer(errDenied)},
	"path_remove_directory":   {"iii", answer(errDenied)},
	"path_rename":             {"iiiiii", answer(errDenied)},
	"path_symlink":            {"iiiii", answer(errDenied)},
	"path_unlink_file":        {"iii", answer(errDenied)},
	"proc_raise":              {"i", answer(errNoSystem)},
	"sock_accept":             {"iii", answer(errDenied)},
	"sock_recv":               {"iiiiii", answer(errDenied)},
	"sock_send":               {"iiiii", answer(errDenied)},
	"sock_shutdown":           {"ii", answer(errDenied)},
}

// exits is the one function of WASI's without a result.
const exits = "proc_exit"

// provide builds the host's functions that a module imports, in the module's runtime.
func provide(ctx context.Context, r wazero.Runtime, imports map[string][]string) error {
	for module, names := range imports {
		b := r.NewHostModuleBuilder(module)
		for _, name := range names {
			params, results, call := hostCall(module, name)
			b.NewFunctionBuilder().WithGoModuleFunction(call, params, results).Export(name)
		}
		if _, err := b.Instantiate(ctx); err != nil {
			return err
		}
	}
	return nil
}

func hostCall(module, name string) (params, results []api.ValueType, call api.GoModuleFunc) {
	self := func(ctx context.Context) *instance { return ctx.Value(instanceKey{}).(*instance) }
	if module == hostModule {
		return valueTypes("iii"), nil, func(ctx context.Context, _ api.Module, a []uint64) { self(ctx).logLine(a) }
	}
	if name == exits {
		return valueTypes("i"), nil, func(context.Context, api.Module, []uint64) { panic(errExited) }
	}
	f := wasi[name]
	return valueTypes(f.params), valueTypes("i"), func(ctx context.Context, _ api.Module, a []uint64) {
		a[0] = uint64(f.run(self(ctx), a))
	}
}

func valueTypes(letters string) []api.ValueType {
	t := make([]api.ValueType, len(letters))
	for i, c := range letters {
		t[i] = api.ValueTypeI32
		if c == 'I' {
			t[i] = api.ValueTypeI64
		}
	}
	return t
}

func done(ok bool) errno {
	if ok {
		return success
	}
	return errAddress
}

// none says that there are no arguments and no variables.
func none(i *instance, a []uint64) errno {
	return done(i.memory.WriteUint32Le(uint32(a[0]), 0) && i.memory.WriteUint32Le(uint32(a[1]), 0))
}

// The clocks are coarse: a guest must not measure what others do, and a runtime that sees no
// time pass at all starves its own collector.
const clockStep = time.Millisecond

func clockResolution(i *instance, a []uint64) errno {
	if uint32(a[0]) > 1 {
		return errInvalid
	}
	return done(i.memory.WriteUint64Le(uint32(a[1]), uint64(clockStep)))
}

func clockTime(i *instance, a []uint64) errno {
	var now time.Duration
	switch uint32(a[0]) {
	case 0:
		now = time.Duration(time.Now().UnixNano())
	case 1:
		now = time.Duration(nanotime()) + time.Hour
	default:
		return errInvalid
	}
	return done(i.memory.WriteUint64Le(uint32(a[2]), uint64(now/clockStep*clockStep)))
}

const maxRandom = 64 << 10

// random is real: a guest's maps must not collide at a caller's wish.
func random(i *instance, a []uint64) errno {
	n := uint32(a[1])
	if n > maxRandom {
		return errInvalid
	}
	b, ok := i.memory.Read(uint32(a[0]), n)
	if !ok {
		return errAddress
	}
	_, _ = rand.Read(b) // never fails
	i.charge(int(n))
	return success
}

const maxPolled = 64

// poll answers that every clock has rung and that nothing else can be waited for: a guest does
// not sleep.
func poll(i *instance, a []uint64) errno {
	in, out, n := uint32(a[0]), uint32(a[1]), uint32(a[2])
	if n == 0 || n > maxPolled {
		return errInvalid
	}
	subscriptions, ok := i.memory.Read(in, n*48)
	if !ok {
		return errAddress
	}
	events, ok := i.memory.Read(out, n*32)
	if !ok {
		return errAddress
	}
	var all [maxPolled * 32]byte
	for k := range n {
		s, e := subscriptions[k*48:], all[k*32:]
		copy(e, s[:8])
		if e[10] = s[8]; s[8] != 0 {
			binary.LittleEndian.PutUint16(e[8:], uint16(errBadFile))
		}
	}
	copy(events, all[:])
	i.charge(int(n))
	return done(i.memory.WriteUint32Le(uint32(a[3]), n))
}

// fileStatus says that the three standard files are there, and no other.
func fileStatus(i *instance, a []uint64) errno {
	if uint32(a[0]) > 2 {
		return errBadFile
	}
	const characterDevice = 2
	status := [24]byte{characterDevice}
	return done(i.memory.Write(uint32(a[1]), status[:]))
}

const maxVectors = 1024

// write takes what is written to standard output and error: to the log where that was granted.
func write(i *instance, a []uint64) errno {
	if fd := uint32(a[0]); fd != 1 && fd != 2 {
		return errBadFile
	}
	n := uint32(a[2])
	if n > maxVectors {
		return errInvalid
	}
	vectors, ok := i.memory.Read(uint32(a[1]), n*8)
	if !ok {
		return errAddress
	}
	total := uint64(0)
	var line []byte
	for ; len(vectors) > 0; vectors = vectors[8:] {
		b, ok := i.memory.Read(binary.LittleEndian.Uint32(vectors), binary.LittleEndian.Uint32(vectors[4:]))
		if !ok {
			return errAddress
		}
		total += uint64(len(b))
		if i.plugin.granted[capabilityLog] && len(line) < maxLine {
			line = append(line, b[:min(len(b), maxLine-len(line))]...)
		}
		if i.plugin.keeps {
			i.said.write(b)
		}
	}
	i.wrote = i.wrote || total > 0 && !i.plugin.keeps && !i.plugin.granted[capabilityLog]
	i.charge(int(n) + len(line))
	if len(line) > 0 {
		i.print(levelDebug, line)
	}
	if total > 1<<31-1 {
		return errInvalid
	}
	return done(i.memory.WriteUint32Le(uint32(a[3]), uint32(total)))
}
