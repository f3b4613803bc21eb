package server

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// exceptionsYAML has two channels of one model, the first in the US and of the provider acme.
const exceptionsYAML = `
providers:
  acme: {adapter: openai, base_url: "{{url acme}}/v1"}
  b: {adapter: openai, base_url: "{{url b}}/v1"}
groups:
  - name: g
    channels:
      - {name: acme, region: us, provider: acme, credential: sk-a-0001, priority: 1, models: {m: {}}}
      - {name: b, region: eu, provider: b, credential: sk-b-0001, priority: 2, models: {m: {}}}
aliases:
  checkout: {version: 1, model: m}
  support: {version: 1, model: m}
`

// withExample starts a gateway with an example's bundle over the default, for a key with labels.
func withExample(t *testing.T, name, labels, script string) *stand {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("..", "..", "examples", "policies", name))
	require.NoError(t, err)
	return setUp(t, map[string]string{"acme": script, "b": "healthy \"from b\" usage 7 2\n"}, exceptionsYAML+
		"keys:\n  - {name: k, key: \"{{key}}\", groups: [g], labels: {"+labels+"}}\n"+
		"policy: {bundles: [{name: own, path: \""+dir+"\"}]}\n")
}

// fromModels is a channel for each of two models, of which the larger may stand in for the smaller.
const fromModels = `
models:
  small: {context_window: 8192, max_output_tokens: 4096, modalities: [text], capabilities: [streaming], price: {input: 1, output: 4}}
  large: {context_window: 128000, max_output_tokens: 8192, modalities: [text], capabilities: [streaming], price: {input: 2, output: 8}}
providers:
  acme: {adapter: openai, base_url: "{{url acme}}/v1"}
  b: {adapter: openai, base_url: "{{url b}}/v1"}
groups:
  - name: g
    channels:
      - {name: acme, provider: acme, credential: sk-a-0001, models: {small: {}}}
      - {name: b, provider: b, credential: sk-b-0001, models: {large: {}}}
budgets:
  interactive: {backoff: {base: 1ms, max: 5ms}}
  patient: {deadline: 30m, max_attempts: 8, max_attempts_per_user_action: 16, max_attempts_per_route: 4, max_attempts_per_group: 8, backoff: {base: 1ms, max: 5ms}}
aliases:
  helper: {model: small, cross_model_fallback_allowed: true, substitutes: [{model: large, price_ceiling: {input: 3, output: 9}}]}
`

// labelled starts a gateway with two models and an example's bundle, for a key with labels.
func labelled(t *testing.T, name, labels, script string) *stand {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("..", "..", "examples", "policies", name))
	require.NoError(t, err)
	return setUp(t, map[string]string{"acme": script, "b": "healthy \"from b\" usage 7 2\n"}, fromModels+
		"keys:\n  - {name: k, key: \"{{key}}\", groups: [g], labels: {"+labels+"}}\n"+
		"policy: {bundles: [{name: own, path: \""+dir+"\"}]}\n")
}

// course is the channel of each attempt of a request.
func (st *stand) course(a *answer) string {
	st.t.Helper()
	var channels []string
	for _, at := range st.record(a.ID()).Attempts {
		channels = append(channels, at.Channel)
	}
	return strings.Join(channels, " ")
}

func (st *stand) embed() *answer {
	st.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	a, err := st.post(ctx, "/v1/embeddings", `{"model":"m","input":"hi"}`)
	require.NoError(st.t, err)
	return a
}

func chatWith(model string) string {
	return `{"model":"` + model + `","messages":[{"role":"user","content":"hi"}]}`
}

// The worked examples of exceptions hold for callers of a running gateway.
func TestExampleExceptions(t *testing.T) {
	t.Parallel()
	t.Run("embeddings once", func(t *testing.T) {
		t.Parallel()
		st := withExample(t, "embeddings-once", "", "on embeddings\n  status 503\non chat\n  status 503\n")
		got := st.embed()
		require.Equal(t, 502, got.Status, got.Body)
		require.Equal(t, "acme", st.course(got))
		got = st.chat(chatWith("m"))
		require.Equal(t, 200, got.Status, got.Body)
		require.Equal(t, "acme b", st.course(got))
	})
	t.Run("one provider's particular 400", func(t *testing.T) {
		t.Parallel()
		st := withExample(t, "provider-400-fallback", "",
			"on chat\n  times 1\n  status 400 code engine_cold\non chat\n  status 400 code bad_parameter\n")
		got := st.chat(chatWith("m"))
		require.Equal(t, 200, got.Status, got.Body)
		require.Equal(t, "acme b", st.course(got))
		got = st.chat(chatWith("m"))
		require.Equal(t, 400, got.Status, got.Body)
		require.Equal(t, "acme", st.course(got))
	})
	t.Run("region pinning", func(t *testing.T) {
		t.Parallel()
		st := withExample(t, "region-pinning", "residency: eu", "")
		require.Equal(t, "b", st.course(st.chat(chatWith("m"))))
		ch := withExample(t, "region-pinning", "residency: ch", "")
		got := ch.chat(chatWith("m"))
		require.Equal(t, 503, got.Status, got.Body)
		require.Equal(t, "no_eligible_route", got.errorCode())
	})
	t.Run("an alias without failover", func(t *testing.T) {
		t.Parallel()
		st := withExample(t, "alias-without-failover", "", "on chat\n  status 503\n")
		got := st.chat(chatWith("checkout"))
		require.Equal(t, 502, got.Status, got.Body)
		require.Equal(t, "acme acme", st.course(got))
		got = st.chat(chatWith("support"))
		require.Equal(t, 200, got.Status, got.Body)
		require.Equal(t, "acme b", st.course(got))
	})
	t.Run("no substitution for regulated keys", func(t *testing.T) {
		t.Parallel()
		const gone = "on chat\n  status 404 code model_not_found\n"
		free := labelled(t, "regulated-no-substitution", "team: a", gone)
		got := free.chat(chatWith("helper"))
		require.Equal(t, 200, got.Status, got.Body)
		require.Equal(t, "acme b", free.course(got))
		require.Equal(t, "large", got.Header.Get("interlock-model"))
		bound := labelled(t, "regulated-no-substitution", "regulated: hipaa", gone)
		got = bound.chat(chatWith("helper"))
		require.Equal(t, 502, got.Status, got.Body)
		require.Equal(t, "acme", bound.course(got))
		require.Empty(t, got.Header.Get("interlock-substitution"))
		got = bound.chat(chatWith("large"))
		require.Equal(t, 200, got.Status, "what it asks for itself it gets")
	})
	t.Run("patience for batch", func(t *testing.T) {
		t.Parallel()
		const flaky = "on chat\n  times 3\n  cut reset\nhealthy \"from acme\" usage 7 2\n"
		quick := labelled(t, "batch-patience", "workload: chat", flaky)
		got := quick.chat(chatWith("small"))
		require.Equal(t, 502, got.Status, got.Body)
		require.Equal(t, "acme acme", quick.course(got))
		patient := labelled(t, "batch-patience", "workload: batch", flaky)
		got = patient.chat(chatWith("small"))
		require.Equal(t, 200, got.Status, got.Body)
		require.Equal(t, "acme acme acme acme", patient.course(got))

		// A rate limit is waited for; others take another model meanwhile.
		const limited = "on chat\n  times 1\n  status 429\n  header retry-after 1\nhealthy \"from acme\" usage 7 2\n"
		quick = labelled(t, "batch-patience", "", strings.ReplaceAll(limited, "after 1", "after 60"))
		require.Equal(t, "acme b", quick.course(quick.chat(chatWith("helper"))))
		patient = labelled(t, "batch-patience", "workload: batch", limited)
		got = patient.chat(chatWith("helper"))
		require.Equal(t, 200, got.Status, got.Body)
		require.Equal(t, "acme acme", patient.course(got))
	})
}
