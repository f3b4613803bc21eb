package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func seeds(t testing.TB) (list [][]byte) {
	entries, err := os.ReadDir("testdata")
	require.NoError(t, err)
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".yaml") {
			b, err := os.ReadFile("testdata/" + e.Name())
			require.NoError(t, err)
			list = append(list, b)
		}
	}
	return list
}

// sound checks what holds of every result.
func sound(t interface{ Fatalf(string, ...any) }, r *Result) {
	if (r.Config == nil) != (len(r.Errors) > 0) {
		t.Fatalf("a config and errors: %v", r.Errors)
	}
	for _, p := range append(r.Errors, r.Warnings...) {
		if p.Line < 1 || p.Column < 1 || p.Message == "" || p.File == "" {
			t.Fatalf("a problem without a place: %+v", p)
		}
		if strings.Contains(p.Message, canary) || strings.Contains(p.Key, canary) && strings.Contains(p.Message, "env") {
			t.Fatalf("a secret in a message: %+v", p)
		}
	}
}

// hermetic is the corpus's environment without any file.
var hermetic = Env{Lookup: corpusEnv.Lookup, ReadFile: func(string) ([]byte, error) { return nil, os.ErrNotExist }}

// However a file is broken, every fault has a place, and no fault ends the reading.
func TestBrokenFilesNeverPanic(t *testing.T) {
	all := seeds(t)
	rapid.Check(t, func(t *rapid.T) {
		b := bytes.Clone(rapid.SampledFrom(all).Draw(t, "seed"))
		for range rapid.IntRange(1, 6).Draw(t, "mutations") {
			if len(b) == 0 {
				break
			}
			i := rapid.IntRange(0, len(b)-1).Draw(t, "at")
			switch rapid.IntRange(0, 4).Draw(t, "how") {
			case 0:
				b[i] = rapid.Byte().Draw(t, "byte")
			case 1:
				b = append(b[:i:i], b[min(len(b), i+rapid.IntRange(1, 40).Draw(t, "cut")):]...)
			case 2:
				token := rapid.SampledFrom([]string{
					"{", "}", "[", "]", ":", "- ", "&a ", "*a", "!!str ", "!x", "|", ">", "'", "\"", "${env:X}", "${", "<<: ", "\t", "\n", "? ", "#", "null", "1e999", "%", "---\n", "\x00", "é",
				}).Draw(t, "token")
				b = append(b[:i:i], append([]byte(token), b[i:]...)...)
			case 3: // the same lines again
				line := bytes.LastIndexByte(b[:i], '\n') + 1
				b = append(b[:line:line], append(bytes.Clone(b[line:i]), b[line:]...)...)
			case 4: // the indentation
				line := bytes.LastIndexByte(b[:i], '\n') + 1
				b = append(b[:line:line], append([]byte(" "), b[line:]...)...)
			}
		}
		sound(t, Parse(b, "mutated.yaml", hermetic))
	})
}

func FuzzParse(f *testing.F) {
	for _, b := range seeds(f) {
		if len(b) < 4096 {
			f.Add(b)
		}
	}
	f.Add([]byte("a: &a [*a]\n"))
	f.Add([]byte("plugins: [{name: a, source: b, config: {a: &a [1], b: &b [*a, *a], c: [*b, *b]}}]\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 1<<16 {
			return
		}
		sound(t, Parse(b, "fuzzed.yaml", hermetic))
	})
}

// Aliases that repeat aliases stay bounded.
func TestAliasesAreBounded(t *testing.T) {
	var b strings.Builder
	b.WriteString("plugins:\n  - name: a\n    source: builtin:a\n    config:\n      a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n")
	for i := range 9 {
		n := string(rune('0' + i))
		m := string(rune('1' + i))
		b.WriteString("      a" + m + ": &a" + m + " [" + strings.TrimSuffix(strings.Repeat("*a"+n+", ", 10), ", ") + "]\n")
	}
	r := Parse([]byte(b.String()), "bomb.yaml", hermetic)
	require.Error(t, r.Err())
	require.Contains(t, r.Err().Error(), "too many values")
}

func TestTooLargeAFile(t *testing.T) {
	r := Parse(bytes.Repeat([]byte("# x\n"), maxBytes/4+1), "large.yaml", hermetic)
	require.ErrorContains(t, r.Err(), "larger than 8 MiB")
}

func TestAFileThatIsNotThere(t *testing.T) {
	r := Load("testdata/not-there.yaml", Env{})
	require.EqualError(t, r.Err(), "testdata/not-there.yaml:1:1: cannot be read: no such file or directory")
	require.False(t, r.Has("listen"))
	require.Equal(t, []string{"testdata/not-there.yaml"}, r.Files)
}

func TestJSONIsReadAsWritten(t *testing.T) {
	c := load(t, "json.good.yaml")
	require.Equal(t, map[string]ChannelModel{"a/b": {}, "m": {}}, c.Groups[0].Channels[0].Models.Models)
	require.Equal(t, "😀", c.Keys[0].Labels["smile"])
}

func TestReferencesAreReplacedAnywhere(t *testing.T) {
	c := load(t, "reference.good.yaml")
	require.Equal(t, "-----BEGIN PUBLIC KEY-----\nstands for a key", c.Policy.Bundles[1].VerificationKey.Reveal())
	r := Parse([]byte("providers:\n  p: {adapter: openai, base_url: http://${env:HOST:-127.0.0.1}:9/$${x}}\n"), "x.yaml", hermetic)
	require.NoError(t, r.Err())
	require.Equal(t, "http://127.0.0.1:9/${x}", r.Config.Providers["p"].BaseURL)
}

func TestWhatElseIsFoundTakesItsPlace(t *testing.T) {
	r := Load("testdata/reference.good.yaml", corpusEnv)
	before := len(r.Warnings)
	r.Warn("aliases.support-agent-v3.substitutes[0].price_ceiling", "too low")
	r.Fail("policy.bundles[0].path", "does not compile")
	require.Len(t, r.Warnings, before+1)
	require.NotNil(t, r.Config)
	var invalid *Invalid
	require.True(t, errors.As(r.Err(), &invalid))
	require.Equal(t, 31, invalid.Problems[0].Line)
	require.True(t, r.Has("aliases.support-agent-v3.version"))
	require.False(t, r.Has("aliases.support-agent-v3.guards"))
	r.Strict()
	require.Empty(t, r.Warnings)
	require.Len(t, r.Errors, before+2)
	b, err := json.Marshal(r.Errors[0])
	require.NoError(t, err)
	require.JSONEq(t, `{"file":"testdata/reference.good.yaml","line":31,"column":29,"key":"policy.bundles[0].path","message":"does not compile"}`, string(b))
}

func TestTheFilesToWatch(t *testing.T) {
	r := Load("testdata/reference.good.yaml", corpusEnv)
	require.Equal(t, []string{"testdata/reference.good.yaml", "testdata/bundle.pub", "testdata/policies"}, r.Files)
}

// Line ends and a byte order mark change nothing, places included.
func TestLineEndsOfOtherSystems(t *testing.T) {
	for _, file := range []string{"reference.good.yaml", "partial.good.yaml", "faults.bad.yaml"} {
		b, err := os.ReadFile("testdata/" + file)
		require.NoError(t, err)
		want := Parse(b, file, hermetic)
		got := Parse(append([]byte("\xEF\xBB\xBF"), bytes.ReplaceAll(b, []byte("\n"), []byte("\r\n"))...), file, hermetic)
		require.Equal(t, want.Errors, got.Errors)
		require.Equal(t, want.Warnings, got.Warnings)
		require.Equal(t, want.Config, got.Config)
	}
	require.ErrorContains(t, Parse([]byte("a: \xff\n"), "x", hermetic).Err(), "UTF-8")
}
