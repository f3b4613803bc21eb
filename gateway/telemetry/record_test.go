package telemetry

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// Lines written by hand must be what slog's handler would have written, whatever is in them.
func TestLinesByHandAreSlogs(t *testing.T) {
	texts := []string{"", "plain", `quo"te\`, "line\nfeed\r\t", "\x00\x1f\x7f", "bad\xffutf8\xc3", "grün €", "\u2028", "<a&b>"}
	for _, s := range texts {
		line := func(byHand bool) map[string]any {
			var out bytes.Buffer
			l := &Log{sink: newSink(&out), byHand: byHand}
			l.Logger = slog.New(slog.NewJSONHandler(l.sink, nil))
			l.AttemptClosed(&AttemptLine{
				RequestID: s, CorrelationID: s, UserAction: s, ClientRetry: len(s) - 1, Attempt: 2,
				Cause: s, Group: s, Channel: s, Model: s, Class: s, Phase: s, Reason: s, Delay: 12e6, TimeLeft: -5e6, Circuit: s,
			})
			l.RequestEnded(&RequestLine{RequestID: s, CorrelationID: s, UserAction: s, ClientRetry: 3, Terminal: s, Attempts: 1, Cause: s, Status: 200})
			require.NoError(t, l.Close())
			all := map[string]any{}
			for i, raw := range bytes.Split(bytes.TrimSpace(out.Bytes()), []byte("\n")) {
				var m map[string]any
				require.NoError(t, json.Unmarshal(raw, &m), "%s", raw)
				require.Regexp(t, regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d`), m["time"])
				delete(m, "time")
				all[[]string{"attempt", "request"}[i]] = m
			}
			return all
		}
		require.Equal(t, line(false), line(true), "%q", s)
	}
}
