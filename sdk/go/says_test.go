package interlock

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestSays(t *testing.T) {
	require.True(t, Says("The Model Is OVERLOADED.", "busy", "is overloaded"))
	require.False(t, Says("overloaded", "is overloaded"))
	require.False(t, Says("", "a"))
	rapid.Check(t, func(t *rapid.T) {
		message := rapid.StringMatching(`[ -~]{0,20}`).Draw(t, "message")
		phrase := rapid.StringMatching(`[ -@\[-~]{1,3}`).Draw(t, "phrase")
		require.Equal(t, strings.Contains(strings.ToLower(message), phrase), Says(message, phrase))
	})
}
