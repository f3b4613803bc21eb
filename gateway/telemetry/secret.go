package telemetry

import (
	"fmt"
	"io"
	"log/slog"
)

// Redacted is what a Secret prints as.
const Redacted = "[redacted]"

// Secret is a credential. Whatever prints, logs or encodes it gets Redacted, an empty one
// included; only Reveal hands it out. It decodes like a string. Never make it the key of a map:
// encoding/json writes a key of a string type as it is.
type Secret string

// Reveal returns the credential itself: for the byte that goes to its owner, never for a
// message.
func (s Secret) Reveal() string { return string(s) }

// String returns Redacted.
func (s Secret) String() string { return Redacted }

// GoString returns Redacted: for %#v.
func (s Secret) GoString() string { return Redacted }

// Format prints Redacted for every verb.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, Redacted) }

// LogValue returns Redacted, for log/slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(Redacted) }

// MarshalText returns Redacted, for encoders of text.
func (s Secret) MarshalText() ([]byte, error) { return []byte(Redacted), nil }

// MarshalJSON returns Redacted as a JSON string.
func (s Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + Redacted + `"`), nil }

// MarshalYAML returns Redacted.
func (s Secret) MarshalYAML() (any, error) { return Redacted, nil }

var (
	_ fmt.Formatter  = Secret("")
	_ slog.LogValuer = Secret("")
)
