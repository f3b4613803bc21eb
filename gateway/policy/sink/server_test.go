package sink

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAt(t *testing.T) {
	for from, to := range map[string]string{
		"https://c.example":          "https://c.example/logs",
		"https://c.example/":         "https://c.example/logs",
		"https://c.example/v1/opa":   "https://c.example/v1/opa/logs",
		"https://c.example/logs":     "https://c.example/logs",
		"https://c.example/logs?a=b": "https://c.example/logs?a=b",
		"https://c.example/x?a=b":    "https://c.example/x/logs?a=b",
	} {
		require.Equal(t, to, At(from, "logs"))
	}
}
