package policy

import (
	"archive/tar"
	"compress/gzip"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/policies"

	"github.com/interlock-gateway/interlock/gateway/failure"
)

func TestOneCellChangesBehaviour(t *testing.T) {
	in := openInput(failure.MalformedAnswer, failure.BeforeOutput, true)
	before, meta := builtin(t).Replay(testContext(t), &in)
	require.NoError(t, meta.Err)
	require.Equal(t, actions{elsewhere, other, stop}, before.Actions)

	row := `"before_output": {"same_route_retry": "no", "same_contract_fallback": "yes", "model_substitution": "after_same_contract"}`
	text := edited(t, "interlock/matrix/data.json", `"malformed_answer": {`, `"malformed_answer": {`)
	start := strings.Index(text, `"malformed_answer": {`)
	cell := start + strings.Index(text[start:], row) + len(`"before_output": {"same_route_retry": "`)
	text = text[:cell] + "last" + text[cell+len("no"):]
	dir := copyBundle(t, map[string]string{"interlock/matrix/data.json": text})
	r := loadDir(t, dir)
	after, meta := r.Replay(testContext(t), &in)
	require.NoError(t, meta.Err)
	require.Equal(t, actions{elsewhere, other, again, stop}, after.Actions)
	require.NotEqual(t, builtin(t).digest, r.digest, "another content is another revision")
}

func TestEqualContentIsTheSameRevision(t *testing.T) {
	a, b := loadDir(t, copyBundle(t, nil)), loadDir(t, copyBundle(t, nil))
	require.Equal(t, a.ID(), b.ID())
	require.True(t, strings.HasPrefix(a.ID(), "test@"))
	require.True(t, strings.HasPrefix(builtin(t).ID(), "builtin@"))
}

func TestTarball(t *testing.T) {
	name := filepath.Join(t.TempDir(), "bundle.tar.gz")
	out, err := os.Create(name)
	require.NoError(t, err)
	zipped := gzip.NewWriter(out)
	archive := tar.NewWriter(zipped)
	require.NoError(t, fs.WalkDir(policies.Files, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := policies.Files.ReadFile(path)
		require.NoError(t, err)
		require.NoError(t, archive.WriteHeader(&tar.Header{Name: "/" + path, Mode: 0o644, Size: int64(len(text))}))
		_, err = archive.Write(text)
		return err
	}))
	require.NoError(t, archive.Close())
	require.NoError(t, zipped.Close())
	require.NoError(t, out.Close())

	r, err := Load(testContext(t), Path("test", name), patient)
	require.NoError(t, err)
	require.Equal(t, loadDir(t, copyBundle(t, nil)).ID(), r.ID(), "the same content, however it is packed")

	require.NoError(t, os.WriteFile(name, []byte("not gzip"), 0o644))
	_, err = Load(testContext(t), Path("test", name), patient)
	require.ErrorContains(t, err, "no gzip file")
}

func TestNoBundle(t *testing.T) {
	_, err := Load(testContext(t), Path("test", filepath.Join(t.TempDir(), "none")), patient)
	require.ErrorIs(t, err, os.ErrNotExist)
}

// Every refusal names the place and what is wrong there.
func TestRefused(t *testing.T) {
	rego := "package interlock.replay\n\n"
	const rest = `decision := {"actions": ["stop"], "reason": "r"}`
	replay := func(body string) map[string]string {
		return map[string]string{"interlock/replay.rego": rego + body}
	}
	cases := []struct {
		name    string
		changes map[string]string
		want    []string
	}{
		{"not Rego", replay("decision := {"), []string{"replay.rego:3", "rego_parse_error"}},
		{"Rego of before", replay(`decision = x { x := 1 }`), []string{"replay.rego:3", "rego_parse_error"}},
		{"a misspelt field", replay(rest + " if input.failre.phase == \"before_output\""), []string{"replay.rego:3", "undefined ref: input.failre"}},
		{
			"a misspelt field in an annotated module",
			map[string]string{"interlock/replay.rego": "# METADATA\n# schemas:\n# - input: {type: object}\n" + rego + rest + " if input.failre.phase == \"x\""},
			[]string{"replay.rego:6", "undefined ref: input.failre"},
		},
		{"a wrong type", replay(rest + " if input.candidates.same_route == \"two\""), []string{"replay.rego:3", "match error"}},
		{"an unused variable", replay("decision := d if {\n\tx := 1\n\td := {}\n}"), []string{"replay.rego:4", "unused"}},
		{"a word that is none", replay(rest + " if input.failure.phase == \"befor_headers\""), []string{
			"replay.rego:3", `input.failure.phase is never "befor_headers"`, "before_headers",
		}},
		{"… not equal", replay(rest + " if input.failure.phase != \"befor_headers\""), []string{"replay.rego:3", `never "befor_headers"`}},
		{"… the other way round", replay(rest + " if \"befor_headers\" == input.failure.phase"), []string{`never "befor_headers"`}},
		{"… in a set", replay(rest + " if input.failure.class in {\"network\", \"netwrok\"}"), []string{"replay.rego:3", `input.failure.class is never "netwrok"`}},
		{"… in a list through a variable", replay("decision := d if {\n\tclass := input.failure.class\n\twords := [\"netwrok\"]\n\tclass in words\n\td := {}\n}"), []string{`never "netwrok"`}},
		{"… in a nested body", replay("decision := d if {\n\td := [x | some x in [1]; input.failure.class == \"netwrok\"]\n}"), []string{"replay.rego:4", `never "netwrok"`}},
		{"… in an else-branch", replay("decision := 1 if input.request.idempotent\nelse := 2 if input.failure.class == \"netwrok\""), []string{"replay.rego:4", `never "netwrok"`}},
		{"… as a table's name", replay("decision := {\"netwrok\": 1}[input.failure.class]"), []string{`never "netwrok"`}},
		{"… as the name in a rule's table", replay("t := {\"netwrok\": 1}\n\ndecision := t[input.failure.class]"), []string{`never "netwrok"`}},
		{"… for object.get", replay("decision := object.get({\"netwrok\": 1}, input.failure.class, 2)"), []string{`never "netwrok"`}},
		{"… as a helper's constant", replay("decision := d if {\n\tlone\n\td := {}\n}\n\nlone if input.attempt.cause == \"first\""), []string{"replay.rego:8", `never "first"`}},
		{"… in a list input", map[string]string{"interlock/admission.rego": "package interlock.admission\n\ndecision := {\"allow\": true, \"reason\": \"r\"} if not \"pictures\" in input.request.modalities"}, []string{
			"admission.rego:3", `never "pictures"`,
		}},
		{"another point's field", replay(rest + " if input.caller.budget == \"\""), []string{"replay.rego:3", "input.caller.budget is read for replay"}},
		{"another point's field in a helper", map[string]string{
			"interlock/replay.rego": rego + "import data.interlock.lib\n\n" + rest + " if lib.dear",
			"interlock/lib.rego":    "package interlock.lib\n\ndear if input.candidate.price.input > 3\n",
		}, []string{"lib.rego:3", "input.candidate.price.input is read for replay"}},
		{"http.send", replay(`decision := http.send({"method": "get", "url": "http://127.0.0.1"}).body`), []string{"replay.rego:3", "undefined function http.send"}},
		{"net", replay(`decision := net.lookup_ip_addr("localhost")`), []string{"undefined function net.lookup_ip_addr"}},
		{"the clock", replay(`decision := time.now_ns()`), []string{"undefined function time.now_ns"}},
		{"chance", replay(`decision := rand.intn("x", 2)`), []string{"undefined function rand.intn"}},
		{"the process", replay(`decision := opa.runtime()`), []string{"undefined function opa.runtime"}},
		{"the compiler", replay(`decision := rego.parse_module("x", "package x")`), []string{"undefined function rego.parse_module"}},
		{"trace", replay(rest + ` if trace("x")`), []string{"undefined function trace"}},
		{"no entry point", replay(`verdict := 1`), []string{"there is no rule data.interlock.replay.decision"}},
		{"a function for a rule", replay(`decision(x) := x`), []string{"is a function"}},
		{"recursion", replay("decision := a\n\na := b\n\nb := a"), []string{"recursive"}},
		{"a lost module", map[string]string{"interlock/failure.rego": ""}, []string{"there is no rule data.interlock.failure.decision"}},
		{"a lost matrix", map[string]string{"interlock/matrix/data.json": ""}, []string{"replay.rego", "data.interlock.matrix is read for replay"}},
		{"a lost table", map[string]string{"interlock/overrides/data.json": ""}, []string{
			"exceptions.rego", "failure.rego", "data.interlock.overrides is read for admission", "for replay", "for substitution",
		}},
		{"a lost row, hidden from the schema", replay("import data.interlock.rows\n\ndecision := rows[input.failure.class]\n"), []string{"data.interlock.rows is read"}},
		{"a lost classification", map[string]string{"interlock/classification/data.json": ""}, []string{"failure.rego", "data.interlock.classification is read for failure"}},
		{"lost kinds", map[string]string{"interlock/kinds/data.json": ""}, []string{"data.interlock.kinds is missing"}},
		{"a lost row", map[string]string{"interlock/matrix/data.json": edited(t, "interlock/matrix/data.json", `"timeout": {`, `"tymeout": {`)}, []string{
			"data.interlock.matrix", "missing property 'timeout'", "additional properties 'tymeout' not allowed",
		}},
		{"a cell's word", map[string]string{"interlock/matrix/data.json": edited(t, "interlock/matrix/data.json", `"same_route_retry": "once"`, `"same_route_retry": "onse"`)}, []string{
			"matrix/data.json:28:24", "data.interlock.matrix.network.before_headers.same_route_retry", "'once'",
		}},
		{"a name twice", map[string]string{"interlock/matrix/data.json": edited(t, "interlock/matrix/data.json", "{\n", "{\n  \"network\": {},\n")}, []string{
			"matrix/data.json:28:3", `"network" stands twice`,
		}},
		{"no JSON", map[string]string{"interlock/matrix/data.json": edited(t, "interlock/matrix/data.json", `},`, `}`)}, []string{"matrix/data.json:4:4"}},
		{"half a JSON", map[string]string{"interlock/kinds/data.json": "{\n  \"chat\": \"always\""}, []string{"kinds/data.json:2", "ends too early"}},
		{"two JSON", map[string]string{"interlock/kinds/data.json": "{\"chat\": \"always\"}\n{}"}, []string{"kinds/data.json:2", "follows the end"}},
		{"an override's class", map[string]string{"interlock/overrides/data.json": "{\n \"providers\": {\"p\": {\"status\": {\"498\": \"overlooded\"}}},\n \"labels\": {}, \"aliases\": {}\n}"}, []string{
			"overrides/data.json:2", "data.interlock.overrides.providers.p.status.498",
		}},
		{"a JSON file by another name", map[string]string{"interlock/matrix/network.json": "{}"}, []string{"network.json", "would not be read"}},
		{"data in two files", map[string]string{"interlock/data.json": `{"kinds": {"chat": "never"}}`}, []string{"data.interlock.kinds.chat", "another data file"}},
		{"data where a rule is", map[string]string{"interlock/replay/data.json": `{"decision": {"actions": ["stop"]}}`}, []string{"conflict"}},
		{"data outside the roots", map[string]string{"other/data.json": `{"x": 1}`}, []string{"data.other lies outside the manifest's roots interlock"}},
		{"Rego outside the roots", map[string]string{"other.rego": "package other\n\nx := 1\n"}, []string{"other.rego:1", "outside the manifest's roots"}},
		{"a delta", map[string]string{"patch.json": `{"data": []}`}, []string{"delta"}},
		{"an old language", map[string]string{".manifest": `{"rego_version": 0}`}, []string{".manifest", "rego_version is 0"}},
		{"a broken manifest", map[string]string{".manifest": `{`}, []string{".manifest"}},
		{"a row lost to the rules", map[string]string{
			"interlock/replay.rego":    rego + "decision := data.interlock.rows[input.failure.class]",
			"interlock/rows/data.json": `{"timeout": {"actions": ["stop"], "reason": "r"}}`,
		}, []string{"probe class client_invalid, phase before_headers", "undefined"}},
		{"no decision for some", replay(rest + " if input.request.idempotent"), []string{"replay.rego:3", "probe class client_invalid, phase before_headers, idempotent false", "undefined"}},
		{"two decisions", replay("decision := {\"actions\": [\"stop\"], \"reason\": \"a\"}\n\ndecision := {\"actions\": [\"stop\"], \"reason\": \"b\"} if input.request.idempotent"), []string{"conflict"}},
		{"an unknown action", replay(`decision := {"actions": ["try_again"], "reason": "r"}`), []string{`"try_again"`, "same_contract_fallback"}},
		{"an unknown field", replay(`decision := {"actions": ["stop"], "reason": "r", "delai_ms": 3}`), []string{`"delai_ms" is no field`}},
		{"no object", replay(`decision := "stop"`), []string{"a string, not an object"}},
		{"an unknown class", map[string]string{"interlock/failure.rego": "package interlock.failure\n\ndecision := {\"class\": \"odd\", \"reason\": \"r\"}"}, []string{`class is "odd"`}},
		{"a failing builtin", replay(rest + " if to_number(input.failure.class) > 1"), []string{"builtin", "to_number"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			message := refusal(t, c.changes)
			for _, want := range c.want {
				require.Contains(t, message, want)
			}
		})
	}
}

// A pathological policy is refused when its probes do not end.
func TestRefusedForTime(t *testing.T) {
	start := time.Now()
	dir := copyBundle(t, map[string]string{"interlock/replay.rego": "package interlock.replay\n\n" + pathological})
	_, err := Load(testContext(t), Path("test", dir), Options{Timeout: 100 * time.Millisecond})
	require.ErrorContains(t, err, "timeout")
	require.Less(t, time.Since(start), 30*time.Second)
}

// pathological takes far longer than any time-out, interruptibly.
const pathological = `decision := {"actions": ["stop"], "reason": "slow"} if {
	n := count([1 | some a in numbers.range(1, 5000); some b in numbers.range(1, 5000); a == b])
	n > 0
}
`

func TestEveryFaultAtOnce(t *testing.T) {
	message := refusal(t, map[string]string{
		"interlock/replay.rego":         "package interlock.replay\n\ndecision := {",
		"interlock/failure.rego":        "package interlock.failure\n\ndecision := [",
		"interlock/kinds/data.json":     "{",
		"interlock/overrides/data.json": "[]",
	})
	for _, file := range []string{"replay.rego", "failure.rego", "kinds", "overrides"} {
		require.Contains(t, message, file)
	}
}

func TestGrants(t *testing.T) {
	text := `package interlock.admission

decision := {"allow": true, "reason": "r"} if time.now_ns() > 0
`
	dir := copyBundle(t, map[string]string{"interlock/admission.rego": text})
	_, err := Load(testContext(t), Path("test", dir), patient)
	require.ErrorContains(t, err, "time.now_ns")
	r, err := Load(testContext(t), Path("test", dir), Options{Timeout: patient.Timeout, Grants: []string{"time.now_ns"}})
	require.NoError(t, err)
	require.False(t, r.Memoised(PointAdmission), "the clock makes another answer each time")
	require.True(t, r.Memoised(PointReplay))
}

// Mounted configuration is made of links to folders that are swapped as a whole.
func TestLinks(t *testing.T) {
	real := copyBundle(t, nil)
	mount := t.TempDir()
	require.NoError(t, os.Symlink(real, filepath.Join(mount, "..data")))
	require.NoError(t, os.Symlink(filepath.Join("..data", "interlock"), filepath.Join(mount, "interlock")))
	require.NoError(t, os.Symlink(filepath.Join("..data", ".manifest"), filepath.Join(mount, ".manifest")))
	require.Equal(t, loadDir(t, real).ID(), loadDir(t, mount).ID())
}

func TestFilesBesideTheBundle(t *testing.T) {
	require.Equal(t, loadDir(t, copyBundle(t, nil)).ID(), loadDir(t, copyBundle(t, map[string]string{
		"README.md":                    "# hello",
		"interlock/.replay.rego.swp":   "junk",
		".git/config.json":             "{",
		"interlock/broken_test.rego":   "package x\n\n{",
		"schemas/mine/schema.json":     "{}",
		"interlock/matrix/data.json~":  "{",
		"interlock/matrix/#data.json#": "{",
	})).ID())
}

func TestPositions(t *testing.T) {
	at, fault := scan([]byte("{\n  \"a\": [1,\n    {\"b/c\": 2}],\n  \"d\": {}\n}"))
	require.Nil(t, fault)
	for pointer, want := range map[string]string{"/a": "2:3", "/a/0": "2:9", "/a/1": "3:5", "/a/1/b~1c": "3:6", "/d": "4:3"} {
		line, column := lineOf([]byte("{\n  \"a\": [1,\n    {\"b/c\": 2}],\n  \"d\": {}\n}"), at[pointer])
		require.Equal(t, want, fmt.Sprintf("%d:%d", line, column), pointer)
	}
	deep := strings.Repeat("[", 1000) + strings.Repeat("]", 1000)
	_, fault = scan([]byte(deep))
	require.Contains(t, fault.Message, "nested deeper")
}

func FuzzScan(f *testing.F) {
	for _, seed := range []string{`{}`, `{"a": 1, "a": 2}`, `{"a": [1, {"b": null}]}`, `{`, `[1,]`, "\xff", `{"a":1} {}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		at, fault := scan(text)
		require.True(t, (at == nil) != (fault == nil))
		for _, offset := range at {
			require.GreaterOrEqual(t, offset, int64(0))
			require.LessOrEqual(t, offset, int64(len(text)))
		}
		if fault != nil {
			require.GreaterOrEqual(t, fault.Line, 1)
			require.GreaterOrEqual(t, fault.Column, 1)
		}
	})
}
