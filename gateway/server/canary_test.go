package server

import (
	"context"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What must show nowhere: what a prompt, an answer, a key or a tool's arguments hold, and
// what a provider's error says of keys, addresses and accounts.
var canaries = map[string]string{
	"prompt":               "CANARYPROMPT7431",
	"answer":               "CANARYANSWER7432",
	"tool arguments":       "CANARYARGUMENT7433",
	"caller's key":         callersKey,
	"credential":           "sk-AAAA-canary-0001",
	"other credential":     "sk-BBBB-canary-0002",
	"key in an error":      "sk-proj-canary7434abcdefghijkl",
	"address in an error":  "canary7435.internal.example",
	"account in an error":  "org-CANARY7436abcdefgh",
	"header of the caller": "CANARYHEADER7437",
}

// Each script fails its first call in one way; the message of an error holds canaries.
var failures = map[string]string{
	"client_invalid":    `status 400 code invalid_value message "bad CANARYPROMPT7431 key sk-proj-canary7434abcdefghijkl"`,
	"context_overflow":  `status 400 code context_length_exceeded message "too long at https://canary7435.internal.example/x"`,
	"upstream_auth":     `status 401 code invalid_api_key message "Incorrect API key provided: sk-AAAA-canary-0001 of org-CANARY7436abcdefgh"`,
	"model_unavailable": `status 404 code model_not_found message "no model for org-CANARY7436abcdefgh"`,
	"rate_limited":      "status 429 code rate_limit_exceeded message \"org-CANARY7436abcdefgh is over its limit\"\n  header Retry-After 1",
	"overloaded":        `status 529 code overloaded message "see https://canary7435.internal.example/status"`,
	"server_error":      `status 500 message "sk-proj-canary7434abcdefghijkl at https://canary7435.internal.example"`,
	"network":           "cut reset",
	"unknown":           `status 403 message "CANARYPROMPT7431 is odd, says sk-AAAA-canary-0001"`,
	"content_filtered":  `status 400 code content_policy_violation message "blocked for org-CANARY7436abcdefgh"`,
	"malformed_answer":  `html "<html>CANARYANSWER7432</html>"`,
	"empty_completion":  `answer "" usage 7 0`,
}

const canaryAnswer = `
on chat asks tools
  answer tool get_weather {"city": "CANARYARGUMENT7433"} usage 7 2
on chat
  answer "CANARYANSWER7432 it is" usage 7 2
`

// isolating is the class after which a channel is out of use: it comes last. Every other
// failure has a model of its own, since a rate limit holds for a while.
const isolating = "upstream_auth"

func TestCanariesShowNowhere(t *testing.T) {
	st := setUp(t, map[string]string{"a": canaryAnswer, "b": canaryAnswer}, strings.NewReplacer("{m: {upstream_model: ma}}", `"*"`, "{m: {upstream_model: mb}}", `"*"`).Replace(twoChannels)+`
log: {level: debug}
policy: {decision_log: {file: "{{dir}}/decisions.log"}}
breaker: {consecutive_failures: 0, failure_ratio: 0}
`)
	outputs := map[string]string{}
	st.partial()
	order := slices.Sorted(maps.Keys(failures))
	order = append(slices.DeleteFunc(order, func(c string) bool { return c == isolating }), isolating)
	for _, class := range order {
		act := failures[class]
		for _, stream := range []string{"true", "false"} {
			for _, name := range []string{"a", "b"} {
				st.provide(name, "on chat\n  once\n  "+act+"\n"+canaryAnswer)
			}
			body := `{"model":"` + class + stream + `","stream":` + stream + `,"messages":[{"role":"user","content":"CANARYPROMPT7431"}],` +
				`"tools":[{"type":"function","function":{"name":"get_weather","parameters":{"type":"object"}}}]}`
			got := st.chat(body, "x-custom", "CANARYHEADER7437", "cookie", "c=CANARYHEADER7437")
			if got.Status != 200 {
				outputs["error body of "+class] = got.Body
			}
			for name, value := range got.Header {
				outputs["header "+name+" of "+class] = strings.Join(value, ",")
			}
			r := st.record(got.ID())
			if class != isolating || stream == "true" {
				require.NotEmpty(t, r.Attempts, class)
			}
		}
	}
	st.chat(`{"model":"m","messages":"CANARYPROMPT7431"}`)
	outputs["metrics"] = st.operators(t, "/metrics")
	outputs["ledger list"] = st.operators(t, "/admin/v1/requests?limit=1000")
	outputs["channels"] = st.operators(t, "/admin/v1/channels")
	st.end()
	outputs["log"] = st.logs.String()
	require.NotEmpty(t, outputs["log"])
	files := 0
	require.NoError(t, filepath.WalkDir(st.dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || path == st.path {
			return err
		}
		b, err := os.ReadFile(path)
		outputs["file "+d.Name()] = string(b)
		files++
		return err
	}))
	require.Greater(t, files, 1)
	for where, text := range outputs {
		for what, canary := range canaries {
			if what == "prompt" && strings.HasPrefix(where, "error body") {
				continue // what the caller wrote may come back to the caller
			}
			require.NotContains(t, text, canary, "%s shows the %s", where, what)
		}
	}
}

// partial leaves half an answer behind, and an error in the stream.
func (st *stand) partial() {
	st.t.Helper()
	st.provide("a", "on chat stream\n  role\n  text \"CANARYANSWER7432\"\n  error {\"message\":\"sk-proj-canary7434abcdefghijkl broke\",\"type\":\"server_error\"}\n")
	st.provide("b", canaryAnswer)
	got := st.chat(`{"model":"m","stream":true,"messages":[{"role":"user","content":"CANARYPROMPT7431"}]}`)
	require.Contains(st.t, got.Body, `"code":"partial_stream"`)
	require.NotContains(st.t, got.Body, canaries["key in an error"])
}

// provide gives a provider another script.
func (st *stand) provide(name, text string) {
	st.t.Helper()
	st.providers[name].SetScript(parse(st.t, name, text))
}

// operators reads a page of the operators' side.
func (st *stand) operators(t *testing.T, path string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+st.AdminAddr().String()+path, nil)
	require.NoError(t, err)
	resp, err := st.client.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Equal(t, 200, resp.StatusCode, path)
	return string(b)
}
