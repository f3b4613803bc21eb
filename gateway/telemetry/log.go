package telemetry

import (
	"fmt"
	"io"
	"log/slog"
	"os"
)

// LogOptions say where log lines go and how they look.
type LogOptions struct {
	Output io.Writer // default: standard error
	Level  string    // debug, info, warn or error; default info
	Format string    // json or text; default json
}

// Log is the gateway's log. Lines are handed to a bounded buffer and written by a goroutine
// of its own, so that a reader that stands still (a full pipe, a slow disk) never holds a
// request up; what does not fit is dropped, counted and reported in a line of its own.
type Log struct {
	*slog.Logger
	sink   *sink
	byHand bool // lines of every request are written without slog's attributes: JSON only
}

// NewLog starts a log. The error names the option and what is allowed.
func NewLog(o LogOptions) (*Log, error) {
	if o.Output == nil {
		o.Output = os.Stderr
	}
	level, err := logLevel(o.Level)
	if err != nil {
		return nil, err
	}
	var handler func(io.Writer, *slog.HandlerOptions) slog.Handler
	switch o.Format {
	case "", "json":
		handler = func(w io.Writer, o *slog.HandlerOptions) slog.Handler { return slog.NewJSONHandler(w, o) }
	case "text":
		handler = func(w io.Writer, o *slog.HandlerOptions) slog.Handler { return slog.NewTextHandler(w, o) }
	default:
		return nil, fmt.Errorf("log.format %q is not one of json, text", o.Format)
	}
	l := &Log{sink: newSink(o.Output), byHand: o.Format != "text"}
	options := &slog.HandlerOptions{Level: level}
	l.sink.dropped = func(n int64) []byte {
		var line lineBuffer
		slog.New(handler(&line, options)).Error("log lines dropped: the log's reader is too slow", slog.Int64("lines", n))
		return line
	}
	l.Logger = slog.New(handler(l.sink, options))
	return l, nil
}

// Close writes what is buffered and stops. Lines logged afterwards are lost.
func (l *Log) Close() error { return l.sink.close() }

func logLevel(word string) (slog.Level, error) {
	switch word {
	case "", "info":
		return slog.LevelInfo, nil
	case "debug":
		return slog.LevelDebug, nil
	case "warn":
		return slog.LevelWarn, nil
	case "error":
		return slog.LevelError, nil
	}
	return 0, fmt.Errorf("log.level %q is not one of debug, info, warn, error", word)
}

type lineBuffer []byte

func (b *lineBuffer) Write(p []byte) (int, error) { *b = append(*b, p...); return len(p), nil }
