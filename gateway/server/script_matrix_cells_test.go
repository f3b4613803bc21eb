package server

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/policies"
)

// cannotOccur are the cells that no provider and no caller can bring about, with the reason. An
// operator's override can still call a failure so where a phase admits it: those stories are
// told too, and marked as declared.
var cannotOccur = map[string]string{
	"gateway_denied before_headers":      "the gateway denies a request before its first attempt",
	"gateway_denied before_output":       "likewise",
	"gateway_denied after_output":        "likewise; there is no guard that could deny later",
	"empty_completion before_headers":    "nothing can be empty before its 2xx head was accepted",
	"empty_completion after_output":      "output is out: it was not empty",
	"schema_invalid before_headers":      "there is no answer to hold against the schema",
	"schema_invalid after_output":        "a released answer is judged when it is whole: by then it is delivered, and a success",
	"refusal before_headers":             "a refusal is an answer",
	"refusal before_output":              "a refusal is an answer, and its first word is output",
	"refusal after_output":               "a refusal that is whole is a success, one that breaks off is a partial_stream",
	"partial_stream before_headers":      "a stream is partial only once output is out",
	"partial_stream before_output":       "likewise",
	"side_effect_unknown before_headers": "a tool execution without a known end stops a request before its first attempt",
	"side_effect_unknown before_output":  "likewise",
	"side_effect_unknown after_output":   "likewise",
	"none before_output":                 "none is a request without an attempt",
	"none after_output":                  "likewise",
}

// elsewhere are cells with a test of their own.
var elsewhere = map[string]string{
	"none before_headers": "TestARequestWithoutARouteToBeginWith",
}

type matrixData map[string]map[string]map[string]string

func defaultMatrix(t *testing.T) matrixData {
	t.Helper()
	b, err := policies.Files.ReadFile("interlock/matrix/data.json")
	require.NoError(t, err)
	var m matrixData
	require.NoError(t, json.Unmarshal(b, &m))
	require.NotEmpty(t, m)
	return m
}

// TestEveryCellOfTheDefaultMatrixHasAStory walks the default bundle's data: each class × phase ×
// idempotent has a story, or a reason why it cannot occur.
func TestEveryCellOfTheDefaultMatrixHasAStory(t *testing.T) {
	t.Parallel()
	told := map[string]map[bool]bool{} // by cell, by idempotent
	for i := range failings {
		f := &failings[i]
		cell := f.cell()
		if f.declared && cannotOccur[cell] == "" {
			continue // it comes on top of a provider's own way to fail so
		}
		if !f.declared {
			require.Empty(t, cannotOccur[cell], "%s occurs", cell)
		}
		for _, tl := range f.tellings("p") {
			if told[cell] == nil {
				told[cell] = map[bool]bool{}
			}
			told[cell][tl.idempotent] = true
		}
	}
	cells := map[string]bool{}
	for class, phases := range defaultMatrix(t) {
		for phase := range phases {
			cell := class + " " + phase
			cells[cell] = true
			for _, idempotent := range []bool{true, false} {
				if !told[cell][idempotent] && cannotOccur[cell] == "" && elsewhere[cell] == "" {
					t.Errorf("%s, idempotent %t: no story tells it, and no reason says why it cannot occur", cell, idempotent)
				}
			}
		}
	}
	for _, of := range []map[string]string{cannotOccur, elsewhere} {
		for cell := range of {
			require.Contains(t, cells, cell, "the matrix has no such cell")
		}
	}
	for cell := range told {
		require.Contains(t, cells, cell, "the matrix has no such cell")
	}
}

// TestTheCoursesAreTheMatrix holds what the stories expect against the words of the data.
func TestTheCoursesAreTheMatrix(t *testing.T) {
	t.Parallel()
	m := defaultMatrix(t)
	require.Len(t, m, len(courses)+1, "every class and the row none")
	for class, c := range courses {
		for _, phase := range []string{"before_headers", "before_output"} {
			row := m[class][phase]
			require.Equal(t, row["same_route_retry"] != "no", strings.Contains(c.lone, "r"), "%s %s", class, phase)
			require.Equal(t, row["same_route_retry"] == "once", strings.HasPrefix(c.equal, "ir"), "%s %s", class, phase)
			fallback := !slices.Contains([]string{"no", "verified"}, row["same_contract_fallback"])
			require.Equal(t, fallback, strings.Contains(c.equal, "f"), "%s %s", class, phase)
			substitution := !slices.Contains([]string{"no", "verified"}, row["model_substitution"])
			require.Equal(t, substitution, strings.Contains(c.approved, "s"), "%s %s", class, phase)
			require.NotContains(t, c.unapproved, "s")
		}
		for act, word := range m[class]["after_output"] {
			require.Equal(t, "no", word, "%s after_output %s", class, act)
		}
	}
}

// TestAnswersThatAreNoFailures: what cannot be a cell of the matrix because it is an answer.
func TestAnswersThatAreNoFailures(t *testing.T) {
	t.Parallel()
	const schema = `,"response_format":{"type":"json_schema","json_schema":{"name":"p","strict":true,"schema":{"type":"object",` +
		`"properties":{"city":{"type":"string"}},"required":["city"],"additionalProperties":false}}}`
	for name, c := range map[string]struct{ fault, more, holds string }{
		"a refusal":                          {`answer refusal "No, thank you."`, "", "thank"},
		"a filter's finish":                  {`answer "half" finish content_filter`, "", "content_filter"},
		"a released answer against a schema": {`answer "{\"city\": 7}"`, schema, "city"},
		"reasoning alone":                    {`answer reasoning "I think." finish length`, "", "think"},
	} {
		for _, stream := range []string{"true", "false"} {
			t.Run(name+"/stream "+stream, func(t *testing.T) {
				t.Parallel()
				st := setUp(t, map[string]string{"a": "on chat\n  " + c.fault + "\n", "b": ""}, twoChannels)
				got := st.chat(`{"model":"m","stream":` + stream + `,"messages":[{"role":"user","content":"hi"}]` + c.more + `}`)
				require.Equal(t, 200, got.Status, got.Body)
				require.Contains(t, got.Body, c.holds)
				r := st.record(got.ID())
				require.Equal(t, "success", r.Terminal)
				require.Len(t, r.Attempts, 1)
				require.Equal(t, "success", r.Attempts[0].Terminal)
				require.Empty(t, r.Attempts[0].Class)
				st.calls(map[string]int{"a": 1, "b": 0})
			})
		}
	}
}

// TestARequestWithoutARouteToBeginWith is the matrix's row none: every route of the model is
// switched off, so that another model is the first attempt, or there is none.
func TestARequestWithoutARouteToBeginWith(t *testing.T) {
	t.Parallel()
	st := setUp(t, map[string]string{"a": "", "well": "healthy \"well\" usage 7 2\n"}, "providers:\n"+
		"  a: {adapter: openai, base_url: \"{{url a}}/v1\"}\n  well: {adapter: openai, base_url: \"{{url well}}/v1\"}\n"+matrixYAML+`
groups:
  - name: g
    channels:
      - {name: a, provider: a, credential: sk-a-0001, models: {m: {}}}
      - {name: s, provider: well, credential: sk-s-0001, models: {n: {}}}
keys:
  - {name: k, key: "{{key}}", groups: [g]}
`)
	st.switchOff("channel", "g/a")
	body := func(model string) string {
		return `{"model":"` + model + `","messages":[{"role":"user","content":"hi"}]}`
	}
	for _, side := range []string{"none", "possible"} {
		a := st.chat(body("m"), "interlock-side-effects", side)
		require.Equal(t, 503, a.Status)
		require.Equal(t, "no_eligible_route", a.errorCode())
		require.Empty(t, st.record(a.ID()).Attempts)
		require.Equal(t, "exhausted", st.record(a.ID()).Terminal)
	}
	a := st.chat(body("agent"), "interlock-side-effects", "none")
	require.Equal(t, 200, a.Status, a.Body)
	require.Equal(t, "approved; reason=no_route_available", a.Header.Get("interlock-substitution"))
	require.Equal(t, "model_substitution", a.Header.Get("interlock-cause"))
	r := st.record(a.ID())
	require.Len(t, r.Attempts, 1)
	require.Equal(t, "model_substitution", r.Attempts[0].Cause)
	st.calls(map[string]int{"a": 0, "well": 1})

	a = st.chat(body("agent"), "interlock-side-effects", "possible") // then another model is not approved
	require.Equal(t, 503, a.Status, a.Body)
	require.Equal(t, "no_eligible_route", a.errorCode())
	require.False(t, st.record(a.ID()).decided(t, "substitution")[0].Approve)
	st.calls(map[string]int{"a": 0, "well": 1})
}
