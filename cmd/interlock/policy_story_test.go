package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/gateway/policy"
	"github.com/interlock-gateway/interlock/policies"
)

// bundleServer is a bundle server as OPA describes one: an ETag, If-None-Match, long polling.
type bundleServer struct {
	*httptest.Server
	mu      sync.Mutex
	body    []byte
	changed chan struct{}
}

const bundleToken = "bundle-token-canary-0001"

func newBundleServer(t *testing.T) *bundleServer {
	b := &bundleServer{changed: make(chan struct{})}
	b.Server = httptest.NewServer(b)
	t.Cleanup(b.Close)
	return b
}

func (b *bundleServer) publish(t *testing.T, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	b.give(text)
}

func (b *bundleServer) give(archive []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.body = archive
	close(b.changed)
	b.changed = make(chan struct{})
}

func (b *bundleServer) current() (body []byte, etag string, changed chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.body, fmt.Sprintf(`"%x"`, sha256.Sum256(b.body)), b.changed
}

var waits = regexp.MustCompile(`wait=(\d+)`)

func (b *bundleServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "Bearer "+bundleToken {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	body, etag, changed := b.current()
	if wait := waits.FindStringSubmatch(r.Header.Get("Prefer")); wait != nil && r.Header.Get("If-None-Match") == etag {
		limit, _ := time.ParseDuration(wait[1] + "s")
		ctx, cancel := context.WithTimeout(r.Context(), limit)
		defer cancel()
		select {
		case <-changed:
			body, etag, _ = b.current()
		case <-ctx.Done():
		}
	}
	w.Header().Set("ETag", etag)
	w.Header().Set("Content-Type", "application/vnd.openpolicyagent.bundles")
	if r.Header.Get("If-None-Match") == etag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	_, _ = w.Write(body)
}

// keyFiles writes a private key and what verifies its signatures.
func keyFiles(t *testing.T, private, public string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	der, err := x509.MarshalECPrivateKey(key)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(private, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), 0o600))
	der, err = x509.MarshalPKIXPublicKey(&key.PublicKey)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(public, pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}), 0o600))
}

// teller tells the story of one policy on a gateway that runs as a command.
type teller struct {
	t       *testing.T
	dir     string // the bundle's folder
	bundles *bundleServer
	gateway *served
	stop    func()
}

func (s *teller) command(args ...string) string {
	s.t.Helper()
	var out, errs output
	require.Zero(s.t, run(s.t.Context(), args, &out, &errs), "%v: %s", args, errs.String())
	return out.String()
}

// build makes a signed archive as a pipeline does.
func (s *teller) build(file, revision, key string) {
	s.t.Helper()
	said := s.command("policy", "build", s.dir, "-o", file, "--revision", revision, "--signing-key", key, "--signing-alg", "ES256", "--key-id", "ci")
	require.Contains(s.t, said, "signed")
}

// begin starts the gateway, and waits until it serves.
func (s *teller) begin() {
	s.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var out, errs output
	ended := make(chan int, 1)
	go func() { ended <- run(ctx, []string{"serve"}, &out, &errs) }()
	s.gateway = &served{t: s.t}
	var once sync.Once
	client := &s.gateway.client
	s.stop = func() {
		once.Do(func() {
			client.CloseIdleConnections()
			cancel()
			require.Zero(s.t, <-ended, errs.String())
		})
	}
	s.t.Cleanup(s.stop)
	listening := regexp.MustCompile(`callers at (\S+), operators at (\S+)`)
	require.Eventually(s.t, func() bool { return listening.MatchString(out.String()) || len(ended) > 0 }, time.Minute, 20*time.Millisecond)
	m := listening.FindStringSubmatch(out.String())
	require.NotNil(s.t, m, errs.String())
	s.gateway.callers, s.gateway.admins = addressURL(m[1]), addressURL(m[2])
}

const storyKeys = 10

func storyKey(i int) string { return fmt.Sprintf("caller-key-canary-%04d", i) }

// ask is one request of a caller: its status, who answered, and the revision that the ledger says
// decided.
func (s *teller) ask(caller int) (status int, route, revision string) {
	s.t.Helper()
	do := func(method, path, body string) (*http.Response, []byte) {
		req, err := http.NewRequestWithContext(s.t.Context(), method, s.gateway.callers+path, strings.NewReader(body))
		require.NoError(s.t, err)
		req.Header.Set("Authorization", "Bearer "+storyKey(caller))
		resp, err := s.gateway.client.Do(req)
		require.NoError(s.t, err)
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		require.NoError(s.t, err)
		return resp, b
	}
	resp, _ := do(http.MethodPost, "/v1/chat/completions", `{"model": "m", "messages": [{"role": "user", "content": "hello"}]}`)
	_, b := do(http.MethodGet, "/interlock/v1/requests/"+resp.Header.Get("x-request-id"), "")
	var record struct {
		Decisions []struct{ Revision string }
	}
	require.NoError(s.t, json.Unmarshal(b, &record), "%s", b)
	require.NotEmpty(s.t, record.Decisions)
	for _, d := range record.Decisions {
		require.Equal(s.t, record.Decisions[0].Revision, d.Revision, "a request pins one revision")
	}
	return resp.StatusCode, resp.Header.Get("interlock-route"), record.Decisions[0].Revision
}

// recovered asks as every caller and returns those for whom another route answered; the others got
// the provider's failure. Who is answered by which is decided by the revision named so.
func (s *teller) recovered(before, after string) (callers []int) {
	s.t.Helper()
	for i := range storyKeys {
		status, route, revision := s.ask(i)
		switch status {
		case http.StatusOK:
			require.Equal(s.t, "chat/b", route)
			require.Contains(s.t, revision, after)
			callers = append(callers, i)
		default:
			require.Equal(s.t, http.StatusBadGateway, status)
			require.Contains(s.t, revision, before)
		}
	}
	return callers
}

func (s *teller) metrics() string {
	s.t.Helper()
	status, text := s.gateway.do(http.MethodGet, s.gateway.admins+"/metrics", "")
	require.Equal(s.t, http.StatusOK, status)
	return text
}

// seenPolicy is what operators are told.
type seenPolicy struct {
	Revision string
	Refused  int
	Bundles  []struct {
		Name      string
		Revision  string
		ETag      string
		Signed    bool
		FromDisk  bool   `json:"from_disk"`
		LastError string `json:"last_error"`
	}
	Candidate candidate
}

func (s *teller) policy() (p seenPolicy) {
	s.t.Helper()
	status, text := s.gateway.do(http.MethodGet, s.gateway.admins+"/admin/v1/policy", "")
	require.Equal(s.t, http.StatusOK, status, text)
	require.NoError(s.t, json.Unmarshal([]byte(text), &p))
	return p
}

// cell changes one cell of the matrix: what a whole 500 of a provider leads to.
func (s *teller) cell(act, word string) {
	s.t.Helper()
	path := filepath.Join(s.dir, "interlock", "matrix", "data.json")
	text, err := os.ReadFile(path)
	require.NoError(s.t, err)
	var matrix map[string]map[string]map[string]string
	require.NoError(s.t, json.Unmarshal(text, &matrix))
	require.Contains(s.t, matrix["server_error"]["before_headers"], act)
	matrix["server_error"]["before_headers"][act] = word
	text, err = json.MarshalIndent(matrix, "", "  ")
	require.NoError(s.t, err)
	require.NoError(s.t, os.WriteFile(path, append(text, '\n'), 0o600))
}

const storyConfig = `
listen: {address: 127.0.0.1:0, drain_delay: 0s}
admin: {listen: 127.0.0.1:0}
watch: false
providers:
  a: {adapter: openai, base_url: "{{a}}/v1"}
  b: {adapter: openai, base_url: "{{b}}/v1"}
groups:
  - name: chat
    channels:
      - {name: a, provider: a, credential: "sk-story-aaaa", priority: 1, models: {m: {}}}
      - {name: b, provider: b, credential: "sk-story-bbbb", priority: 2, models: {m: {}}}
breaker: {consecutive_failures: 0, failure_ratio: 0}
policy:
  bundles:
    - name: platform
      url: "{{bundles}}/platform.tar.gz"
      poll: 100ms
      token: ` + bundleToken + `
      verification_key: ${file:bundle.pub}
      verification_key_id: ci
  candidate: {path: next.tar.gz, {{mode}}}
keys:
`

// configure writes the configuration, and has it read where a gateway runs.
func (s *teller) configure(a, b, mode string) {
	s.t.Helper()
	text := strings.NewReplacer("{{a}}", a, "{{b}}", b, "{{bundles}}", s.bundles.URL, "{{mode}}", mode).Replace(storyConfig)
	for i := range storyKeys {
		text += fmt.Sprintf("  - {name: k%d, key: %s, groups: [chat]}\n", i, storyKey(i))
	}
	require.NoError(s.t, os.WriteFile("interlock.yaml", []byte(text), 0o600))
	if s.gateway != nil {
		status, said := s.gateway.do(http.MethodPost, s.gateway.admins+"/admin/v1/reload", "")
		require.Equal(s.t, http.StatusOK, status, said)
	}
}

// TestThePolicyStory is one change of a policy from the cell that is edited to a restart without
// the bundle server, by the commands that people use, as a caller of a failing provider sees it.
func TestThePolicyStory(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	s := &teller{t: t, dir: filepath.Join(dir, "policies"), bundles: newBundleServer(t)}
	failing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("content-type", "application/json")
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = io.WriteString(w, `{"error": {"message": "it broke", "type": "server_error"}}`)
	}))
	t.Cleanup(failing.Close)
	well := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("content-type", "application/json")
		_, _ = io.WriteString(w, `{"id": "c1", "object": "chat.completion", "model": "m", "choices": [{"index": 0, "finish_reason": "stop",
			"message": {"role": "assistant", "content": "well"}}], "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}}`)
	}))
	t.Cleanup(well.Close)
	keyFiles(t, "key.pem", "bundle.pub")
	keyFiles(t, "other.pem", "other.pub")
	require.NoError(t, os.CopyFS(s.dir, policies.Files))
	require.NoError(t, os.WriteFile(filepath.Join(s.dir, ".manifest"), []byte(`{"roots": ["interlock"]}`), 0o600))

	// The policy in force never recovers from a provider's 500.
	s.cell("same_route_retry", "no")
	s.cell("same_contract_fallback", "no")
	s.build("v1.tar.gz", "v1", "key.pem")
	s.build("next.tar.gz", "v1", "key.pem")
	s.bundles.publish(t, "v1.tar.gz")
	s.configure(failing.URL, well.URL, "mode: shadow")
	s.begin()
	require.Empty(t, s.recovered("platform@v1-", ""))
	require.True(t, s.policy().Bundles[0].Signed)
	require.Equal(t, "in_force", s.policy().Candidate.State, "the same content is no candidate")

	// One cell changes: another route may answer. It is built, signed and laid beside what is in
	// force: callers see nothing of it, operators what it would do.
	s.cell("same_contract_fallback", "yes")
	s.build("next.tar.gz", "v2", "key.pem")
	require.Eventually(t, func() bool { return s.policy().Candidate.State == "shadow" }, time.Minute, 20*time.Millisecond)
	require.Empty(t, s.recovered("platform@v1-", ""))
	compared := func() (seen candidate) {
		require.NoError(t, json.Unmarshal([]byte(s.command("policy", "candidate", "--json", "--admin", s.gateway.admins)), &seen))
		return seen
	}
	require.Eventually(t, func() bool { return compared().Comparison.ByClass["server_error"].Differ == storyKeys }, time.Minute, 20*time.Millisecond)
	seen := compared()
	require.EqualValues(t, storyKeys, seen.Comparison.Differ, "nothing else is decided differently")
	require.EqualValues(t, storyKeys, seen.Comparison.ByPoint["replay"].Differ)
	require.Contains(t, *seen.Revision, "candidate@v2-")
	for i := range storyKeys {
		require.Contains(t, s.metrics(), fmt.Sprintf(`interlock_policy_candidate_differences_total{class="server_error",key="k%d",point="replay"} 1`, i))
	}

	// A canary: for a share of the keys, the same ones each time and after a reload, and for more
	// of them as it grows.
	s.configure(failing.URL, well.URL, "mode: canary, percent: 40")
	few := s.recovered("platform@v1-", "candidate@v2-")
	require.NotEmpty(t, few)
	require.Less(t, len(few), storyKeys)
	require.Equal(t, few, s.recovered("platform@v1-", "candidate@v2-"))
	s.configure(failing.URL, well.URL, "mode: canary, percent: 80")
	many := s.recovered("platform@v1-", "candidate@v2-")
	require.Greater(t, len(many), len(few))
	require.Less(t, len(many), storyKeys)
	for _, caller := range few {
		require.True(t, slices.Contains(many, caller), "k%d was decided for by the candidate before", caller)
	}

	// Promoted: for everybody.
	said := s.command("policy", "promote", "--reason", "it recovers", "--admin", s.gateway.admins)
	require.Contains(t, said, "candidate@v2-")
	require.Len(t, s.recovered("", "candidate@v2-"), storyKeys)
	promoted := s.policy()
	require.Equal(t, "it recovers", promoted.Candidate.Promoted.Reason)
	require.Equal(t, "v1", promoted.Bundles[0].Revision, "the server still gives what was before")

	s.breakIt(promoted)

	// A restart without the bundle server: the last good bundle is on disk, and so is what was
	// promoted over it.
	s.stop()
	s.bundles.Close()
	s.begin()
	require.Len(t, s.recovered("", "candidate@v2-"), storyKeys)
	last := s.policy()
	require.Equal(t, promoted.Revision, last.Revision)
	require.True(t, last.Bundles[0].FromDisk)
	require.True(t, last.Bundles[0].Signed, "it was verified again")
	require.Equal(t, "v1", last.Bundles[0].Revision)
	require.Contains(t, last.Bundles[0].LastError, "refused")
	require.Equal(t, "in_force", last.Candidate.State)
	_, ready := s.gateway.do(http.MethodGet, s.gateway.admins+"/readyz", "")
	require.Contains(t, ready, `"ready"`)
	require.NotContains(t, ready, bundleToken)
}

// breakIt publishes what is broken in five ways: the command does not build four of them, a careless
// publisher does, and the gateway takes none.
func (s *teller) breakIt(good seenPolicy) {
	t := s.t
	t.Helper()
	key, err := os.ReadFile("key.pem")
	require.NoError(t, err)
	file := func(parts ...string) string { return filepath.Join(append([]string{s.dir, "interlock"}, parts...)...) }
	rules, err := os.ReadFile(file("replay.rego"))
	require.NoError(t, err)
	for i, broken := range []struct {
		name   string
		change func()
		says   string
	}{
		{"a type error", func() {
			require.NoError(t, os.WriteFile(file("replay.rego"), bytes.ReplaceAll(rules, []byte("input.failure.class"), []byte("input.failure.klass")), 0o600))
		}, "input.failure.klass"},
		{"a rule without an end", func() {
			require.NoError(t, os.WriteFile(file("replay.rego"), []byte(`package interlock.replay

decision := {"actions": ["stop"], "reason": "slow"} if {
	count([1 | some a in numbers.range(1, 100000); some b in numbers.range(1, 100000); a == b]) > 0
}
`), 0o600))
		}, "timeout"},
		{"a table that is missing", func() { require.NoError(t, os.Remove(file("matrix", "data.json"))) }, "data.interlock.matrix is read"},
		{"a package that is missing", func() { require.NoError(t, os.Remove(file("admission.rego"))) }, "there is no rule data.interlock.admission.decision"},
		{"another's signature", func() {}, "signature does not hold"},
	} {
		require.NoError(t, os.CopyFS(s.dir+".sound", os.DirFS(s.dir)))
		broken.change()
		if broken.name == "another's signature" {
			s.build("broken.tar.gz", "v3", "other.pem")
			s.bundles.publish(t, "broken.tar.gz")
		} else {
			var out, errs output
			require.Equal(t, 1, run(t.Context(), []string{"policy", "build", s.dir, "-o", "broken.tar.gz", "--signing-key", "key.pem"}, &out, &errs), broken.name)
			require.Contains(t, errs.String()+out.String(), broken.says)
			require.NoFileExists(t, "broken.tar.gz")
			var archive bytes.Buffer
			require.NoError(t, policy.BuildBundle(t.Context(), &archive, policy.Path("platform", s.dir), policy.BuildOptions{
				Revision: "v3", Signing: &policy.Signing{Key: strings.TrimSpace(string(key)), KeyID: "ci"},
			}))
			s.bundles.give(archive.Bytes())
		}
		require.Eventually(t, func() bool { return strings.Contains(s.policy().Bundles[0].LastError, broken.says) },
			time.Minute, 20*time.Millisecond, broken.name)
		seen := s.policy()
		require.Equal(t, good.Revision, seen.Revision, broken.name)
		require.Equal(t, good.Bundles[0].ETag, seen.Bundles[0].ETag, "what is refused is not remembered")
		require.Equal(t, i+1, seen.Refused)
		require.Contains(t, s.metrics(), fmt.Sprintf(`interlock_policy_refused_total{bundle="platform"} %d`, i+1))
		status, route, revision := s.ask(i)
		require.Equal(t, http.StatusOK, status, "%s: the revision before decides", broken.name)
		require.Equal(t, "chat/b", route)
		require.Equal(t, good.Revision, revision)
		require.NoError(t, os.RemoveAll(s.dir))
		require.NoError(t, os.Rename(s.dir+".sound", s.dir))
	}
}
