package wasm

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	. "github.com/interlock-gateway/interlock/gateway/wasm/wasmtest"
)

// book is a log that a test can read.
type book struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *book) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *book) logger() *slog.Logger {
	return slog.New(slog.NewJSONHandler(b, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

type entry struct {
	Level, Msg, Plugin, Line string
	Dropped                  int
}

// lines returns what guests logged.
func (b *book) lines(t *testing.T) (all []entry) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for line := range strings.Lines(b.b.String()) {
		var e entry
		require.NoError(t, json.Unmarshal([]byte(line), &e))
		if e.Msg == "plugin log" {
			all = append(all, e)
		}
	}
	return all
}

func fdWrite() Import {
	return Import{Module: wasiModule, Name: "fd_write", Params: []byte{I32, I32, I32, I32}, Results: []byte{I32}}
}

func TestALogIsCapped(t *testing.T) {
	var b book
	h := load(t, guest{imports: []Import{logImport()}, manifest: manifest(wantsLog)}, func(o *Options) {
		o.Grants = []string{capabilityLog}
		o.Log = b.logger()
	})
	_, err := h.do(logs, []byte(" first\nsecond\x1b[31m\xff")...)
	require.NoError(t, err)
	lines := b.lines(t)
	require.Len(t, lines, maxLines)
	for _, l := range lines {
		require.Equal(t, "WARN", l.Level)
		require.Equal(t, "acme", l.Plugin)
		require.Less(t, len(l.Line), 3*maxLine)
		require.True(t, strings.HasPrefix(l.Line[1:], " first\nsecond [31m\uFFFD"), "%q", l.Line[:40])
	}
	// The plugin's lines are few, however many calls it has.
	for range 100 {
		_, err := h.do(logs)
		require.NoError(t, err)
	}
	require.LessOrEqual(t, len(b.lines(t)), linesAtOnce+10*linesPerSecond)
	h.lines.mu.Lock()
	h.lines.tokens = 1
	dropped := h.lines.dropped
	h.lines.mu.Unlock()
	require.Positive(t, dropped)
	_, err = h.do(logs)
	require.NoError(t, err)
	found := 0
	for _, l := range b.lines(t) {
		found = max(found, l.Dropped)
	}
	require.GreaterOrEqual(t, found, dropped, "the next line says how many were dropped")
}

func TestStandardOutputIsDiscardedUnlessLogIsGranted(t *testing.T) {
	for _, granted := range []bool{false, true} {
		var b book
		h := load(t, guest{imports: []Import{fdWrite()}}, func(o *Options) {
			o.Log = b.logger()
			if granted {
				o.Grants = []string{capabilityLog}
			}
		})
		out, err := h.do(writes, []byte("hello\n")...)
		require.NoError(t, err)
		require.Len(t, out, 7)
		if !granted {
			require.Empty(t, b.lines(t))
			continue
		}
		require.Equal(t, []entry{{"DEBUG", "plugin log", "acme", " hello", 0}}, b.lines(t))
	}
}

func TestExitingIsATrap(t *testing.T) {
	h := load(t, guest{imports: []Import{{Module: wasiModule, Name: exits, Params: []byte{I32}}}}, nil)
	_, err := h.do(exitsNow)
	require.Equal(t, Trapped, reason(t, err))
	require.ErrorContains(t, err, "the guest exited")
}

// Each function of WASI's, with arguments that point nowhere, answers and harms nobody.
func TestTheHostsFunctionsTakeAnyArguments(t *testing.T) {
	i, err := load(t, guest{}, nil).pool.acquire(true, Wait{})
	require.NoError(t, err)
	defer i.plugin.pool.give(i, true, unused)
	i.allow(1 << 40)
	values := []uint64{0, 1, 2, 7, 1 << 16, 1<<18 - 1, 1<<18 - 4, 1 << 31, 1<<32 - 1, 1<<32 - 8}
	for name, f := range wasi {
		for _, v := range values {
			for _, w := range values {
				a := make([]uint64, max(1, len(f.params)))
				for k := range a {
					a[k] = v
					if k%2 == 1 {
						a[k] = w
					}
				}
				require.NotPanics(t, func() {
					e := f.run(i, a)
					require.Less(t, e, errno(77), name)
				}, "%s %d %d", name, v, w)
			}
		}
	}
	for _, v := range values {
		require.NotPanics(t, func() { i.logLine([]uint64{v, v, v}) })
	}
}

func TestAGuestDoesNotSleep(t *testing.T) {
	i, err := load(t, guest{}, nil).pool.acquire(true, Wait{})
	require.NoError(t, err)
	defer i.plugin.pool.give(i, true, unused)
	const in, out, count = inputAt, inputAt + 200, inputAt + 400
	i.memory.Write(in, make([]byte, 500))
	i.memory.WriteUint64Le(in, 11) // a clock, by whoever calls it 11
	i.memory.WriteUint64Le(in+48, 22)
	i.memory.WriteByte(in+56, 1) // a file
	require.Equal(t, success, poll(i, []uint64{in, out, 2, count}))
	n, _ := i.memory.ReadUint32Le(count)
	require.EqualValues(t, 2, n)
	for k, want := range [][4]byte{{11, 0, 0, 0}, {22, byte(errBadFile), 0, 1}} {
		e, _ := i.memory.Read(out+uint32(k)*32, 32)
		require.Equal(t, want, [4]byte{e[0], e[8], e[9], e[10]})
	}
}

// What a guest writes before it traps may quote a prompt. It is kept for those who write the
// plugin, cut, and for nobody else; the error says where it can be read.
func TestWhatAGuestWroteBeforeATrap(t *testing.T) {
	const words = "oh no"
	fail := func(change func(*Options)) (*Failure, string) {
		var b book
		h := loadGo(t, func(o *Options) {
			o.Log = b.logger()
			change(o)
		})
		_, err := h.Call(Wait{}, OpRequest, []byte("p"), nil)
		var f *Failure
		require.ErrorAs(t, err, &f)
		require.Equal(t, Trapped, f.Reason)
		b.mu.Lock()
		defer b.mu.Unlock()
		return f, b.b.String()
	}
	f, log := fail(func(*Options) {})
	require.Empty(t, f.Said)
	require.ErrorContains(t, f, "see it with `interlock plugin test`, or grant it log")
	require.NotContains(t, f.Error()+log, words)

	f, log = fail(func(o *Options) { o.Grants = []string{capabilityLog} })
	require.Empty(t, f.Said)
	require.ErrorContains(t, f, "is in the log, at level debug")
	require.NotContains(t, f.Error(), words)
	require.Contains(t, log, words)

	f, log = fail(func(o *Options) { o.KeepOutput = true })
	require.Contains(t, f.Said, "panic: "+words)
	require.NotContains(t, f.Error()+log, words)
	require.LessOrEqual(t, len(f.Said), maxMessage+16)
}

func TestAGuestsOutputIsCut(t *testing.T) {
	var o output
	for _, sizes := range [][]int{{10}, {outputHead + outputTail}, {outputHead, outputTail + 1}, {1, 100_000}, {700, 700, 700, 700, 700, 700, 700}} {
		o.reset()
		all := ""
		for i, n := range sizes {
			part := strings.Repeat(string(rune('a'+i)), n)
			o.write([]byte(part))
			all += part
		}
		if len(all) <= outputHead+outputTail {
			require.Equal(t, all, o.text())
			continue
		}
		require.Equal(t, all[:outputHead]+"\n…\n"+all[len(all)-outputTail:], o.text())
	}
}
