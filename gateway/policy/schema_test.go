package policy

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/interlock-gateway/interlock/gateway/failure"
)

func words[T interface{ String() string }](all []T) []string {
	list := make([]string, len(all))
	for i, v := range all {
		list[i] = v.String()
	}
	return list
}

// The schema's words are the types' words.
func TestSchemaWords(t *testing.T) {
	causes := []failure.Cause{failure.Initial, failure.SameRouteRetry, failure.SameContractFallback, failure.ModelSubstitution}
	for path, want := range map[string][]string{
		"failure.class":             append(words(failure.Classes()), "none"),
		"failure.adapter_class":     words(failure.Classes()),
		"failure.phase":             words(failure.Phases()),
		"failure.transport":         words(failure.Transports()),
		"attempt.cause":             words(causes),
		"request.structured_output": structuredOutputs,
		"request.side_effects":      sideEffects,
		"request.release":           releases,
		"caller.substitution":       wishes,
		"budget.time_left":          timesLeft,
		"budget.retry_after":        retryAfters,
		"candidate.context_window":  windows,
	} {
		require.ElementsMatch(t, want, enums()[path], path)
	}

	var outputs struct {
		Properties map[string]schemaNode `json:"properties"`
	}
	require.NoError(t, json.Unmarshal(schemaText("failure"), &outputs))
	require.ElementsMatch(t, words(failure.Classes()), outputs.Properties["class"].Enum)
	require.ElementsMatch(t, scopes, outputs.Properties["scope"].Enum)
	require.ElementsMatch(t, healths, outputs.Properties["health"].Enum)
}

// Every field of the schema is a field of some point's input, and the other way round.
func TestSchemaFields(t *testing.T) {
	var root schemaNode
	require.NoError(t, json.Unmarshal(schemaText(inputSchema), &root))
	described := map[string]bool{"": true}
	var visit func(path string, n *schemaNode)
	visit = func(path string, n *schemaNode) {
		for name, p := range n.Properties {
			inner := strings.TrimPrefix(path+"."+name, ".")
			described[inner] = true
			if inner != "alias.requires" && inner != "alias.quality_gates" { // one opaque object each
				visit(inner, p)
			}
		}
	}
	visit("", &root)
	asked := map[string]bool{}
	for p := range points {
		maps.Copy(asked, pathsOf(p).fields)
	}
	require.Equal(t, slices.Sorted(maps.Keys(described)), slices.Sorted(maps.Keys(asked)))
}

var name = rapid.SampledFrom([]string{"", "a", "web-app", "größer", "with \"quotes\" \\ and \n", "x/y.z"})

func anyOf[T ~uint8](t *rapid.T, label string, last T) T {
	return T(rapid.IntRange(0, int(last)).Draw(t, label))
}

func anyRequest(t *rapid.T) Request {
	return Request{
		Endpoint:         rapid.SampledFrom([]string{"", "chat_completions", "responses", "embeddings"}).Draw(t, "endpoint"),
		Kind:             name.Draw(t, "kind"),
		Model:            name.Draw(t, "model"),
		Alias:            name.Draw(t, "alias"),
		Modalities:       ListOf(rapid.SliceOf(rapid.SampledFrom([]string{"text", "image", "audio"})).Draw(t, "modalities")...),
		StructuredOutput: anyOf(t, "structured", JSONSchema),
		SideEffects:      anyOf(t, "effects", PossibleSideEffects),
		Stream:           rapid.Bool().Draw(t, "stream"),
		Tools:            rapid.Bool().Draw(t, "tools"),
		Idempotent:       rapid.Bool().Draw(t, "idempotent"),
	}
}

func anyLabels(t *rapid.T) Object {
	return LabelsOf(rapid.MapOf(name, name).Draw(t, "labels"))
}

func anyPrice(t *rapid.T) Price {
	return Price{Input: rapid.Float64Range(-1, 100).Draw(t, "in"), Output: rapid.Float64Range(-1, 100).Draw(t, "out")}
}

func anyInput(t *rapid.T) (Point, asked) {
	var detail *Detail
	if rapid.Bool().Draw(t, "has detail") {
		detail = &Detail{
			Now: time.UnixMilli(rapid.Int64Range(0, 1<<41).Draw(t, "now")), Elapsed: time.Duration(rapid.Int64().Draw(t, "elapsed")),
			BodyBytes: rapid.Int64Range(-9, 1<<40).Draw(t, "bytes"),
		}
	}
	class := failure.Class(rapid.IntRange(0, len(failure.Classes())).Draw(t, "class"))
	phase := rapid.SampledFrom(failure.Phases()).Draw(t, "phase")
	p := Point(rapid.IntRange(0, int(points)-1).Draw(t, "point"))
	switch p {
	case PointAdmission:
		return p, &AdmissionInput{
			Key: Key{Name: name.Draw(t, "key"), Labels: anyLabels(t)}, Request: anyRequest(t),
			Caller: Caller{Substitution: anyOf(t, "wish", Deny), Budget: name.Draw(t, "budget")}, Detail: detail,
		}
	case PointFailure:
		return p, &FailureInput{
			Failure: FailureFacts{
				AdapterClass: class, Transport: rapid.SampledFrom(failure.Transports()).Draw(t, "transport"),
				Status:       rapid.IntRange(0, 999).Draw(t, "status"),
				ProviderCode: NormaliseCode(rapid.String().Draw(t, "code")), ProviderType: NormaliseCode(rapid.String().Draw(t, "type")),
				Phase: phase, RequestSent: rapid.Bool().Draw(t, "sent"), RetryAfterPresent: rapid.Bool().Draw(t, "after"),
			},
			Channel: Channel{name.Draw(t, "group"), name.Draw(t, "channel"), name.Draw(t, "provider"), name.Draw(t, "region")},
			Model:   name.Draw(t, "model"), Detail: detail,
		}
	case PointSubstitution:
		gates, err := ObjectOf(map[string]float64{"task_success_rate_min": rapid.Float64Range(0, 1).Draw(t, "gate")})
		if err != nil {
			t.Fatal(err)
		}
		return p, &SubstitutionInput{
			Request: anyRequest(t), Labels: anyLabels(t), Alias: Alias{Name: name.Draw(t, "alias"), Version: 3, QualityGates: gates},
			Requested: Model{name.Draw(t, "requested"), anyPrice(t)},
			Candidate: Candidate{
				Model: name.Draw(t, "candidate"), Price: anyPrice(t), Capabilities: ListOf("streaming", "tools"),
				ContextWindow: anyOf(t, "window", LargerWindow), Evidence: NoEvidence,
			},
			Substitution: anyOf(t, "wish", Deny), Class: class, Detail: detail,
		}
	default:
		return p, &ReplayInput{
			Failure: Failed{class, phase, rapid.Bool().Draw(t, "sent")},
			Request: ReplayRequest{Kind: name.Draw(t, "kind"), Alias: name.Draw(t, "alias"), Release: anyOf(t, "release", ReleaseBuffered)},
			Labels:  anyLabels(t), Attempt: Attempt{Number: 3, SameRoute: 2, SameGroup: 2, Cause: anyOf(t, "cause", failure.ModelSubstitution)},
			Budget: Budget{
				AttemptsLeft: rapid.IntRange(0, 5).Draw(t, "left"), TimeLeft: anyOf(t, "time", AmpleTime),
				RetryAfter: anyOf(t, "retry", LongRetryAfter), RetryAfterFits: rapid.Bool().Draw(t, "fits"),
			},
			Candidates: Candidates{SameRoute: 1, SameContract: rapid.IntRange(0, 3).Draw(t, "same")}, Detail: detail,
		}
	}
}

// Whatever the facts, the record's JSON is what the evaluator sees, it holds to the schema, and
// it has every field of its point.
func TestInputsAreOneThing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, in := anyInput(t)
		text := encodeJSON(in)
		doc, err := decodeJSON(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if faults := violations(inputSchema, doc); len(faults) > 0 {
			t.Fatalf("%s: %v", text, faults)
		}
		if seen := ast.MustInterfaceToValue(doc); seen.Compare(encodeAST(in)) != 0 {
			t.Fatalf("recorded %s\nevaluated %s", seen, encodeAST(in))
		}
		missing := pathsOf(p).fields
		var visit func(path string, v any)
		visit = func(path string, v any) {
			delete(missing, path)
			object, _ := v.(map[string]any)
			for name, inner := range object {
				visit(strings.TrimPrefix(path+"."+name, "."), inner)
			}
		}
		visit("", doc)
		for path := range missing {
			if path != "detail" && !strings.HasPrefix(path, "detail.") {
				t.Fatalf("%s: no %s", text, path)
			}
		}
	})
}

func TestCanonical(t *testing.T) {
	require.Equal(t, ListOf("b", "a", "b"), ListOf("a", "b"))
	require.Equal(t, ListOf(), List{})
	require.Equal(t, "[]", List{}.JSON())
	require.NotEqual(t, OrderedListOf("b", "a"), OrderedListOf("a", "b"))
	require.Equal(t, LabelsOf(nil), LabelsOf(map[string]string{}))
	require.Equal(t, `{"a":"1","b":"2"}`, LabelsOf(map[string]string{"b": "2", "a": "1"}).JSON())
	o, err := ObjectOf(struct {
		B int64   `json:"b"`
		A []int   `json:"a"`
		C float64 `json:"c,omitempty"`
	}{B: 1 << 60, A: []int{1}})
	require.NoError(t, err)
	require.Equal(t, `{"a":[1],"b":1152921504606846976}`, o.JSON())
	_, err = ObjectOf([]int{1})
	require.Error(t, err)
	o, err = ObjectOf(struct{}{})
	require.NoError(t, err)
	require.Equal(t, Object{}, o)
}

func TestQuantise(t *testing.T) {
	require.Equal(t, NoTime, QuantiseTimeLeft(499*time.Millisecond))
	require.Equal(t, NoTime, QuantiseTimeLeft(-time.Second))
	require.Equal(t, ShortTime, QuantiseTimeLeft(500*time.Millisecond))
	require.Equal(t, SomeTime, QuantiseTimeLeft(2*time.Second))
	require.Equal(t, AmpleTime, QuantiseTimeLeft(30*time.Second))
	require.Equal(t, NoRetryAfter, QuantiseRetryAfter(time.Hour, false))
	require.Equal(t, ShortRetryAfter, QuantiseRetryAfter(5*time.Second, true))
	require.Equal(t, LongRetryAfter, QuantiseRetryAfter(6*time.Second, true))
	require.Equal(t, LargerWindow, CompareWindows(200, 100))
	require.Equal(t, SmallerWindow, CompareWindows(50, 100))
	require.Equal(t, EqualWindow, CompareWindows(100, 100))
	require.Equal(t, UnknownWindow, CompareWindows(0, 100))
}

func TestNormaliseCode(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "rate_limit_exceeded": "rate_limit_exceeded", "DeploymentNotFound": "deploymentnotfound",
		"Too many\x00things!": "too_many_things_", "ValidationException:http": "validationexception:http", "ü": "_",
		strings.Repeat("a", 100): strings.Repeat("a", 64), "\xff\xfe": "_",
	} {
		require.Equal(t, want, NormaliseCode(in))
	}
	require.Zero(t, testing.AllocsPerRun(10, func() { NormaliseCode("rate_limit_exceeded") }))
}
