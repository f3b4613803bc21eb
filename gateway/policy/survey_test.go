package policy

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// sameFaults holds faults to want: "file:line what", file being its base name; what is as much of the
// message as stands in want.
func sameFaults(t *testing.T, dir string, faults Errors, want []string) {
	t.Helper()
	require.Len(t, faults, len(want), "%v", faults)
	for i, f := range faults {
		place, says, _ := strings.Cut(want[i], " ")
		file, err := filepath.Rel(dir, f.File)
		require.NoError(t, err)
		require.Equal(t, place, fmt.Sprintf("%s:%d", file, f.Line), f.Message)
		require.Contains(t, f.Message, says)
	}
}

// One run finds everything, whatever stage of the compiler would find it, and nothing that only
// follows from another fault. Check and an activation say the same.
func TestNoFaultHidesAnother(t *testing.T) {
	const manifest = `{"roots": ["interlock/admission", "interlock/replay", "interlock/overrides", "lib"]}`
	const admission, replay = "interlock/admission/a.rego", "interlock/replay/r.rego"
	const allowed = "package interlock.admission\n\n"
	const stopped = "package interlock.replay\n\n"
	const allow, stop = `{"allow": true, "reason": "r"}`, `{"actions": ["stop"], "reason": "r"}`
	sound := map[string]string{
		admission: allowed + "decision := " + allow + "\n",
		replay:    stopped + "decision := " + stop + "\n",
	}
	for name, c := range map[string]struct {
		files map[string]string
		want  []string
	}{
		"an unknown function and a wrong type in another file": {map[string]string{
			admission: allowed + "decision := " + allow + " if no.such(1)\n",
			replay:    stopped + "decision := " + stop + " if input.candidates.same_route == \"two\"\n",
		}, []string{
			"interlock/admission/a.rego:3 undefined function no.such",
			"interlock/replay/r.rego:3 match error",
		}},
		"… and in the same file": {map[string]string{
			replay: stopped + "decision := " + stop + " if no.such(1)\n\nother if input.candidates.same_route == \"two\"\n\nthird if also.none\n\nfourth if no.more(2)\n",
		}, []string{
			"interlock/replay/r.rego:3 undefined function no.such",
			"interlock/replay/r.rego:5 match error",
			"interlock/replay/r.rego:7 var also is unsafe",
			"interlock/replay/r.rego:9 undefined function no.more",
		}},
		"words and fields in the rule that does not compile": {map[string]string{
			replay: stopped + "decision := " + stop + " if {\n\tno.such(1)\n\tinput.failure.class == \"netwrok\"\n\tinput.failre.phase == \"x\"\n\tinput.caller.budget == \"\"\n}\n",
		}, []string{
			"interlock/replay/r.rego:4 undefined function no.such",
			`interlock/replay/r.rego:5 input.failure.class is never "netwrok"; it is one of client_invalid`,
			"interlock/replay/r.rego:6 input.failre.phase is read for replay",
			"interlock/replay/r.rego:7 input.caller.budget is read for replay",
		}},
		"an import that only the faulty rule uses, and one that none does": {map[string]string{
			"lib/l.rego": "package lib\n\nf(x) := x\n",
			"lib/m.rego": "package lib.m\n\ng := 1\n",
			replay:       stopped + "import data.lib\nimport data.lib.m\n\ndecision := " + stop + " if no.such(lib.f(1))\n",
		}, []string{
			"interlock/replay/r.rego:4 unused",
			"interlock/replay/r.rego:6 undefined function no.such",
		}},
		"a faulty helper that others use": {map[string]string{
			replay: stopped + "decision := " + stop + " if f(1) == 2\n\nf(x) := y if y := no.such(x)\n\ns contains no.such(1)\n\np[x] := no.such(x) if some x in [1]\n\nuses if {\n\t1 in s\n\tp[1] == 2\n}\n",
		}, []string{
			"interlock/replay/r.rego:5 undefined function no.such",
			"interlock/replay/r.rego:7 undefined function no.such",
			"interlock/replay/r.rego:9 undefined function no.such",
		}},
		"variables, arguments, recursion and conflicts": {map[string]string{
			replay: stopped + "decision := " + stop + " if {\n\tunused := 1\n}\n\nf(x) := 1\n\na := b\n\nb := a\n\nc := 1\n\nc(x) := x\n\nd if input.failure.phase == 3\n",
		}, []string{
			"interlock/replay/r.rego:4 unused",
			"interlock/replay/r.rego:7 unused argument x",
			"interlock/replay/r.rego:9 recursive",
			"interlock/replay/r.rego:11 recursive",
			"interlock/replay/r.rego:13 conflicting rules",
			"interlock/replay/r.rego:17 match error",
		}},
		"a file that does not parse beside one of its package": {map[string]string{
			"interlock/replay/a.rego": stopped + "helper := {",
			replay:                    stopped + "decision := " + stop + " if helper\n\nother if input.failure.class == \"netwrok\"\n\nthird if no.such(1)\n",
			admission:                 allowed + "decision := " + allow + " if missing\n",
		}, []string{
			"interlock/admission/a.rego:3 var missing is unsafe",
			"interlock/replay/a.rego:3 rego_parse_error: unexpected eof token",
			"interlock/replay/a.rego:3 rego_parse_error: unexpected eof token: expected rule value",
			"interlock/replay/r.rego:5 never \"netwrok\"",
			"interlock/replay/r.rego:7 undefined function no.such",
		}},
		"data and rules": {map[string]string{
			replay: stopped + "decision := " + stop + " if no.such(1)\n",
			"interlock/overrides/data.yaml": "providers: {}\nkinds: {}\nlabels: {}\naliases:\n  a:\n    matrix:\n      netwrok: {}\n      network:\n" +
				"        before_headers:\n          same_route_retry: onse\n  b:\n    substitution: alow\n",
		}, []string{
			"interlock/overrides/data.yaml:7 additional properties 'netwrok' not allowed; allowed: *, cancelled",
			"interlock/overrides/data.yaml:10 'once'",
			"interlock/overrides/data.yaml:12 'deny'",
			"interlock/replay/r.rego:3 undefined function no.such",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{".manifest": manifest}
			for _, some := range []map[string]string{sound, {"interlock/overrides/data.yaml": "providers: {}\nkinds: {}\nlabels: {}\naliases: {}\n"}, c.files} {
				for path, text := range some {
					files[path] = text
				}
			}
			dir := folder(t, files)
			ctx := testContext(t)
			faults, err := Check(ctx, []Source{Path("test", dir)}, patient)
			require.NoError(t, err)
			sameFaults(t, dir, faults, c.want)
			_, err = Load(ctx, Path("test", dir), patient)
			refused := Errors(nil)
			require.True(t, errors.As(err, &refused), "%v", err)
			sameFaults(t, dir, refused, c.want)
		})
	}
}

// Tests that do not compile are found beside rules that do not.
func TestFaultsOfTestsBesideThoseOfRules(t *testing.T) {
	dir := folder(t, map[string]string{
		".manifest":                 `{"roots": ["interlock/admission"]}`,
		"interlock/a.rego":          "package interlock.admission\n\ndecision := {\"allow\": true, \"reason\": \"r\"} if no.such(1)\n",
		"interlock/a_test.rego":     "package interlock.admission_test\n\nimport data.interlock.admission\n\ntest_it if admission.decision.allow\n\ntest_other if no.more(1)\n",
		"interlock/admission_t.txt": "no Rego",
	})
	faults, err := Check(testContext(t), []Source{Path("test", dir)}, patient)
	require.NoError(t, err)
	sameFaults(t, dir, faults, []string{
		"interlock/a.rego:3 undefined function no.such",
		"interlock/a_test.rego:7 undefined function no.more",
	})
}

// A list of faults has an end.
func TestFaultsAreBounded(t *testing.T) {
	var table strings.Builder
	table.WriteString("{\"providers\": {}, \"kinds\": {}, \"labels\": {}, \"aliases\": {\n")
	for i := range 1000 {
		fmt.Fprintf(&table, "\"a%d\": {\"substitution\": \"alow\"},\n", i)
	}
	table.WriteString("\"z\": {}}}")
	_, err := Load(testContext(t), Path("test", copyBundle(t, map[string]string{"interlock/overrides/data.json": table.String()})), patient)
	var faults Errors
	require.True(t, errors.As(err, &faults))
	require.Len(t, faults, maxFaults+1)
	require.Equal(t, 2, faults[0].Line)
	require.Equal(t, "… and 800 faults more", faults[maxFaults].Message)
}

// Data in YAML is as strict as in JSON, and says where.
func TestYAMLDataSaysWhere(t *testing.T) {
	const before = "providers: {}\nkinds: {}\nlabels: {}\n"
	for name, c := range map[string]struct{ text, at, says string }{
		"a word in a block":      {before + "aliases:\n  a:\n    substitution: alow\n", "6:5", "'deny'"},
		"a word in a flow":       {before + "aliases: {a: {substitution: alow}}\n", "4:15", "'deny'"},
		"a number":               {before + "aliases: {a: {substitution: 3}}\n", "4:15", "string"},
		"a list":                 {before + "aliases:\n  a:\n    admission:\n      regions:\n        - eu\n        - 3\n", "9:11", "string"},
		"a name twice":           {before + "aliases: {}\nlabels: {}\n", "5:1", `"labels" stands twice`},
		"a name twice below":     {before + "aliases:\n  a:\n    substitution: deny\n    substitution: deny\n", "7:5", "stands twice"},
		"a quoted name twice":    {before + "aliases:\n  \"a\": {}\n  a: {}\n", "6:3", "stands twice"},
		"no YAML":                {before + "aliases: {\n", "", "YAML"},
		"no object":              {"- 1\n", "1:1", "no object"},
		"behind an alias":        {before + "aliases:\n  a: &x\n    substitution: deny\n  b:\n    matrix: *x\n", "8:5", "substitution"},
		"a name with a slash":    {before + "aliases:\n  a/b~c:\n    substitution: alow\n", "6:5", "'deny'"},
		"line ends of elsewhere": {strings.ReplaceAll(before, "\n", "\r\n") + "aliases:\r\n  a:\r\n    substitution: alow\r\n", "6:5", "'deny'"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := copyBundle(t, map[string]string{"interlock/overrides/data.json": "", "interlock/overrides/data.yaml": c.text})
			_, err := Load(testContext(t), Path("test", dir), patient)
			require.ErrorContains(t, err, "data.yaml:"+c.at)
			require.ErrorContains(t, err, c.says)
		})
	}
	dir := folder(t, map[string]string{
		".manifest": `{"roots": ["interlock/kinds"]}`,
		"data.yaml": "interlock:\n  kinds: {chat: always}\n  matrix: {}\n",
	})
	_, err := Load(testContext(t), Path("test", dir), patient)
	require.ErrorContains(t, err, "data.yaml:3:3: data.interlock.matrix lies outside the manifest's roots")
}

// What stands in two data files is named with its line, too.
func TestDataInTwoFilesSaysWhere(t *testing.T) {
	for name, text := range map[string]string{
		"interlock/data.yaml": "other: 1\nkinds:\n  chat: never\n",
		"interlock/data.json": "{\"other\": 1,\n\"kinds\":\n{\"chat\": \"never\"}}",
	} {
		_, err := Load(testContext(t), Path("test", copyBundle(t, map[string]string{name: text})), patient)
		require.ErrorContains(t, err, "data.interlock.kinds.chat stands in another data file")
		require.Regexp(t, `data\.(json|yaml):\d+:\d+: data\.interlock\.kinds\.chat`, err.Error())
	}
}
