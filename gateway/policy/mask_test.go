package policy

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func withMask(rules string) map[string]string {
	return map[string]string{
		".manifest":     `{"roots": ["interlock", "system/log"], "rego_version": 1}`,
		"log/mask.rego": "package system.log\n\n" + rules + "\n",
	}
}

func masked(t *testing.T, rules string) *Record {
	t.Helper()
	r := loadDir(t, copyBundle(t, withMask(rules)))
	in := admissionInput()
	_, meta := r.Admission(testContext(t), &in)
	require.NoError(t, meta.Err)
	return meta.Record
}

func TestMaskIsTheBundles(t *testing.T) {
	r := masked(t, `
mask contains "/input/key/labels/team"
mask contains "/input/key/nobody"
mask contains {"op": "upsert", "path": "/input/request/model", "value": "a model"}
mask contains {"op": "remove", "path": "/result/rule"}
`)
	before := string(r.Input)
	input, output, changed, erased := r.Masked()
	require.Contains(t, string(input), `"labels":{}`)
	require.Contains(t, string(input), `"model":"a model"`)
	require.Contains(t, string(input), `"name":"web-app"`, "what is not named stays")
	require.JSONEq(t, `{"allow": true, "reason": "allowed"}`, string(output))
	require.Equal(t, []string{"/input/request/model"}, changed)
	require.Equal(t, []string{"/input/key/labels/team", "/result/rule"}, erased)
	require.Equal(t, before, string(r.Input), "the ledger's is whole")
	require.Contains(t, before, `"team":"web"`)
}

func TestMaskOfAWholeDocument(t *testing.T) {
	input, output, _, erased := masked(t, "mask contains \"/input\"\nmask contains \"/input/key/name\"\n").Masked()
	require.Nil(t, input)
	require.NotNil(t, output)
	require.Equal(t, []string{"/input"}, erased)
}

func TestNoMaskIsNoWork(t *testing.T) {
	in := admissionInput()
	_, meta := builtin(t).Admission(testContext(t), &in)
	input, output, changed, erased := meta.Record.Masked()
	require.Equal(t, &meta.Record.Input[0], &input[0])
	require.Equal(t, &meta.Record.Output[0], &output[0])
	require.Empty(t, changed)
	require.Empty(t, erased)
}

func TestMasksThatCannotHoldAreRefused(t *testing.T) {
	for rules, says := range map[string]string{
		`mask contains "/answer"`:                            `begins with /input or /result`,
		`mask contains 7`:                                    `an element is a number`,
		`mask contains {"op": "hide", "path": "/input"}`:     `op "hide"`,
		`mask := "/input/key"`:                               `not a set`,
		`mask contains "/input/key" if input.input.key.name`: `input`,
	} {
		require.Contains(t, refusal(t, withMask(rules)), says, rules)
	}
}
