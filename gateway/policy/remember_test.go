package policy

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/gateway/failure"
)

func knownSets() []*ruleSet {
	memory.Lock()
	defer memory.Unlock()
	return append([]*ruleSet(nil), memory.sets...)
}

// What was made of rules is used again where data alone changes, and only there.
func TestRulesAreRemembered(t *testing.T) {
	forget()
	before := loadDir(t, copyBundle(t, nil))
	first := knownSets()
	require.Len(t, first, 1)
	dir := copyBundle(t, nil)
	here := loadDir(t, dir)
	require.NotSame(t, first[0], knownSets()[0], "another folder: faults would name its files")
	mine := knownSets()[0]

	writeFile(t, dir+"/"+matrixFile, lastInsteadOfOnce(t))
	changed := loadDir(t, dir)
	require.Same(t, mine, knownSets()[0], "one cell was changed, and no rule")
	in := openInput(failure.Network, failure.BeforeHeaders, true)
	d, meta := changed.Replay(testContext(t), &in)
	require.NoError(t, meta.Err)
	require.Equal(t, elsewhere, d.Actions[0])
	for _, r := range []*Revision{before, here} {
		d, meta = r.Replay(testContext(t), &in)
		require.NoError(t, meta.Err)
		require.Equal(t, again, d.Actions[0], "another revision keeps its own data")
	}

	writeFile(t, dir+"/interlock/replay.rego", "package interlock.replay\n\ndecision := {\"actions\": [\"stop\"], \"reason\": \"r\"}\n")
	stopped := loadDir(t, dir)
	require.NotSame(t, mine, knownSets()[0])
	d, _ = stopped.Replay(testContext(t), &in)
	require.Equal(t, actions{stop}, d.Actions)

	// A lost table is found with known rules, too.
	writeFile(t, dir+"/interlock/replay.rego", text(t, "interlock/replay.rego"))
	writeFile(t, dir+"/"+matrixFile, "{}")
	_, err := Load(testContext(t), Path("test", dir), patient)
	require.ErrorContains(t, err, "data.interlock.matrix")
}

// A grant that is taken away is not in force any more because the same rules had it before.
func TestRememberedRulesHaveTheirGrants(t *testing.T) {
	dir := copyBundle(t, map[string]string{
		"interlock/admission.rego": "package interlock.admission\n\ndecision := {\"allow\": true, \"reason\": \"r\"} if time.now_ns() > 0\n",
	})
	granted := Options{Timeout: patient.Timeout, Grants: []string{"time.now_ns"}}
	for range 2 {
		_, err := Load(testContext(t), Path("test", dir), granted)
		require.NoError(t, err)
		_, err = Load(testContext(t), Path("test", dir), patient)
		require.ErrorContains(t, err, "undefined function time.now_ns")
	}
}

// What is remembered is bounded.
func TestMemoryIsBounded(t *testing.T) {
	forget()
	defer forget()
	for i := range maxTrees + 20 {
		module := "package interlock.other\n\nx := " + fmt.Sprint(i) + "\n"
		_, faults := modulesOf(&Bundle{source: Path("test", "d"), list: []file{{fmt.Sprint("f", i, ".rego"), []byte(module)}}}, capabilities(nil))
		require.Empty(t, faults)
	}
	large := "package interlock.other\n\n# " + strings.Repeat("x", maxTreeBytes/2) + "\n\nx := 1\n"
	for i := range 3 {
		_, faults := modulesOf(&Bundle{source: Path("test", "d"), list: []file{{fmt.Sprint("g", i, ".rego"), []byte(large)}}}, capabilities(nil))
		require.Empty(t, faults)
	}
	for range keptRuleSets + 2 {
		loadDir(t, copyBundle(t, nil))
	}
	memory.Lock()
	defer memory.Unlock()
	require.LessOrEqual(t, len(memory.trees), maxTrees)
	require.LessOrEqual(t, memory.bytes, maxTreeBytes)
	require.Len(t, memory.sets, keptRuleSets)
}

// Revisions on one compiler decide while others are made on it.
func TestSharedRulesHammer(t *testing.T) {
	active := builtin(t)
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() {
			for range 3 {
				r, err := Load(testContext(t), Builtin(), patient)
				if err != nil {
					t.Error(err)
					return
				}
				in := openInput(failure.ServerError, failure.BeforeHeaders, true)
				if _, meta := r.Replay(testContext(t), &in); meta.Err != nil {
					t.Error(meta.Err)
				}
			}
		})
	}
	for i := range 300 {
		in := openInput(failure.Network, failure.BeforeHeaders, true)
		in.Request.Alias = fmt.Sprint("alias-", i)
		if _, meta := active.Replay(testContext(t), &in); meta.Err != nil {
			t.Error(meta.Err)
		}
	}
	all.Wait()
}
