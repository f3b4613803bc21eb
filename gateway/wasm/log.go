package wasm

import (
	"bytes"
	"context"
	"log/slog"
	"sync"
)

const (
	hostModule = "interlock"
	hostLog    = "log"

	maxLine  = 4096
	maxLines = 16 // of one call

	linesPerSecond = 50 // of all instances of a plugin
	linesAtOnce    = 200
	lineCost       = 2000 // units: about what a line costs the host
)

var levels = [...]slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError}

const levelDebug = 0

// logRate lets a plugin log so much and no more.
type logRate struct {
	mu      sync.Mutex
	tokens  float64
	last    int64
	dropped int
}

// allow says whether a line may go out, and how many did not since the last that did.
func (r *logRate) allow(now int64) (ok bool, dropped int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tokens = min(linesAtOnce, r.tokens+float64(now-r.last)/1e9*linesPerSecond)
	r.last = now
	if r.tokens < 1 {
		r.dropped++
		return false, 0
	}
	r.tokens--
	dropped, r.dropped = r.dropped, 0
	return true, dropped
}

func (r *logRate) drop() {
	r.mu.Lock()
	r.dropped++
	r.mu.Unlock()
}

// logLine is interlock.log(level, ptr, len). What points outside the memory is no line.
func (i *instance) logLine(a []uint64) {
	level, n := uint32(a[0]), uint32(a[2])
	i.charge(lineCost / 10)
	b, ok := i.memory.Read(uint32(a[1]), min(n, maxLine))
	if !ok || level >= uint32(len(levels)) {
		i.plugin.lines.drop()
		return
	}
	i.print(level, b)
}

// print writes a line to the gateway's log, within the limits.
func (i *instance) print(level uint32, line []byte) {
	if i.lines++; i.lines > maxLines {
		i.plugin.lines.drop()
		return
	}
	ok, dropped := i.plugin.lines.allow(nanotime())
	if !ok {
		return
	}
	i.charge(lineCost)
	attrs := []slog.Attr{
		slog.String("plugin", i.plugin.name),
		slog.String("line", clean(string(bytes.TrimRight(line, "\n")), maxLine)),
	}
	if dropped > 0 {
		attrs = append(attrs, slog.Int("dropped", dropped))
	}
	i.plugin.log.LogAttrs(context.Background(), levels[level], "plugin log", attrs...)
}
