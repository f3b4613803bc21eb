package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"

	"github.com/interlock-gateway/interlock/gateway/wasm"
)

// interlockRun runs a command.
func interlockRun(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, errs output
	status = run(t.Context(), args, &out, &errs)
	return status, out.String(), errs.String()
}

func TestPluginNewSaysWhatIsAllowed(t *testing.T) {
	t.Chdir(t.TempDir())
	require.NoError(t, os.MkdirAll("taken/x", 0o700))
	require.NoError(t, os.WriteFile("file", nil, 0o600))
	for want, args := range map[string][]string{
		"allowed is go":                     {"acme"},
		`"cobol": allowed is go`:            {"--lang", "cobol", "acme"},
		`"c": allowed is go; in C and`:      {"--lang", "c", "acme"},
		"allowed are adapter and guard":     {"--lang", "go", "--kind", "oracle", "acme"},
		`"Acme" is no name of a plugin`:     {"--lang", "go", "Acme"},
		`".." is no name of a plugin`:       {"--lang", "go", ".."},
		`"a b" is no name of a plugin`:      {"--lang", "go", "a b"},
		`"-" is no name of a plugin`:        {"--lang", "go", "--", "-"},
		`"a" is no name of a plugin`:        {"--lang", "go", "a"},
		"\"x\uFFFD[2J\" is no name":         {"--lang", "go", "x\x1b[2J"},
		"taken is there already":            {"--lang", "go", "taken"},
		"not a directory":                   {"--lang", "go", "file"},
		"accepts 1 arg(s), received 0":      {"--lang", "go"},
		"sdk/abi/interlock_plugin.h and":    {"--lang", "rust", "acme"},
		strings.Repeat("x", 65) + `" is no`: {"--lang", "go", strings.Repeat("x", 65)},
	} {
		status, out, errs := interlockRun(t, append([]string{"plugin", "new"}, args...)...)
		require.NotZero(t, status, want)
		require.Empty(t, out)
		require.Contains(t, errs, want)
	}
	left, err := os.ReadDir(".")
	require.NoError(t, err)
	require.Len(t, left, 2, "nothing is made")
}

// What is made needs nothing of this repository: no test, and no import but the standard library's
// and the SDK's.
func TestPluginNewMakesAFolderOfItsOwn(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, kind := range []string{"adapter", "guard"} {
		dir := filepath.Join("plugins", "my-"+kind)
		status, out, errs := interlockRun(t, "plugin", "new", "--lang", "go", "--kind", kind, dir)
		require.Zero(t, status, errs)
		require.Contains(t, out, "cd "+dir)
		require.NoError(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			require.NotContains(t, path, "_test.go")
			b, err := os.ReadFile(path)
			require.NoError(t, err)
			if !strings.Contains(path, "/sdk/") {
				require.NotRegexp(t, `\bacme`, string(b), "%s still has the template's name", path)
			}
			require.NotContains(t, string(b), "interlock/gateway/")
			return nil
		}))
		for _, name := range []string{"go.mod", ".gitignore", "README.md", "manifest.go", "sdk/go.mod", "sdk/json/scan.go", "testdata"} {
			_, err := os.Stat(filepath.Join(dir, name))
			require.NoError(t, err)
		}
		status, _, errs = interlockRun(t, "plugin", "new", "--lang", "go", "--kind", kind, dir)
		require.Equal(t, 1, status)
		require.Contains(t, errs, "is there already, and not empty")
	}
}

func TestPluginBuildNeedsATool(t *testing.T) {
	t.Chdir(t.TempDir())
	bin := t.TempDir()
	t.Setenv("PATH", bin)
	require.Zero(t, run(t.Context(), []string{"plugin", "new", "--lang", "go", "acme"}, new(output), new(output)))
	status, _, errs := interlockRun(t, "plugin", "build", "acme")
	require.Equal(t, 1, status)
	require.Contains(t, errs, "there is no Go toolchain in PATH: install Go 1.26 or later")

	require.NoError(t, os.WriteFile(filepath.Join(bin, "go"), []byte("#!/bin/sh\necho go1.21.3\n"), 0o700)) // #nosec G306 -- a program
	status, _, errs = interlockRun(t, "plugin", "build", "acme")
	require.Equal(t, 1, status)
	require.Contains(t, errs, "is go1.21.3: a plugin needs Go 1.26 or later")

	require.NoError(t, os.Mkdir("empty", 0o700))
	for arg, want := range map[string]string{
		"empty": "no Go source to build", "gone": "no such file", "builtin:nobody": "there is no adapter",
	} {
		status, _, errs = interlockRun(t, "plugin", "build", arg)
		require.Equal(t, 1, status)
		require.Contains(t, errs, want)
	}
}

// A file that nobody would load is shown as far as it goes, and the terminal gets none of it.
func TestPluginInspectOfHostileFiles(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct{ text, want string }{
		"empty":      {"", "module: this is not a Wasm module"},
		"text":       {"\x1b[2J\x1b]0;title\a", "module: this is not a Wasm module"},
		"head only":  {"\x00asm\x01\x00\x00\x00", "manifest: there is none"},
		"cut":        {"\x00asm\x01\x00\x00\x00\x01\xff\xff\xff\x7f", "cut off"},
		"bad length": {"\x00asm\x01\x00\x00\x00\x00\x80\x80\x80\x80\x80\x80", "cut off"},
		"own name":   {"\x00asm\x01\x00\x00\x00\x00\x05\x04\x1b[2J", "manifest: there is none"},
		"large":      {"\x00asm" + strings.Repeat("\x00", 9<<20), "at most 8388608 are allowed"},
	} {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(c.text), 0o600))
		status, out, errs := interlockRun(t, "plugin", "inspect", path)
		require.Equal(t, 1, status, name)
		require.Empty(t, errs)
		require.Contains(t, out, "admitted  no: ")
		require.Contains(t, out, c.want, name)
		require.NotContains(t, out, "\x1b")
		status, out, _ = interlockRun(t, "plugin", "inspect", "--json", path)
		require.Equal(t, 1, status, name)
		var shown struct {
			Size     int
			Admitted bool
			Refused  struct{ Step, Reason string }
		}
		require.NoError(t, json.Unmarshal([]byte(out), &shown))
		require.Equal(t, len(c.text), shown.Size)
		require.False(t, shown.Admitted)
		require.NotEmpty(t, shown.Refused.Step)
	}
	status, _, errs := interlockRun(t, "plugin", "inspect", dir)
	require.Equal(t, 1, status)
	require.Contains(t, errs, "is not a file")
}

// cacheOfGo lets a test build without a home, and yet not from nothing.
func cacheOfGo(t *testing.T) {
	t.Helper()
	if testing.Short() || raceDetector { // it computes for long and shares nothing
		t.Skip("it builds plugins with the Go toolchain")
	}
	cache, err := exec.CommandContext(t.Context(), "go", "env", "GOCACHE").Output()
	require.NoError(t, err)
	t.Setenv("GOCACHE", strings.TrimSpace(string(cache)))
}

// A module without a manifest, as another compiler leaves it, gets one.
func TestPluginBuildFinishesAModule(t *testing.T) {
	cacheOfGo(t)
	t.Chdir(t.TempDir())
	require.Zero(t, run(t.Context(), []string{"plugin", "new", "--lang", "go", "--kind", "guard", "acme"}, new(output), new(output)))
	raw, err := compileGo(t.Context(), "acme", new(output))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile("raw.wasm", raw, 0o600))

	status, out, _ := interlockRun(t, "plugin", "inspect", "raw.wasm")
	require.Equal(t, 1, status)
	require.Contains(t, out, "no: manifest: there is none")

	status, out, errs := interlockRun(t, "plugin", "build", "raw.wasm", "-o", "done.wasm", "--json")
	require.Zero(t, status, errs)
	var b built
	require.NoError(t, json.Unmarshal([]byte(out), &b))
	require.True(t, b.Changed)
	require.Equal(t, "acme", b.Manifest.Name)
	status, out, errs = interlockRun(t, "plugin", "inspect", "done.wasm")
	require.Zero(t, status, errs)
	require.Contains(t, out, b.SHA256)
	require.Contains(t, out, "admitted       yes")
	require.Contains(t, out, "interlock_call function (i32, i32) -> (i64)")

	// In place, with a manifest beside it that says what the module says: a byte-equal file.
	text, err := json.MarshalIndent(b.Manifest, "", "  ")
	require.NoError(t, err)
	require.NoError(t, os.WriteFile("raw.manifest.json", text, 0o600))
	status, out, errs = interlockRun(t, "plugin", "build", "raw.wasm")
	require.Zero(t, status, errs)
	require.Contains(t, out, "guards: [{plugin: acme, on: [request, response, events]}]")
	m, err := os.ReadFile("raw.wasm")
	require.NoError(t, err)
	read, err := wasm.ReadManifest(m)
	require.NoError(t, err)
	require.Equal(t, "acme", read.Name)
	status, out, _ = interlockRun(t, "plugin", "build", "raw.wasm", "--json")
	require.Zero(t, status)
	require.Contains(t, out, `"changed": false`)

	// One that says something else is refused, and the module stays as it is.
	require.NoError(t, os.WriteFile("raw.manifest.json", []byte(strings.Replace(string(text), "0.1.0", "9.9.9", 1)), 0o600))
	status, _, errs = interlockRun(t, "plugin", "build", "raw.wasm")
	require.Equal(t, 1, status)
	require.Contains(t, errs, "is not what its manifest says")
	again, err := os.ReadFile("raw.wasm")
	require.NoError(t, err)
	require.Equal(t, m, again)
	left, err := filepath.Glob(".raw*")
	require.NoError(t, err)
	require.Empty(t, left)
}

// A test shows what is wrong, line by line, and --update writes what it should be.
func TestPluginTestFindsAndUpdates(t *testing.T) {
	cacheOfGo(t)
	t.Chdir(t.TempDir())
	require.Zero(t, run(t.Context(), []string{"plugin", "new", "--lang", "go", "acme"}, new(output), new(output)))
	fixture := filepath.Join("acme", "testdata", "text.txtar")
	sound, err := os.ReadFile(fixture)
	require.NoError(t, err)
	spoilt := strings.Replace(string(sound), `"content": "Yes,`, `"content": "No,`, 1)
	spoilt = strings.Replace(spoilt, "acme-version: 2026-01", "acme-version: 1999-01", 1)
	require.NoError(t, os.WriteFile(fixture, []byte(spoilt), 0o600))

	status, out, errs := interlockRun(t, "plugin", "test", "acme")
	require.Equal(t, 1, status, errs)
	require.Regexp(t, `(?m)^text +configure, request, .*FAIL$`, out)
	require.Regexp(t, `(?m)^tools +configure, request, .*pass$`, out)
	require.Contains(t, out, `choices[0].message.content is "Yes, \"café\"", want "No, \"café\""`)
	require.Contains(t, out, "text, want.json: - wanted, + answered")
	require.Regexp(t, `(?m)^- +"content": "No, .*\n\+ +"content": "Yes, `, out)
	require.Contains(t, out, "- acme-version: 1999-01\n+ acme-version: 2026-01")
	require.Contains(t, out, "FAIL  acme 0.1.0")

	// A new fixture, of which only the inputs are known.
	empty := "-- request.json --\n{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}]}\n-- provider.json --\n-- answer.json --\n" +
		"{\"text\":\"b\",\"ended\":\"length\"}\n-- want.json --\n"
	fresh := filepath.Join("acme", "testdata", "fresh.txtar")
	require.NoError(t, os.WriteFile(fresh, []byte(empty), 0o600))
	status, _, errs = interlockRun(t, "plugin", "test", filepath.Join("acme", "acme.wasm"))
	require.Equal(t, 1, status)
	require.Contains(t, errs, "fresh.txtar: ")
	status, out, errs = interlockRun(t, "plugin", "test", filepath.Join("acme", "acme.wasm"), "--update")
	require.Zero(t, status, out+errs)
	require.Contains(t, errs, "wrote "+fixture)
	require.Contains(t, errs, "wrote "+fresh)
	b, err := os.ReadFile(fixture)
	require.NoError(t, err)
	require.Contains(t, string(b), `"content": "Yes, \"café\""`)
	b, err = os.ReadFile(fresh)
	require.NoError(t, err)
	require.Contains(t, string(b), `"finish_reason": "length"`)
	require.Contains(t, string(b), `"from": "user"`)

	// Fixtures of which only the inputs are there get the parts that say what comes out.
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"only": {
			"-- request.json --\n{\"messages\":[{\"role\":\"user\",\"content\":\"a\"}]}\n-- answer.json --\n{\"text\":\"b\",\"ended\":\"natural\"}\n",
			[]string{"request.json", "answer.json", "provider.head", "provider.json", "want.json"},
		},
		"lacks": {
			"-- request.json --\n{\"seed\":1,\"messages\":[{\"role\":\"user\",\"content\":\"a\"}]}\n",
			[]string{"request.json", "error.json"},
		},
		"fails": {
			"-- answer.head --\n429\n-- answer.json --\n{\"error\":{\"kind\":\"slow_down\",\"message\":\"x\"}}\n",
			[]string{"answer.head", "answer.json", "failure.json"},
		},
	} {
		path := filepath.Join("acme", "testdata", name+".txtar")
		require.NoError(t, os.WriteFile(path, []byte(c.text), 0o600))
		status, out, errs = interlockRun(t, "plugin", "test", filepath.Join("acme", "acme.wasm"), "--update")
		require.Zero(t, status, out+errs)
		require.Contains(t, errs, "wrote "+path)
		a, err := txtar.ParseFile(path)
		require.NoError(t, err)
		var names []string
		for _, f := range a.Files {
			names = append(names, f.Name)
			require.NotEqual(t, "null", strings.TrimSpace(string(f.Data)), f.Name)
		}
		require.ElementsMatch(t, c.want, names)
	}
	status, _, errs = interlockRun(t, "plugin", "test", filepath.Join("acme", "acme.wasm"), "--update")
	require.Zero(t, status)
	require.NotContains(t, errs, "wrote", "there is nothing left to write")

	status, out, errs = interlockRun(t, "plugin", "test", "acme", "--json")
	require.Zero(t, status, errs)
	var shown struct {
		OK     bool
		Checks []struct {
			Fixture, Check string
			OK             bool
		}
	}
	require.NoError(t, json.Unmarshal([]byte(out), &shown))
	require.True(t, shown.OK)
	require.Greater(t, len(shown.Checks), 20)

	status, out, errs = interlockRun(t, "plugin", "bench", filepath.Join("acme", "acme.wasm"), "--time", "1ms", "--json")
	require.Zero(t, status, errs)
	var bench struct{ Calls []benchRow }
	require.NoError(t, json.Unmarshal([]byte(out), &bench))
	together := map[int]bool{}
	for _, r := range bench.Calls {
		require.Positive(t, r.Units, r.Fixture)
		require.Less(t, r.Units, r.Budget)
		require.Positive(t, r.In)
		together[r.Together] = true
	}
	require.Equal(t, map[int]bool{0: true, 1: true, 8: true}, together)

	// Warm needs no secret, and says what it did.
	config := strings.Replace(soundConfig, "auth: none", "auth: bearer", 1)
	config = strings.Replace(config, `models: "*"`, `models: "*", credential: "${env:NOT_THERE_YET}"`, 1)
	named := config + "plugins:\n  - {name: acme, source: \"file:acme/acme.wasm\", config: {version: \"${env:NOT_THERE_YET}\"}}\n"
	require.NoError(t, os.WriteFile("interlock.yaml", []byte(named), 0o600))
	for _, want := range []string{"compiled", "already there"} {
		status, out, errs = interlockRun(t, "plugin", "warm")
		require.Zero(t, status, out+errs)
		require.Regexp(t, `(?m)^acme +0\.1\.0 +`+want, out)
	}
	require.NoError(t, os.WriteFile("broken.wasm", []byte("GIF89a"), 0o600))
	require.NoError(t, os.WriteFile("interlock.yaml", []byte(named+"  - {name: broken, source: \"file:broken.wasm\"}\n"), 0o600))
	status, out, errs = interlockRun(t, "plugin", "warm", "--json")
	require.Equal(t, 1, status, errs)
	var warmed struct {
		Plugins []struct{ Name, Result, Error string }
	}
	require.NoError(t, json.Unmarshal([]byte(out), &warmed))
	require.Len(t, warmed.Plugins, 2)
	require.Equal(t, "already there", warmed.Plugins[0].Result)
	require.Equal(t, "failed", warmed.Plugins[1].Result)
	require.Contains(t, warmed.Plugins[1].Error, "not a Wasm module")
	require.NoError(t, os.WriteFile("interlock.yaml", []byte(named+"  - {name: Typo!, source: \"ftp:x\"}\n"), 0o600))
	status, _, errs = interlockRun(t, "plugin", "warm")
	require.Equal(t, 1, status)
	require.Contains(t, errs, "error: interlock.yaml:")
}

// The words of a panic reach whoever writes the plugin, without what looks like a credential.
func TestThePanicOfAPluginReachesItsAuthor(t *testing.T) {
	cacheOfGo(t)
	t.Chdir(t.TempDir())
	require.Zero(t, run(t.Context(), []string{"plugin", "new", "--lang", "go", "--kind", "guard", "acme"}, new(output), new(output)))
	source := filepath.Join("acme", "guard.go")
	text, err := os.ReadFile(source)
	require.NoError(t, err)
	broken := regexp.MustCompile(`(?m)^func .*\*interlock\.Verdict\) error \{$`).ReplaceAllString(string(text),
		"$0\n\tif len(body) > 0 {\n\t\tpanic(\"oh no: key sk-canary-1234567\")\n\t}")
	require.NotEqual(t, string(text), broken)
	require.NoError(t, os.WriteFile(source, []byte(broken), 0o600))
	status, out, errs := interlockRun(t, "plugin", "test", "acme")
	require.Equal(t, 1, status, errs)
	require.Contains(t, out, "panic: oh no: key [redacted]")
	require.NotContains(t, out+errs, "sk-canary-1234567")
	status, out, errs = interlockRun(t, "plugin", "bench", filepath.Join("acme", "acme.wasm"))
	require.Equal(t, 1, status, out)
	require.Contains(t, errs, "panic: oh no: key [redacted]")
	require.NotContains(t, out+errs, "sk-canary-1234567")
}

func TestPrintableTextIsOneLine(t *testing.T) {
	require.Equal(t, "a b c\uFFFD[2J", printable("a\nb\tc\x1b[2J"))
}
