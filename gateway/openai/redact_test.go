package openai

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A text that was redacted once, by a provider, a gateway before this one or this one itself, is
// not spoilt when it is redacted again.
func TestRedactingAgainChangesNothing(t *testing.T) {
	for in, want := range map[string]string{
		"api_key: [redacted].":                          "[redacted].",
		"Authorization: Bearer [redacted]":              "Authorization: [redacted]",
		"Bearer [redacted], [url] and [account]":        "[redacted], [url] and [account]",
		"see https://[redacted]/x":                      "see [url]",
		"(Bearer abcdef1234)":                           "([redacted])",
		"[api_key=abcdef1234]":                          "[[redacted]]",
		`{"key": "sk-abcdef1234567"}`:                   `{"key": "[redacted]"}`,
		"a (https://example.com/a_(b)), too":            "a ([url]), too",
		"the canary-1234567 and Bearer canary-1234567.": "the [redacted] and [redacted].",
	} {
		once := Redact(in, "canary-1234567")
		require.Equal(t, want, once, in)
		require.Equal(t, once, Redact(once, "canary-1234567"), in)
		require.Equal(t, once, Redact(once), in)
	}
}
