package server

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// refusalBody is what every error to a caller holds.
type refusalBody struct {
	Error struct {
		Message, Type, Code string
		Param               *string
		Interlock           struct {
			RequestID string `json:"request_id"`
			Terminal  string
		}
	}
}

// Every error of the callers' side has the same shape, whoever answers it: the head's reader,
// a look-up, or an exchange.
func TestErrorsHaveOneShape(t *testing.T) {
	st := setUp(t, map[string]string{"a": "", "b": ""}, twoChannels)
	wrongKey := map[string]string{"Authorization": "Bearer nobody"}
	for _, c := range []struct {
		method, path, body, code string
		status                   int
		header                   map[string]string
	}{
		{"GET", "/v1/models/nobody-has-this", "", "model_not_found", 404, nil},
		{"GET", "/interlock/v1/requests/req_01JZZZZZZZZZZZZZZZZZZZZZZZ", "", "not_found", 404, nil},
		{"GET", "/interlock/v1/requests/nonsense", "", "not_found", 404, nil},
		{"GET", "/v1/nothing", "", "not_found", 404, nil},
		{"GET", "/v1/chat/completions", "", "invalid_request", 405, nil},
		{"DELETE", "/v1/models", "", "invalid_request", 405, nil},
		{"GET", "/v1/models", "", "invalid_api_key", 401, wrongKey},
		{"POST", "/v1/chat/completions", "{}", "invalid_request", 400, nil},
		{"POST", "/v1/chat/completions", `{"model":"nobody-has-this","messages":[{"role":"user","content":"hi"}]}`, "model_not_found", 404, nil},
	} {
		t.Run(c.method+" "+c.path+" "+c.code, func(t *testing.T) {
			got := st.any(t, c.method, c.path, c.body, c.header)
			require.Equal(t, c.status, got.Status, got.Body)
			require.Equal(t, "application/json", got.Header.Get("Content-Type"))
			require.Equal(t, "false", got.Header.Get("X-Should-Retry"))
			require.Equal(t, "theirs", got.Header.Get("Interlock-Correlation-Id"))
			id := got.Header.Get("X-Request-Id")
			require.Regexp(t, `^req_[0-9A-Z]{26}$`, id)
			var r refusalBody
			require.NoError(t, json.Unmarshal([]byte(got.Body), &r), got.Body)
			require.Equal(t, c.code, r.Error.Code)
			require.NotEmpty(t, r.Error.Type)
			require.Regexp(t, `\(request `+id+`\)$`, r.Error.Message)
			require.Equal(t, id, r.Error.Interlock.RequestID)
			require.Equal(t, "policy_stop", r.Error.Interlock.Terminal)
		})
	}
}

// any makes any request, with the key of the stand unless another header says otherwise.
func (st *stand) any(t *testing.T, method, path, body string, header map[string]string) *answer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, "http://"+st.Addr().String()+path, strings.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer "+callersKey)
	req.Header.Set("X-Request-Id", "theirs")
	for name, value := range header {
		req.Header.Set(name, value)
	}
	resp, err := st.client.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return &answer{Status: resp.StatusCode, Header: resp.Header, Body: string(b)}
}

// A request that never got past authentication is counted once, by its endpoint, with a body or
// without one.
func TestARefusedRequestIsCountedOnce(t *testing.T) {
	t.Parallel()
	st := setUp(t, map[string]string{"a": "healthy \"fine\"\n"}, `
providers: {a: {adapter: openai, base_url: "{{url a}}"}}
groups: [{name: all, channels: [{name: one, provider: a, credential: sk-upstream-1, models: {m: }}]}]
keys: [{name: caller, key: "{{key}}", groups: [all]}]
`)
	for range 3 {
		require.Equal(t, 401, st.chat(saying+`x"}]}`, "Authorization", "Bearer ilk-nobody-0123456789").Status)
	}
	resp, err := st.client.Get("http://" + st.AdminAddr().String() + "/metrics")
	require.NoError(t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	var counted []string
	for line := range strings.Lines(string(b)) {
		if strings.HasPrefix(line, "interlock_requests_total{") {
			counted = append(counted, strings.TrimSpace(line))
		}
	}
	require.Len(t, counted, 1)
	require.Contains(t, counted[0], `endpoint="chat_completions"`)
	require.True(t, strings.HasSuffix(counted[0], " 3"), counted[0])
}
