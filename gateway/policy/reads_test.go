package policy

import (
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/gateway/failure"
)

// The fields of every input have a number below 64.
func TestLayouts(t *testing.T) {
	for p := range points {
		in := example(p)
		l := layoutOf(in)
		told := fieldsOfInput(in)
		require.Len(t, told.fields, bits.OnesCount64(l.below), p)
		require.Less(t, len(told.fields), 64, p)
		var read uint64
		plain, noting := l.build(told.fields, &read)
		require.Zero(t, plain.Compare(encodeAST(in)), p)
		require.Zero(t, read)
		require.Zero(t, noting.Compare(plain))
		require.Equal(t, l.below, read, "who compares the whole has read all of it")
		for _, path := range l.paths() {
			require.True(t, pathsOf(p).has(path), path)
		}
	}
}

// odd are policies that look at their input in other ways than field by field.
var odd = map[string]string{
	"by field": `decision := {"actions": ["stop"], "reason": input.failure.class} if input.attempt.number > 2
else := {"actions": ["same_route_retry", "stop"], "reason": "r"} if input.request.alias == "a"
else := {"actions": ["stop"], "reason": "r"}`,
	"by fields and labels": `decision := {"actions": ["stop"], "reason": concat("_", ["r", name])} if {
	some name, value in input.key.labels
	value == "b"
} else := {"actions": ["stop"], "reason": input.key.labels.none} if input.attempt.number > 9
else := {"actions": ["stop"], "reason": lower(input.request.kind)} if not early
else := {"actions": ["stop"], "reason": "early"}

early if input.attempt.number < 3`,
	"sections as values": `same(a, b) if a == b

decision := {"actions": ["stop"], "reason": "equal"} if {
	r := input.request
	same(r, object.union(r, {"kind": "chat"}))
} else := {"actions": ["stop"], "reason": "other"}`,
	"the whole input":       `decision := {"actions": ["stop"], "reason": crypto.md5(json.marshal(input))}`,
	"a section written out": `decision := {"actions": ["stop"], "reason": substring(concat("_", ["r", json.marshal(input.attempt)]), 0, 40)}`,
	"walking":               `decision := {"actions": ["stop"], "reason": sprintf("r%d", [count([x | walk(input, [_, x]); x == true])])}`,
	"all of a section": `decision := {"actions": ["stop"], "reason": "many"} if {
	count([v | some _, v in input.candidates; v > 0]) > 2
} else := {"actions": ["stop"], "reason": "few"}`,
	"a name from elsewhere":    `decision := {"actions": ["stop"], "reason": sprintf("r%v", [input.budget[name]])} if name := ["time_left", "retry_after"][input.candidates.same_route % 2]`,
	"object.get":               `decision := {"actions": ["stop"], "reason": object.get(input, ["failure", "phase"], "none")}`,
	"with":                     `decision := {"actions": ["stop"], "reason": r} if { r := inner with input.failure.class as "timeout" }` + "\n\ninner := concat(\"_\", [input.failure.class, input.failure.phase])",
	"by fields and their keys": `decision := {"actions": ["stop"], "reason": sprintf("r%d", [count(object.keys(input.key.labels))])}`,
}

func randomReplay(r *rand.Rand) *ReplayInput {
	pick := func(n int) int { return r.IntN(n) }
	classes, phases := append(failure.Classes(), failure.None), failure.Phases()
	in := openInput(classes[pick(len(classes))], phases[pick(len(phases))], pick(2) == 0)
	in.Failure.RequestSent = pick(2) == 0
	in.Request.Alias = []string{"", "a", "b"}[pick(3)]
	in.Request.Kind = []string{"chat", "embeddings"}[pick(2)]
	in.Labels = []Object{{}, LabelsOf(map[string]string{"a": "b"})}[pick(2)]
	in.Attempt = Attempt{Number: 1 + pick(4), SameRoute: 1 + pick(3), SameGroup: 1 + pick(3), Cause: failure.Cause(pick(3))}
	in.Budget = Budget{AttemptsLeft: pick(3), TimeLeft: TimeLeft(pick(5)), RetryAfter: RetryAfter(pick(3)), RetryAfterFits: pick(2) == 0}
	in.Candidates = Candidates{SameRoute: pick(3), SameContract: pick(3), SameContractSchemaVerified: pick(2), Substitutes: pick(2)}
	return &in
}

// However the rules look at their input: what is remembered by the fields that were read is what
// the rules give for the whole input.
func TestWhatWasReadDecides(t *testing.T) {
	revisions := map[string]*Revision{"the default": builtin(t), "exceptions": overDefault(t, examplesDir+"/alias-without-failover", examplesDir+"/batch-patience")}
	for name, body := range odd {
		revisions[name] = loadDir(t, copyBundle(t, map[string]string{"interlock/replay.rego": "package interlock.replay\n\n" + body + "\n"}))
	}
	n := 1500
	if raceEnabled || testing.Short() {
		n = 100
	}
	for name, r := range revisions {
		t.Run(name, func(t *testing.T) {
			chance := rand.New(rand.NewPCG(1, 2))
			byFields := odd[name] == "" || strings.HasPrefix(name, "by field")
			require.Equal(t, byFields, r.reach[PointReplay].byFields(PointReplay))
			if !byFields {
				return // each input is asked
			}
			l := layoutOf(randomReplay(chance))
			var known remembered[Verdict]
			hits := 0
			for range n {
				in := randomReplay(chance)
				want, err := r.verdict(t.Context(), PointReplay, encodeAST(in))
				require.NoError(t, err)
				told := fieldsOfInput(in)
				if got, ok := known.get(told.hashes); ok {
					require.Equal(t, want, got, "%s", encodeJSON(in))
					hits++
					continue
				}
				var read uint64
				_, noting := l.build(told.fields, &read)
				got, failed, err := r.judge(t.Context(), PointReplay, noting)
				require.NoError(t, err)
				require.Nil(t, failed)
				require.Equal(t, want, got, "%s", encodeJSON(in))
				known.put(read, told.hashes, got)
			}
			t.Logf("%d of %d were known, by %d sets of fields", hits, n, len(known.sets))
		})
	}
}

// What is read is what is noted, and no more.
func TestReadsOfTheDefault(t *testing.T) {
	r := builtin(t)
	reads := func(in *ReplayInput) []string {
		l := layoutOf(in)
		var read uint64
		_, noting := l.build(fieldsOfInput(in).fields, &read)
		_, failed, err := r.judge(t.Context(), PointReplay, noting)
		require.NoError(t, err)
		require.Nil(t, failed)
		var names []string
		for i, path := range l.paths() {
			if read&(1<<i) != 0 {
				names = append(names, path)
			}
		}
		slices.Sort(names)
		return names
	}
	never := openInput(failure.ClientInvalid, failure.BeforeHeaders, true)
	who := []string{"failure.class", "failure.phase", "key.labels", "request.alias", "request.kind"}
	require.Equal(t, who, reads(&never))
	open := openInput(failure.ServerError, failure.BeforeHeaders, true)
	got := reads(&open)
	require.Subset(t, got, append(who, "request.idempotent", "attempt.same_route", "candidates.same_route"))
	require.NotContains(t, got, "budget.time_left")
	require.NotContains(t, got, "request.stream")
}
