package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Every token's place is counted in characters from the start of its line, however long the
// lines are and wherever the tokens stand.
func TestPlacesOfJSONTokens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		blank := rapid.SampledFrom([]string{"", "", " ", "\n", "\t \n  "})
		var b strings.Builder
		b.WriteString("[")
		for i := range rapid.IntRange(0, 20).Draw(t, "items") {
			if i > 0 {
				b.WriteString(blank.Draw(t, "before") + "," + blank.Draw(t, "behind"))
			}
			b.WriteString(rapid.SampledFrom([]string{`"é日"`, `1`, `{"ü":null}`, `"` + strings.Repeat("ö", 50) + `"`}).Draw(t, "item"))
		}
		b.WriteString("]")
		doc := []byte(b.String())
		r := jsonReader{b: doc, d: json.NewDecoder(bytes.NewReader(doc))}
		for i, c := range doc {
			if c == '\n' {
				r.lines = append(r.lines, i+1)
			}
		}
		for {
			_, line, column, err := r.next()
			if errors.Is(err, io.EOF) {
				return
			}
			require.NoError(t, err)
			from := int(r.d.InputOffset())
			text := doc[:from]
			start := bytes.LastIndexByte(text, '\n') + 1
			require.Equal(t, bytes.Count(text, []byte("\n"))+1, line)
			require.LessOrEqual(t, column, utf8.RuneCount(text[start:])+1)
			require.True(t, column == 1 || column > 1 && !strings.ContainsAny(string([]rune(string(doc[start:]))[column-1]), " \t\n,:"))
		}
	})
}
