package json_test

import (
	"bytes"
	stdjson "encoding/json"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/interlock-gateway/interlock/sdk/go/json"
)

var documents = []string{
	`{}`, `[]`, `""`, `0`, `-0`, `-`, `01`, `1.`, `1.5e`, `1.5e+3`, `.5`, `1e400`, `true`, `tru`, `nul`, `null `, ` null`, `nullx`,
	`{"a":1}`, `{"a":1,}`, `{"a"}`, `{"a" : [ 1 , 2 ] }`, `{a:1}`, `{"a":1 "b":2}`, `[1,]`, `[1 2]`, `[,1]`, `[`, `{`, `"`, `"\"`, `"\x"`,
	`"\u12"`, `"\u12G4"`, `"\ud83d\ude00"`, `"\ud83d"`, `"\ude00\ud83d"`, `"\ud83dx"`, "\"\x01\"", "\"\x7f\"", "\"\n\"", "\"\xff\"", "\"\xc0\x80\"", "\"\xed\xa0\x80\"",
	`"é😀"`, `"\/\b\f\n\r\t\\\""`, "\ufeff{}", `{"a":1,"a":2}`, `{"\u0061":1}`, `{"a":{"b":[{"c":"d"}]}}`, "", " ", "{}{}", `"abcdefgh\"ijklmnop\\qrst"`,
	"\"abcdefg\x80\"", "\"abcdefgh\x1f\"", `[[[[[[[[[[]]]]]]]]]]`, `[}`, `{]`, `["a":1]`, `{"a",1}`, "[1,\v2]",
}

func nested(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }

func depth(b []byte) int {
	most, n, in := 0, 0, false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case in && c == '\\':
			i++
		case c == '"':
			in = !in
		case in:
		case c == '[' || c == '{':
			n++
			most = max(most, n)
		case c == ']' || c == '}':
			n--
		}
	}
	return most
}

// agrees holds Parse against encoding/json, which differs in two things only: it takes bytes
// that are not UTF-8, and deeper nesting.
func agrees(t require.TestingT, b []byte) {
	got, err := json.Parse(b)
	want := stdjson.Valid(b) && utf8.Valid(b) && depth(b) <= json.MaxDepth
	require.Equal(t, want, err == nil, "%q", b)
	for _, deep := range []int{0, 1, 2, 1000} {
		w := json.Walk(b)
		require.False(t, w.End(), "%q, of which nothing was read", b)
		told := walked(nil, &w, deep)
		require.Equal(t, want, w.End(), "%q, entered %d deep", b, deep)
		if want {
			require.Equal(t, string(iterated(nil, got, deep)), string(told))
		}
	}
	if err != nil {
		require.ErrorIs(t, err, json.ErrInvalid)
		require.Nil(t, got)
		return
	}
	require.Equal(t, string(bytes.Trim(b, " \t\r\n")), string(got))
	same(t, got)
	var compact bytes.Buffer
	require.NoError(t, stdjson.Compact(&compact, b))
	require.Equal(t, compact.String(), string(json.Compact(nil, got)))
	require.True(t, json.Valid(json.AppendQuoteRaw(nil, got)))
}

// walked retells a document with keys as they are decoded; objects and arrays are entered so deep,
// and taken whole below.
func walked(dst []byte, w *json.Walker, deep int) []byte {
	switch {
	case deep > 0 && w.Object():
		dst = append(dst, '{')
		for w.Member() {
			dst = append(json.AppendQuote(dst, w.Key), ':')
			dst = append(walked(dst, w, deep-1), ',')
		}
		return append(dst, '}')
	case deep > 0 && w.Array():
		dst = append(dst, '[')
		for w.Item() {
			dst = append(walked(dst, w, deep-1), ',')
		}
		return append(dst, ']')
	}
	return append(dst, w.Value()...)
}

// iterated is walked by the iterators of a value.
func iterated(dst []byte, v json.Value, deep int) []byte {
	switch {
	case deep > 0 && v.IsObject():
		dst = append(dst, '{')
		for key, m := range v.Members() {
			dst = append(json.AppendQuote(dst, key), ':')
			dst = append(iterated(dst, m, deep-1), ',')
		}
		return append(dst, '}')
	case deep > 0 && v.IsArray():
		dst = append(dst, '[')
		for item := range v.Items() {
			dst = append(iterated(dst, item, deep-1), ',')
		}
		return append(dst, ']')
	}
	return append(dst, v...)
}

// same walks over a valid value and compares it with what encoding/json makes of it.
func same(t require.TestingT, v json.Value) {
	switch v.Kind() {
	case json.Object:
		var want map[string]stdjson.RawMessage
		require.NoError(t, stdjson.Unmarshal(v, &want))
		got := map[string]stdjson.RawMessage{}
		for key, m := range v.Members() {
			got[string(key)] = stdjson.RawMessage(m)
			require.True(t, json.Valid(m), "%q", m)
		}
		require.Equal(t, want, got)
		for key, m := range want {
			require.Equal(t, string(m), string(v.Get(key)))
			same(t, v.Get(key))
		}
		require.Equal(t, len(want) == 0, v.Empty())
	case json.Array:
		var want []stdjson.RawMessage
		require.NoError(t, stdjson.Unmarshal(v, &want))
		i := 0
		for item := range v.Items() {
			require.Equal(t, string(want[i]), string(item))
			same(t, item)
			i++
		}
		require.Len(t, want, i)
		require.Equal(t, i == 0, v.Empty())
	case json.String:
		var want string
		require.NoError(t, stdjson.Unmarshal(v, &want))
		require.Equal(t, want, v.String())
		require.Equal(t, want, string(v.AppendDecoded(nil)))
		require.Equal(t, len(want), v.DecodedLen())
		require.True(t, v.Is(want))
		require.False(t, v.Is(want+"x"))
		whole := json.Value(append(json.AppendContents([]byte{'"'}, v), '"'))
		require.Equal(t, want, whole.String())
		quoted := json.Value(json.AppendQuote(nil, want))
		require.Equal(t, want, quoted.String())
	case json.Number:
		f, ok := v.Float()
		want, err := strconv.ParseFloat(string(v), 64)
		require.Equal(t, err == nil, ok)
		if ok {
			require.Equal(t, want, f) //nolint:testifylint // the same function's result
		}
		if n, err := strconv.ParseInt(string(v), 10, 64); err == nil {
			got, ok := v.Int()
			require.True(t, ok, "%s", v)
			require.Equal(t, n, got)
		}
		if n, err := strconv.ParseUint(string(v), 10, 64); err == nil {
			got, ok := v.Uint()
			require.True(t, ok, "%s", v)
			require.Equal(t, n, got)
		}
	case json.Bool:
		b, ok := v.Bool()
		require.True(t, ok)
		require.Equal(t, string(v) == "true", b)
		require.Equal(t, b, v.True())
	case json.Null:
		require.True(t, v.IsNull())
	default:
		t.Errorf("%q has no kind", v)
	}
}

func TestAgreesWithEncodingJSON(t *testing.T) {
	for _, doc := range documents {
		agrees(t, []byte(doc))
		for i := range doc {
			agrees(t, []byte(doc[:i]))
		}
	}
	agrees(t, []byte(nested(json.MaxDepth)))
	agrees(t, []byte(nested(json.MaxDepth+1)))
	require.False(t, json.Valid(bytes.Repeat([]byte("["), 1<<20)))
	require.False(t, json.Valid(bytes.Repeat([]byte(`{"a":`), 1<<20)))
}

func FuzzParse(f *testing.F) {
	for _, doc := range documents {
		f.Add([]byte(doc))
	}
	f.Fuzz(func(t *testing.T, b []byte) { agrees(t, b) })
}

// FuzzValue calls everything on bytes that nobody checked: no panic, no endless loop.
func FuzzValue(f *testing.F) {
	for _, doc := range documents {
		f.Add([]byte(doc))
	}
	f.Fuzz(func(_ *testing.T, b []byte) { touch(json.Value(b), 4) })
}

func touch(v json.Value, depth int) {
	v.Kind()
	v.Bool()
	v.Int()
	v.Uint()
	v.Float()
	v.Empty()
	v.Is("a")
	v.DecodedLen()
	v.AppendDecoded(nil)
	json.AppendContents(nil, v)
	json.Compact(nil, v)
	json.AppendQuoteRaw(nil, v)
	v.At("a", "b")
	if depth == 0 {
		return
	}
	for _, m := range v.Members() {
		touch(m, depth-1)
	}
	for item := range v.Items() {
		touch(item, depth-1)
	}
}

func TestUncheckedValuesDoNoHarm(t *testing.T) {
	for _, doc := range documents {
		for i := range doc {
			touch(json.Value(doc[:i]), 4)
			touch(json.Value(doc[i:]), 4)
		}
	}
}

func TestHalfSurrogates(t *testing.T) {
	for in, want := range map[string]string{
		`"\ud83d\ude00"`:    `\ud83d\ude00`,
		`"a\ud83d"`:         `a\ufffd`,
		`"\ude00b"`:         `\ufffdb`,
		`"\ud83d\n"`:        `\ufffd\n`,
		`"\ud83d\ud83d"`:    `\ufffd\ufffd`,
		`"\uFFFD\\ud83d"`:   `\ufffd\\ud83d`,
		`"\uD83D\uDE00\"x"`: `\uD83D\uDE00\"x`,
	} {
		require.Equal(t, want, string(json.AppendContents(nil, json.Value(in))), in)
	}
}

func TestQuoteRepairsBytes(t *testing.T) {
	require.Equal(t, "\"a\ufffdb\ufffd\ufffd\"", string(json.AppendQuote(nil, "a\xffb\xe2\x82")))
	require.Equal(t, `"\u0000\u001f\n\r\t\"\\/`+"\x7f\"", string(json.AppendQuote(nil, "\x00\x1f\n\r\t\"\\/\x7f")))
	rapid.Check(t, func(t *rapid.T) {
		b := rapid.SliceOf(rapid.Byte()).Draw(t, "b")
		quoted := json.AppendQuote(nil, b)
		require.Equal(t, quoted, json.AppendQuote(nil, string(b)))
		var got string
		require.NoError(t, stdjson.Unmarshal(quoted, &got))
		require.Equal(t, string([]rune(string(b))), got, "%q", b) // a rune for each wrong byte
	})
}

func TestNumbers(t *testing.T) {
	for in, want := range map[string]int64{
		"0": 0, "-0": 0, "1.0": 1, "1e3": 1000, "-2.5e1": -25,
		"9223372036854775807": 1<<63 - 1, "-9223372036854775808": -1 << 63,
	} {
		got, ok := json.Value(in).Int()
		require.True(t, ok, in)
		require.Equal(t, want, got, in)
	}
	for _, in := range []string{"9223372036854775808", "1.5", "1e99", "1e-1", "true", `"1"`, "", "123456789012345678901234567890"} {
		_, ok := json.Value(in).Int()
		require.False(t, ok, in)
	}
	n, ok := json.Value("18446744073709551615").Uint()
	require.True(t, ok)
	require.Equal(t, uint64(1<<64-1), n)
	for _, in := range []string{"-1", "18446744073709551616", "0.1", "null"} {
		_, ok := json.Value(in).Uint()
		require.False(t, ok, in)
	}
}

func TestBuilding(t *testing.T) {
	b := []byte{'{'}
	b = json.AppendMember(b, "absent", nil)
	b = json.AppendMember(b, "raw", json.Value(`[1]`))
	b = json.AppendText(b, "text", `a"b`)
	b = json.AppendUint(b, "n", 7)
	b = json.AppendBool(b, "b", true)
	b = append(json.AppendKey(b, "list"), '[')
	for range 2 {
		b = append(json.AppendComma(b), "0"...)
	}
	b = append(b, "]}"...)
	require.Equal(t, `{"raw":[1],"text":"a\"b","n":7,"b":true,"list":[0,0]}`, string(b))
}

func TestNothingIsAllocated(t *testing.T) {
	doc := []byte(`{"type":"delta","delta":{"text":"plain","esc":"a\nb"},"list":[1,2,{"a":"b"}],"n":12,"x":1.5}`)
	dst := make([]byte, 0, 1024)
	n := testing.AllocsPerRun(100, func() {
		v, err := json.Parse(doc)
		if err != nil {
			panic(err)
		}
		for key, m := range v.Members() {
			switch string(key) {
			case "type":
				if !m.Is("delta") {
					panic("type")
				}
			case "list":
				for item := range m.Items() {
					dst = append(dst[:0], item.Get("a")...)
				}
			case "n":
				m.Int()
			}
		}
		text := v.At("delta", "text")
		dst = json.AppendQuote(dst[:0], text.Text())
		dst = v.At("delta", "esc").AppendDecoded(dst[:0])
		dst = json.AppendContents(dst[:0], text)
		dst = json.Compact(dst[:0], v)
		w := json.Walk(doc)
		for w.Object(); w.Member(); {
			if !w.Array() {
				w.Value()
				continue
			}
			for w.Item() {
				w.Value()
			}
		}
		if !w.End() {
			panic("walk")
		}
	})
	require.Zero(t, n)
}

func TestManyMembers(t *testing.T) {
	const members = 100_000 // quadratic work would not come back
	b := []byte{'{'}
	for i := range members {
		b = json.AppendUint(b, "key"+strconv.Itoa(i), uint64(i))
	}
	v, err := json.Parse(append(b, '}'))
	require.NoError(t, err)
	count := 0
	for range v.Members() {
		count++
	}
	require.Equal(t, members, count)
}

func BenchmarkParse(b *testing.B) {
	doc := []byte(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hello there, how are you today?"}}`)
	b.SetBytes(int64(len(doc)))
	for b.Loop() {
		if _, err := json.Parse(doc); err != nil {
			b.Fatal(err)
		}
	}
}
