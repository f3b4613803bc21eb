package policy

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A bundle is probed with the request kinds that can matter to it.
func TestKindsToProbe(t *testing.T) {
	require.Equal(t, []string{"chat"}, builtin(t).kindsToProbe(PointReplay), "no table knows a kind")

	r := loadDir(t, copyBundle(t, map[string]string{
		"interlock/overrides/data.json": `{"kinds": {"embeddings": {"substitution": "deny"}}}`,
	}))
	for _, p := range []Point{PointAdmission, PointReplay} {
		require.Equal(t, []string{"chat", "embeddings"}, r.kindsToProbe(p), p)
	}

	const rest = `decision := {"actions": ["stop"], "reason": "r"}`
	all := len(r.kinds)
	for name, c := range map[string]struct {
		rule string
		want int
	}{
		"not read":            {rest, 1},
		"a part of the input": {rest + " if count(input.request) > 0", all},
		"the whole input":     {rest + " if count(input) > 0", all},
		"compared":            {rest + ` if input.request.kind != "x"`, all},
		"a variable":          {rest + " if {\n\tkind := input.request.kind\n\tkind != \"x\"\n}", all},
		"given to a function": {rest + " if count(input.request.kind) > 0", all},
		"a table's index":     {"decision := object.union({\"actions\": [\"stop\"], \"reason\": \"r\"}, more)\n\ndefault more := {}\n\nmore := {\"rule\": data.interlock.kinds[input.request.kind]}", all},
		"an absent table's":   {"decision := object.union({\"actions\": [\"stop\"], \"reason\": \"r\"}, more)\n\ndefault more := {}\n\nmore := {\"rule\": data.interlock.overrides.none[input.request.kind]}", 1},
		"a rule's index":      {"t := {\"chat\": 1}\n\ndefault more := {}\n\nmore := {\"delay_ms\": t[input.request.kind]}\n\ndecision := object.union({\"actions\": [\"stop\"], \"reason\": \"r\"}, more)", all},
		"the endpoint":        {"default more := {}\n\nmore := {\"rule\": data.interlock.kinds[input.request.endpoint]}\n\ndecision := object.union({\"actions\": [\"stop\"], \"reason\": \"r\"}, more)", all},
	} {
		t.Run(name, func(t *testing.T) {
			r := loadDir(t, copyBundle(t, map[string]string{"interlock/replay.rego": "package interlock.replay\n\n" + c.rule + "\n"}))
			require.Len(t, r.kindsToProbe(PointReplay), c.want)
		})
	}

	// A decision that is missing for one kind is found.
	missing := refusal(t, map[string]string{
		"interlock/perhaps/data.json": `{"images": {"chat": 1}}`,
		"interlock/replay.rego":       "package interlock.replay\n\ndecision := {\"actions\": [\"stop\"], \"reason\": \"r\"} if not data.interlock.perhaps[input.request.kind]\n",
	})
	require.Contains(t, missing, "kind images")
}
