package telemetry

import (
	"context"
	"log/slog"
	"time"
)

// AttemptLine is the log line of an attempt that closed. The fields are the ledger's.
type AttemptLine struct {
	RequestID     string
	CorrelationID string
	UserAction    string
	ClientRetry   int // the SDK's own number; -1 = it sent none
	Attempt       int
	Cause         string
	Group         string
	Channel       string
	Model         string
	Class         string // empty after a success
	Phase         string
	Reason        string
	Delay         time.Duration // before the attempt
	TimeLeft      time.Duration // at its start
	Circuit       string
}

// AttemptClosed logs an attempt that closed.
func (l *Log) AttemptClosed(a *AttemptLine) {
	if !l.Enabled(context.Background(), slog.LevelInfo) {
		return
	}
	if l.byHand {
		r := beginRecord(time.Now(), "attempt closed")
		r.text("request_id", a.RequestID)
		r.text("correlation_id", a.CorrelationID)
		r.text("user_action", a.UserAction)
		r.optional("client_retry", a.ClientRetry)
		r.int("attempt", int64(a.Attempt))
		r.text("cause", a.Cause)
		r.text("group", a.Group)
		r.text("channel", a.Channel)
		r.text("model", a.Model)
		r.text("class", a.Class)
		r.text("phase", a.Phase)
		r.text("reason", a.Reason)
		r.int("delay_ms", a.Delay.Milliseconds())
		r.int("time_left_ms", a.TimeLeft.Milliseconds())
		r.text("circuit", a.Circuit)
		r.into(l.sink)
		return
	}
	l.LogAttrs(context.Background(), slog.LevelInfo, "attempt closed",
		slog.String("request_id", a.RequestID),
		slog.String("correlation_id", a.CorrelationID),
		slog.String("user_action", a.UserAction),
		clientRetry(a.ClientRetry),
		slog.Int("attempt", a.Attempt),
		slog.String("cause", a.Cause),
		slog.String("group", a.Group),
		slog.String("channel", a.Channel),
		slog.String("model", a.Model),
		slog.String("class", a.Class),
		slog.String("phase", a.Phase),
		slog.String("reason", a.Reason),
		slog.Int64("delay_ms", a.Delay.Milliseconds()),
		slog.Int64("time_left_ms", a.TimeLeft.Milliseconds()),
		slog.String("circuit", a.Circuit),
	)
}

// RequestLine is the log line of a request that ended.
type RequestLine struct {
	RequestID     string
	CorrelationID string
	UserAction    string
	ClientRetry   int // the SDK's own number; -1 = it sent none
	Terminal      string
	Attempts      int
	Cause         string // of the attempt that answered
	Status        int
}

// RequestEnded logs a request that ended.
func (l *Log) RequestEnded(r *RequestLine) {
	if !l.Enabled(context.Background(), slog.LevelInfo) {
		return
	}
	if l.byHand {
		e := beginRecord(time.Now(), "request ended")
		e.text("request_id", r.RequestID)
		e.text("correlation_id", r.CorrelationID)
		e.text("user_action", r.UserAction)
		e.optional("client_retry", r.ClientRetry)
		e.text("terminal", r.Terminal)
		e.int("attempts", int64(r.Attempts))
		e.text("cause", r.Cause)
		e.int("status", int64(r.Status))
		e.into(l.sink)
		return
	}
	l.LogAttrs(context.Background(), slog.LevelInfo, "request ended",
		slog.String("request_id", r.RequestID),
		slog.String("correlation_id", r.CorrelationID),
		slog.String("user_action", r.UserAction),
		clientRetry(r.ClientRetry),
		slog.String("terminal", r.Terminal),
		slog.Int("attempts", r.Attempts),
		slog.String("cause", r.Cause),
		slog.Int("status", r.Status),
	)
}

// clientRetry is null where the SDK sent no number: 0 is what it sends first.
func clientRetry(n int) slog.Attr {
	if n < 0 {
		return slog.Any("client_retry", nil)
	}
	return slog.Int("client_retry", n)
}
