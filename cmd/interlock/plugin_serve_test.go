package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	acmeCredential = "acme-credential-canary-0001"
	acmeCallerKey  = "caller-key-canary-0001"
)

// acmeProvider is the provider that the template of an adapter speaks to, on a real socket. It
// answers with the path that it was asked at.
func acmeProvider(t *testing.T) *httptest.Server {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var q struct {
			Model  string
			Stream bool
			Turns  []struct {
				From string
				Text []string
			}
		}
		said := func(kind string, status int) {
			w.Header().Set("content-type", "application/json")
			w.WriteHeader(status)
			fmt.Fprintf(w, `{"error": {"kind": %q, "message": "acme says so", "field": "turns"}}`, kind)
		}
		if json.NewDecoder(r.Body).Decode(&q) != nil || len(q.Turns) == 0 || q.Model != "acme-large" || r.Header.Get("acme-version") != "2026-02" {
			said("bad_request", http.StatusBadRequest)
			return
		}
		if r.Header.Get("authorization") != "Bearer "+acmeCredential {
			said("bad_key", http.StatusUnauthorized)
			return
		}
		if q.Turns[0].Text[0] == "too long" {
			said("too_long", http.StatusBadRequest)
			return
		}
		const end = `"ended": "natural", "usage": {"input": 5, "output": 3}`
		if !q.Stream {
			w.Header().Set("content-type", "application/json")
			fmt.Fprintf(w, `{"id": "gen_1", "text": "asked at %s", %s}`, r.URL.Path, end)
			return
		}
		w.Header().Set("content-type", "text/event-stream")
		for _, event := range []string{
			"event: start\ndata: {\"id\": \"gen_1\"}\n\n", "event: text\ndata: {\"text\": \"asked at \"}\n\n",
			fmt.Sprintf("event: text\ndata: {\"text\": %q}\n\n", r.URL.Path), "event: end\ndata: {" + end + "}\n\n",
		} {
			for _, half := range []string{event[:len(event)/2], event[len(event)/2:]} { // events are cut anywhere
				_, _ = io.WriteString(w, half)
				w.(http.Flusher).Flush()
			}
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// served is a gateway that runs.
type served struct {
	t               *testing.T
	callers, admins string
	client          http.Client
}

// serveHere runs `interlock serve` with the configuration in this folder until the test ends.
func serveHere(t *testing.T) *served {
	ctx, stop := context.WithCancel(context.Background())
	var out, errs output
	ended := make(chan int, 1)
	go func() { ended <- run(ctx, []string{"serve"}, &out, &errs) }()
	s := &served{t: t}
	t.Cleanup(func() {
		s.client.CloseIdleConnections()
		stop()
		require.Zero(t, <-ended, errs.String())
	})
	listening := regexp.MustCompile(`callers at (\S+), operators at (\S+)`)
	require.Eventually(t, func() bool { return listening.MatchString(out.String()) || len(ended) > 0 }, time.Minute, 20*time.Millisecond)
	m := listening.FindStringSubmatch(out.String())
	require.NotNil(t, m, errs.String())
	s.callers, s.admins = addressURL(m[1]), addressURL(m[2])
	return s
}

func addressURL(address string) string {
	if strings.Contains(address, "://") {
		return strings.TrimSuffix(address, "/")
	}
	return "http://" + address
}

func (s *served) do(method, target, body string) (status int, text string) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), method, target, strings.NewReader(body))
	require.NoError(s.t, err)
	req.Header.Set("authorization", "Bearer "+acmeCallerKey)
	resp, err := s.client.Do(req)
	require.NoError(s.t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	require.NoError(s.t, err)
	return resp.StatusCode, string(b)
}

// chat asks and returns the answer's text, put together from the chunks of a stream.
func (s *served) chat(stream bool) string {
	s.t.Helper()
	status, body := s.do(http.MethodPost, s.callers+"/v1/chat/completions",
		fmt.Sprintf(`{"model": "m", "stream": %t, "messages": [{"role": "user", "content": "hello"}]}`, stream))
	require.Equal(s.t, http.StatusOK, status, body)
	type part struct{ Content string }
	read := func(text string) string {
		var a struct {
			Choices []struct{ Message, Delta part }
		}
		require.NoError(s.t, json.Unmarshal([]byte(text), &a), text)
		if len(a.Choices) == 0 {
			return ""
		}
		return a.Choices[0].Message.Content + a.Choices[0].Delta.Content
	}
	if !stream {
		require.Contains(s.t, body, `"total_tokens":8`)
		return read(body)
	}
	require.Contains(s.t, body, "data: [DONE]")
	text := ""
	for line := range strings.Lines(body) {
		if data, ok := strings.CutPrefix(strings.TrimSpace(line), "data: {"); ok {
			text += read("{" + data)
		}
	}
	return text
}

// adminPlugin is what the admin API says of the one plugin.
func (s *served) adminPlugin() (p struct {
	Name, Status, SHA256, Version string
	Error                         *string
},
) {
	s.t.Helper()
	_, body := s.do(http.MethodGet, s.admins+"/admin/v1/plugins", "")
	var answer struct{ Plugins []json.RawMessage }
	require.NoError(s.t, json.Unmarshal([]byte(body), &answer), body)
	require.Len(s.t, answer.Plugins, 1, body)
	require.NoError(s.t, json.Unmarshal(answer.Plugins[0], &p), body)
	return p
}

// The way of the guide: new, build, test, the printed lines into a configuration, traffic; then a
// change that the running gateway takes, and a broken build that it does not.
func TestANewPluginServesARunningGateway(t *testing.T) {
	cacheOfGo(t)
	t.Chdir(t.TempDir())
	for name, value := range map[string]string{"HOME": "", "GOFLAGS": "-mod=mod", "GOPROXY": "off", "GOSUMDB": "off"} {
		t.Setenv(name, value)
	}
	step := func(args ...string) string {
		t.Helper()
		status, out, errs := interlockRun(t, append([]string{"plugin"}, args...)...)
		require.Zero(t, status, out+errs)
		return out
	}
	step("new", "--lang", "go", "acme")
	require.Contains(t, step("test", "acme"), "pass  acme 0.1.0")
	printed := step("build", "acme")
	step("warm", "--config", configureAcme(t, printed, acmeProvider(t).URL))

	s := serveHere(t)
	for _, stream := range []bool{false, true} {
		require.Equal(t, "asked at /api/v2/generate", s.chat(stream))
	}
	status, body := s.do(http.MethodPost, s.callers+"/v1/chat/completions", `{"model": "m", "messages": [{"role": "user", "content": "too long"}]}`)
	require.Equal(t, http.StatusBadRequest, status, body)
	require.Contains(t, body, `"class":"context_overflow"`)
	status, body = s.do(http.MethodPost, s.callers+"/v1/chat/completions", `{"model": "m", "seed": 7, "messages": [{"role": "user", "content": "hello"}]}`)
	require.Equal(t, http.StatusBadRequest, status, body)
	require.Contains(t, body, "unsupported_parameter")
	require.Contains(t, body, "seed")

	// Another source, the same running gateway.
	source := filepath.Join("acme", "request.go")
	text, err := os.ReadFile(source)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(source, []byte(strings.Replace(string(text), "/v2/generate", "/v3/generate", 1)), 0o600))
	step("build", "acme")
	require.Eventually(t, func() bool { return s.chat(false) == "asked at /api/v3/generate" }, 20*time.Second, 50*time.Millisecond)
	require.Equal(t, "asked at /api/v3/generate", s.chat(true))
	sound := s.adminPlugin()
	require.Equal(t, "loaded", sound.Status)
	require.Nil(t, sound.Error)

	// What is broken is not taken, and everybody who asks is told.
	file := filepath.Join("acme", "acme.wasm")
	built, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(file, built[:len(built)/2], 0o600))
	degraded := func() string {
		_, body := s.do(http.MethodGet, s.admins+"/readyz", "")
		return body
	}
	require.Eventually(t, func() bool { return strings.Contains(degraded(), "plugin acme") }, 20*time.Second, 50*time.Millisecond)
	require.Contains(t, degraded(), "cut off")
	p := s.adminPlugin()
	require.Equal(t, "loaded", p.Status, "the one before stays")
	require.NotNil(t, p.Error)
	require.Contains(t, *p.Error, "cut off")
	require.Equal(t, sound.SHA256, p.SHA256)
	for _, stream := range []bool{false, true} {
		require.Equal(t, "asked at /api/v3/generate", s.chat(stream))
	}

	require.NoError(t, os.WriteFile(file, built, 0o600))
	require.Eventually(t, func() bool { return !strings.Contains(degraded(), "plugin acme") }, 20*time.Second, 50*time.Millisecond)
	require.Nil(t, s.adminPlugin().Error)
}

// configureAcme writes a configuration with the lines that build printed.
func configureAcme(t *testing.T, printed, provider string) (path string) {
	_, lines, ok := strings.Cut(printed, "In the gateway's configuration:\n\n")
	require.True(t, ok, printed)
	lines = strings.Replace(lines, `base_url: "https://…"`, `base_url: "`+provider+`/api"`, 1)
	lines = strings.Replace(lines, "acme.wasm\"}", `acme.wasm", config: {version: "2026-02"}}`, 1)
	text := `version: 1
listen: {address: "127.0.0.1:0", drain_delay: 0s}
admin: {listen: "127.0.0.1:0"}
` + lines + `groups:
  - {name: chat, channels: [{name: acme, provider: acme, credential: ` + acmeCredential + `, models: {m: {upstream_model: acme-large}}}]}
keys:
  - {name: k, key: ` + acmeCallerKey + `, groups: [chat]}
`
	require.NoError(t, os.WriteFile("interlock.yaml", []byte(text), 0o600))
	return "interlock.yaml"
}
