package downstream

import (
	"bufio"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/valyala/fasthttp"
	"pgregory.net/rapid"
)

// What a head says is not there is not there, however the caller spells its names.
func TestHeadFindsWhatIsThere(t *testing.T) {
	names := []string{"interlock-budget", "x-request-id", "X-Stainless-Timeout", "TRACEPARENT", "user-Agent", "idempotency-key", "authorization", "api-key", "-odd", "0", "_x"}
	rapid.Check(t, func(t *rapid.T) {
		var b strings.Builder
		b.WriteString("POST / HTTP/1.1\r\nHost: h\r\n")
		for _, n := range rapid.SliceOfN(rapid.SampledFrom(names), 0, 6).Draw(t, "names") {
			b.WriteString(n + ": v-" + n + "\r\n")
		}
		b.WriteString("\r\n")
		var fields fasthttp.RequestHeader
		require.NoError(t, fields.Read(bufio.NewReader(strings.NewReader(b.String()))))
		h := headOf(&fields)
		for _, n := range append(names, "host", "content-type", "z", "") {
			require.Equal(t, string(fields.Peek(n)), string(h.Peek(strings.ToLower(n))), n)
		}
	})
}
