package downstream

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Of two values of one of the gateway's own headers one would be lost, and it could be the
// one that forbids.
func TestAnInterlockHeaderStandsOnce(t *testing.T) {
	for fields, want := range map[string]flaw{
		"interlock-substitution: allow\r\nInterlock-Substitution: deny\r\n\r\n": flawTwice,
		"interlock-deadline: 1\r\nx: y\r\ninterlock-deadline: 1\r\n\r\n":        flawTwice,
		"interlock-deadline: 1\r\ninterlock-budget: b\r\n\r\n":                  "",
		"x-request-id: 1\r\nx-request-id: 2\r\n\r\n":                            "",
	} {
		_, got := inspect([]byte("HTTP/1.1"), []byte(fields))
		require.Equal(t, want, got, fields)
	}
}
