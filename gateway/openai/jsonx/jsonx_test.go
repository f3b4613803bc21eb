package jsonx

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var documents = []string{
	`{}`, `[]`, `""`, `0`, `-0.5e+10`, `true`, `false`, `null`, ` { "a" : [ 1 , 2 , { "b" : "c" } ] , "d" : null } `,
	`{"a":"\"\\\/\b\f\n\r\tA\ud83d\ude00"}`, `[1,]`, `[,1]`, `{"a":1,}`, `{,}`, `{"a"}`, `{"a":}`, `{a:1}`,
	`01`, `-`, `1.`, `.5`, `1e`, `1e+`, `+1`, `tru`, `nul`, `truex`, `"a`, "\"a\nb\"", "\"\x00\"", `"\x"`, `"\u12g4"`, `"\u12`,
	`{"a":1}{`, `[1 2]`, `{"a":1 "b":2}`, ``, ` `, "\ufeff{}", `"` + strings.Repeat("x", 40) + `\n` + strings.Repeat("é", 40) + `"`,
	`[[[[[[]]]]]]`, `{"a":{"b":{"c":[{"d":[1.5e3,-2,"x"]}]}}}`,
}

// walk reads a document through the Reader's own methods and says whether it is sound.
func walk(b []byte) bool {
	var r Reader
	r.Reset(b)
	visit(&r)
	return r.End()
}

func visit(r *Reader) {
	switch r.Peek() {
	case Object:
		r.Enter()
		for {
			if _, _, ok := r.Key(); !ok {
				return
			}
			visit(r)
		}
	case Array:
		r.Enter()
		for r.Item() {
			visit(r)
		}
	case String:
		r.Str()
	default:
		r.Skip()
	}
}

func checkAgainstStandard(t require.TestingT, b []byte) {
	if depth(b) > MaxDepth {
		return
	}
	want := json.Valid(b)
	require.Equal(t, want, Valid(b), "%q", b)
	require.Equal(t, want, walk(b), "%q", b)
	if !want {
		_, ok := AppendCanonical(nil, b)
		require.False(t, ok)
		return
	}
	// The canonical form says the same, and is its own canonical form.
	c, ok := AppendCanonical(nil, b)
	require.True(t, ok)
	require.Equal(t, decode(t, b), decode(t, c), "%q", b)
	again, _ := AppendCanonical(nil, c)
	require.Equal(t, string(c), string(again))
	require.NotContains(t, string(c), "\n")
	line := bytes.Clone(b)
	Compact(line, 0)
	require.Equal(t, decode(t, b), decode(t, line))
}

func depth(b []byte) (deepest int) { return bytes.Count(b, []byte("[")) + bytes.Count(b, []byte("{")) }

func decode(t require.TestingT, b []byte) any {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v any
	require.NoError(t, d.Decode(&v))
	return v
}

func TestReaderAgreesWithTheStandardLibrary(t *testing.T) {
	for _, d := range documents {
		checkAgainstStandard(t, []byte(d))
		for cut := range len(d) {
			checkAgainstStandard(t, []byte(d[:cut]))
		}
	}
}

func TestReaderLimitsDepth(t *testing.T) {
	nested := func(n int) []byte { return []byte(strings.Repeat("[", n) + strings.Repeat("]", n)) }
	require.True(t, Valid(nested(MaxDepth)))
	require.True(t, walk(nested(MaxDepth)))
	require.False(t, Valid(nested(MaxDepth+1)))
	require.False(t, walk(nested(MaxDepth+1)))
	var r Reader
	r.Reset([]byte(strings.Repeat(`{"a":`, 100_000)))
	r.Skip()
	f, _ := r.Fault()
	require.Equal(t, TooDeep, f)
}

func TestFaultsNameTheirPlace(t *testing.T) {
	for body, want := range map[string]struct {
		fault Fault
		at    int
	}{
		`{"a":1,}`:      {Unexpected, 7},
		`{"a":tru}`:     {BadLiteral, 5},
		`{"a":"`:        {Unfinished, 6},
		"{\"a\":\"\n":   {ControlInString, 6},
		`{"a":"\q"}`:    {BadEscape, 6},
		`{"a":01}`:      {Unexpected, 6},
		`{"a":-}`:       {BadNumber, 5},
		`{} x`:          {Trailing, 3},
		`{"a":1 "b":2}`: {Unexpected, 7},
	} {
		var r Reader
		r.Reset([]byte(body))
		r.Skip()
		r.End()
		f, at := r.Fault()
		require.Equal(t, want.fault, f, body)
		require.Equal(t, want.at, at, body)
		require.NotEmpty(t, f.String())
	}
}

func TestKeysAreDecoded(t *testing.T) {
	var r Reader
	r.Reset([]byte(`{"\u006dodel":1, "` + strings.Repeat(`\u0061`, 65) + `":2, "plain":3}`))
	require.True(t, r.Enter())
	var keys []string
	for {
		k, _, ok := r.Key()
		if !ok {
			break
		}
		keys = append(keys, string(k))
		r.Skip()
	}
	require.True(t, r.End())
	require.Equal(t, []string{"model", strings.Repeat(`\u0061`, 65), "plain"}, keys)
}

func TestStrings(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) })).Draw(t, "s")
		quoted := AppendString(nil, s)
		var got string
		require.NoError(t, json.Unmarshal(quoted, &got))
		require.Equal(t, string([]rune(s)), got)

		standard, err := json.Marshal(s)
		require.NoError(t, err)
		var r Reader
		r.Reset(standard)
		raw, escaped := r.Str()
		require.True(t, r.End())
		require.Equal(t, got, string(Decoded(raw, escaped)))
	})
	require.Equal(t, "\ufffdx\U0001f600", string(AppendDecoded(nil, []byte(`\ud83dx\ud83d\ude00`))))
}

func TestInt(t *testing.T) {
	for raw, want := range map[string]int64{"0": 0, "-7": -7, "12": 12, "1e3": 1000, "2.0": 2, "9007199254740993": 9007199254740993} {
		n, ok := Int([]byte(raw))
		require.True(t, ok, raw)
		require.Equal(t, want, n)
	}
	for _, raw := range []string{"", "-", "1.5", "1e400", "99999999999999999999", strings.Repeat("1", 50) + ".0"} {
		_, ok := Int([]byte(raw))
		require.False(t, ok, raw)
	}
}

func TestCanonical(t *testing.T) {
	for in, want := range map[string]string{
		` { "b" : 1 , "a" : [ 1.0 , 9007199254740993, "\u0041\/" ] } `: `{"a":[1.0,9007199254740993,"A/"],"b":1}`,
		`{"z":{"y":1,"x":2},"a":{}}`:                                   `{"a":{},"z":{"x":2,"y":1}}`,
		`{"\u0061":1,"a":2}`:                                           `{"a":1,"a":2}`,
		`[]`:                                                           `[]`,
	} {
		got, ok := AppendCanonical([]byte("x"), []byte(in))
		require.True(t, ok)
		require.Equal(t, "x"+want, string(got))
	}
}

func TestPatch(t *testing.T) {
	doc := []byte(`{"a":1,"b":[2],"c":{}}`)
	var p Patch
	require.True(t, p.Empty())
	require.Equal(t, string(doc), string(p.Append(nil, doc)))
	p.ReplaceString(5, 6, `q"`)
	p.InsertMember(doc, 0, "first", []byte("0"))
	p.InsertMember(doc, 0, "second", []byte("1"))
	p.InsertMember(doc, 19, "x", []byte("1"))
	p.InsertMember(doc, 19, "y", []byte("2"))
	p.ReplaceInt(12, 13, 7)
	require.Equal(t, `{"first":0,"second":1,"a":"q\"","b":[7],"c":{"x":1,"y":2}}`, string(p.Append(nil, doc)))

	p.Reset()
	p.RemoveMember(doc, 1, 1, 6)
	p.InsertMember(doc, 0, "x", []byte("1"))
	require.Equal(t, `{"x":1,"b":[2],"c":{}}`, string(p.Append(nil, doc)))

	for _, c := range []struct{ doc, member, want string }{
		{`{"a":1, "u":2 , "b":3}`, `"u":2`, `{"a":1, "b":3}`},
		{`{"a":1 , "u":2 }`, `"u":2`, `{"a":1 }`},
		{`{ "u":2 }`, `"u":2`, `{ }`},
	} {
		p.Reset()
		key := strings.Index(c.doc, c.member)
		before := 1
		if i := strings.Index(c.doc, "1"); i > 0 {
			before = i + 1
		}
		p.RemoveMember([]byte(c.doc), before, key, key+len(c.member))
		require.Equal(t, c.want, string(p.Append(nil, []byte(c.doc))))
	}
}

func FuzzReader(f *testing.F) {
	for _, d := range documents {
		f.Add([]byte(d))
	}
	f.Fuzz(func(t *testing.T, b []byte) { checkAgainstStandard(t, b) })
}

func TestReadingAllocatesNothing(t *testing.T) {
	b := []byte(`{"model":"m","messages":[{"role":"user","content":"hello \"world\""}],"\u006e":1,"t":[1,2.5e3,true,null]}`)
	var r Reader
	require.Zero(t, testing.AllocsPerRun(100, func() {
		r.Reset(b)
		visit(&r)
		if !r.End() || !Valid(b) {
			t.Fatal("not sound")
		}
	}))
}

func BenchmarkValid(b *testing.B) {
	for name, doc := range map[string]string{
		"chat4KB": `{"model":"m","messages":[` + strings.Repeat(`{"role":"user","content":"Hello, \"world\"!\nThis is a line of text. And some more."},`, 45) + `{}]}`,
		"blob1MB": `{"image":"` + strings.Repeat("iVBORw0KGgoAAAANSUhEUg", 48000) + `"}`,
	} {
		b.Run(name, func(b *testing.B) {
			d := []byte(doc)
			b.SetBytes(int64(len(d)))
			b.ReportAllocs()
			for b.Loop() {
				Valid(d)
			}
		})
	}
}
