package adapter

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLargeStringsStayOutside(t *testing.T) {
	image := strings.Repeat("QUJD", 10_000)
	text := strings.Repeat("word ", 10_000)
	escaped := strings.Repeat(`\n`, 30_000)
	doc := []byte(`{"a":"` + image + `","b":["data:image/png;base64,` + image + `"],"c":"` + text + `","d":"` + escaped + `","e":"short"}`)
	require.True(t, json.Valid(doc))
	var l blobs
	short, ok := l.remove([]byte("x"), doc)
	require.True(t, ok)
	require.Len(t, l.parts, 3)
	require.Less(t, len(short), 70_000)
	require.True(t, json.Valid(short[1:]))
	require.Contains(t, string(short), `"data:image/png;base64,`+blobPrefix)
	require.Contains(t, string(short), escaped)
	for i := range bytes.Split(short, []byte(blobPrefix))[1:] {
		require.NotEmpty(t, l.parts[i])
	}
	whole, err := l.restore([]byte("x"), short[1:])
	require.NoError(t, err)
	require.Equal(t, "x"+string(doc), string(whole))

	_, ok = l.remove(nil, []byte(`{"a":"`+escaped+`"}`))
	require.False(t, ok)
	_, ok = l.remove(nil, []byte(`{"a":1}`))
	require.False(t, ok)
}

// A handle is used as it is, where it may stand, and not so often that the host runs full.
func TestHandlesMisused(t *testing.T) {
	var l blobs
	short, ok := l.remove(nil, []byte(`{"a":"`+strings.Repeat("x", 1<<20)+`"}`))
	require.True(t, ok)
	handle := string(short[len(`{"a":"`) : len(short)-2])
	for name, doc := range map[string]string{
		"inside a text":  `{"a":"see ` + handle + `"}`,
		"followed":       `{"a":"` + handle + `0000000000"}`,
		"no such string": `{"a":"` + handle[:len(handle)-1] + `7"}`,
		"half":           `{"a":"` + handle[5:] + `"}`,
		"too often":      `["` + handle + strings.Repeat(`","`+handle, 20) + `"]`,
		"at the end":     `"` + handle,
	} {
		_, err := l.restore(nil, []byte(doc))
		require.Error(t, err, name)
	}
	twice, err := l.restore(nil, []byte(`["`+handle+`","x,`+handle+`"]`))
	require.NoError(t, err)
	require.Len(t, twice, 2<<20+len(`["","x,"]`))
	// A caller's own text that looks like a handle is text: the nonce is new for each request.
	same, err := l.restore(nil, []byte(`{"a":"interlock:blob:AAAAAAAAAAAAAAAAAAAAAA:0"}`))
	require.NoError(t, err)
	require.Equal(t, `{"a":"interlock:blob:AAAAAAAAAAAAAAAAAAAAAA:0"}`, string(same))
}

func FuzzBlobs(f *testing.F) {
	f.Add([]byte(`{"a":"b"}`), 3)
	f.Fuzz(func(t *testing.T, doc []byte, n int) {
		doc = bytes.ReplaceAll(doc, []byte("~"), []byte(strings.Repeat("y", blobLeast)))
		if !json.Valid(doc) {
			return
		}
		var l blobs
		short, ok := l.remove(nil, doc)
		if !ok {
			require.Empty(t, short)
			return
		}
		whole, err := l.restore(nil, short)
		require.NoError(t, err)
		require.Equal(t, string(doc), string(whole))
	})
}
