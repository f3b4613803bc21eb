package upstream

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http/httputil"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// unframe runs the framer over wire, cut into pieces; it returns the body, and what is left
// behind its end.
func unframe(t require.TestingT, f *framer, wire []byte, piece func() int) (body, behind []byte) {
	for len(wire) > 0 {
		b := wire[:min(piece(), len(wire))]
		wire = wire[len(b):]
		for {
			skip := f.skip(b)
			require.LessOrEqual(t, skip, len(b))
			b = b[skip:]
			n := f.take(len(b))
			require.LessOrEqual(t, n, len(b))
			body, b = append(body, b[:n]...), b[n:]
			if f.ended || f.err != nil {
				return body, append(b, wire...)
			}
			if n == 0 {
				require.Empty(t, b, "bytes are neither framing nor body")
				break
			}
		}
	}
	return body, nil
}

func wholeChunks(b []byte) func() int { return func() int { return len(b) + 1 } }

func TestBrokenChunks(t *testing.T) {
	for name, wire := range map[string]string{
		"no size":             "\r\nx\r\n0\r\n\r\n",
		"not hex":             "g\r\nx\r\n0\r\n\r\n",
		"signed":              "+1\r\nx\r\n0\r\n\r\n",
		"negative":            "-1\r\nx\r\n0\r\n\r\n",
		"0x":                  "0x1\r\nx\r\n0\r\n\r\n",
		"blank first":         " 1\r\nx\r\n0\r\n\r\n",
		"blank within":        "1 1\r\nx\r\n0\r\n\r\n",
		"bare LF":             "1\nx\r\n0\r\n\r\n",
		"bare CR":             "1\rx\r\n0\r\n\r\n",
		"CR CR":               "1\r\r\nx\r\n0\r\n\r\n",
		"too long":            "1\r\nxy\r\n0\r\n\r\n",
		"too short":           "3\r\nxy\r\n0\r\n\r\n",
		"no CR behind":        "1\r\nx\n0\r\n\r\n",
		"overflow":            "ffffffffffffffff\r\nx",
		"overflow by zeros":   strings.Repeat("0", 40) + "1\r\nx\r\n",
		"NUL in extension":    "1;a\x00\r\nx\r\n",
		"LF in extension":     "1;a\nx\r\n",
		"long extension":      "1;" + strings.Repeat("a", 20<<10) + "\r\nx\r\n",
		"many extensions":     strings.Repeat("1;"+strings.Repeat("a", 100)+"\r\nx\r\n", 1000),
		"long trailer":        "0\r\nA: " + strings.Repeat("a", 20<<10) + "\r\n\r\n",
		"many trailers":       "0\r\n" + strings.Repeat("A: b\r\n", 10000) + "\r\n",
		"LF in trailer":       "0\r\nA: b\n\r\n",
		"no LF at the end":    "0\r\n\rx",
		"no LF after trailer": "0\r\nA: b\rx",
	} {
		t.Run(name, func(t *testing.T) {
			for _, piece := range []int{1, 2, 1 << 20} {
				var f framer
				f.start(byChunks, 0)
				_, _ = unframe(t, &f, []byte(wire), func() int { return piece })
				require.Error(t, f.err)
				require.False(t, f.ended)
				require.Zero(t, f.skip([]byte("1\r\nx")), "broken for good")
				require.Zero(t, f.take(4))
			}
		})
	}
}

// TestChunkOverheadOfRealStreams: small chunks with small extensions are no attack.
func TestChunkOverheadOfRealStreams(t *testing.T) {
	wire := []byte(strings.Repeat("4;id=0123\r\nabcd\r\n", 100_000) + "0\r\n\r\n")
	var f framer
	f.start(byChunks, 0)
	body, behind := unframe(t, &f, wire, wholeChunks(wire))
	require.NoError(t, f.err)
	require.True(t, f.ended)
	require.Len(t, body, 400_000)
	require.Empty(t, behind)
}

// TestFramingRoundTrip: any body in any framing, cut anywhere, comes out once and whole,
// and not a byte behind its end is touched.
func TestFramingRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOf(rapid.SliceOfN(rapid.Byte(), 1, 40)).Draw(t, "parts")
		body := bytes.Join(parts, nil)
		behind := rapid.SliceOfN(rapid.Byte(), 0, 5).Draw(t, "behind")
		mode := rapid.SampledFrom([]frameMode{byLength, byChunks, untilClose}).Draw(t, "mode")
		var wire []byte
		switch mode {
		case byChunks:
			for _, p := range parts {
				ext := rapid.SampledFrom([]string{"", ";a", " ; a=\"b\"", "\t"}).Draw(t, "ext")
				wire = fmt.Appendf(wire, "%x%s\r\n%s\r\n", len(p), ext, p)
			}
			wire = append(wire, "0\r\n"...)
			wire = append(wire, rapid.SampledFrom([]string{"", "A: b\r\n", "A:\r\nB: c\r\n"}).Draw(t, "trailers")...)
			wire = append(wire, "\r\n"...)
		default:
			wire = append(wire, body...)
		}
		if mode == untilClose {
			behind = nil
		}
		wire = append(wire, behind...)
		var f framer
		f.start(mode, int64(len(body)))
		got, left := unframe(t, &f, wire, func() int { return rapid.IntRange(1, 9).Draw(t, "piece") })
		require.NoError(t, f.err)
		if mode == byLength && len(body) == 0 {
			require.True(t, f.ended)
			return
		}
		require.Equal(t, mode != untilClose, f.ended)
		require.True(t, bytes.Equal(body, got))
		require.True(t, bytes.Equal(behind, left))
	})
}

// FuzzBody feeds hostile framing in two cuts: the outcome must not depend on the cut, and
// where another reader accepts the bytes as well, both must read the same.
func FuzzBody(f *testing.F) {
	for _, s := range []string{
		"3\r\nabc\r\n0\r\n\r\n", "1;x\r\na\r\n0\r\nA: b\r\n\r\n", "0\r\n\r\nrest", "fffffffff\r\nabc", "1\r\na\r\n1\r\n", "2\r\na\r\n\r\n0\r\n\r\n", "a\n0123456789\n0\n\n",
	} {
		f.Add([]byte(s), uint64(1))
	}
	f.Fuzz(func(t *testing.T, wire []byte, seed uint64) {
		var whole, cut framer
		whole.start(byChunks, 0)
		cut.start(byChunks, 0)
		body, behind := unframe(t, &whole, wire, wholeChunks(wire))
		rnd := rand.New(rand.NewPCG(seed, 0))
		body2, behind2 := unframe(t, &cut, wire, func() int { return 1 + rnd.IntN(7) })
		require.Equal(t, whole, cut)
		require.True(t, bytes.Equal(body, body2))
		require.True(t, bytes.Equal(behind, behind2))
		require.LessOrEqual(t, len(body)+len(behind), len(wire))

		r := bufio.NewReader(bytes.NewReader(wire))
		other, err := io.ReadAll(httputil.NewChunkedReader(r))
		if whole.ended && err == nil {
			require.True(t, bytes.Equal(other, body))
		}
		if whole.ended {
			require.NotErrorIs(t, err, io.ErrUnexpectedEOF, "what we take as whole is not cut to others")
		}
	})
}
