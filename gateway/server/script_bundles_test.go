package server

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/gateway/policy"
)

// bundleHost is a bundle server: what is published has an ETag, and a token is needed.
type bundleHost struct {
	t    *testing.T
	url  string // of the bundle
	mu   sync.Mutex
	body []byte
	away bool
}

func newBundleHost(t *testing.T) *bundleHost {
	h := &bundleHost{t: t}
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	h.url = server.URL + "/platform.tar.gz"
	return h
}

// build makes an archive of a folder and publishes it; signed where there is a key.
func (h *bundleHost) build(dir, revision, key string) {
	h.t.Helper()
	o := policy.BuildOptions{Revision: revision}
	if key != "" {
		o.Signing = &policy.Signing{Key: key, KeyID: "k1", Scope: "gateway"}
	}
	var b bytes.Buffer
	require.NoError(h.t, policy.BuildBundle(h.t.Context(), &b, policy.Path("platform", dir), o))
	h.publish(b.Bytes())
}

func (h *bundleHost) publish(body []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.body = body
}

func (h *bundleHost) leave() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.away = true
}

func (h *bundleHost) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	body, away := h.body, h.away
	h.mu.Unlock()
	sum := sha256.Sum256(body)
	etag := `"` + hex.EncodeToString(sum[:8]) + `"`
	w.Header().Set("ETag", etag)
	switch {
	case away:
		w.WriteHeader(http.StatusServiceUnavailable)
	case r.Header.Get("Authorization") != "Bearer bundles-canary-0007":
		w.WriteHeader(http.StatusUnauthorized)
	case r.Header.Get("If-None-Match") == etag:
		w.WriteHeader(http.StatusNotModified)
	default:
		_, _ = w.Write(body)
	}
}

// signingKeys returns a private key and what verifies its signatures, in PEM.
func signingKeys(t *testing.T) (private, public string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	der, err := x509.MarshalECPrivateKey(key)
	require.NoError(t, err)
	private = string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}))
	der, err = x509.MarshalPKIXPublicKey(&key.PublicKey)
	require.NoError(t, err)
	return private, string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
}

// TestABundleServerStory: two bundles side by side, of which a server gives one. A cell changes,
// is signed and published, and is in force; what is broken is refused and the one before decides
// on; a restart without the server goes on with the last good one.
func TestABundleServerStory(t *testing.T) {
	t.Parallel()
	private, public := signingKeys(t)
	other, _ := signingKeys(t)
	host := newBundleHost(t)
	dir := policyDir(t)
	own := t.TempDir()
	write(t, filepath.Join(dir, ".manifest"), `{"roots": ["interlock"]}`)
	write(t, filepath.Join(own, ".manifest"), `{"roots": ["team"], "revision": "own-1"}`)
	write(t, filepath.Join(own, "data.json"), `{"team": {"x": 1}}`)
	publish := func(revision, key string) { host.build(dir, revision, key) }
	publish("v1", private)
	folder := t.TempDir()
	write(t, filepath.Join(folder, "bundle.pub"), public)
	st := setUpIn(t, folder, map[string]string{"a": "on chat\n  status 400 code context_length_exceeded\n", "b": ""}, twoChannels+`
policy:
  bundles:
    - name: platform
      url: "`+host.url+`"
      poll: 100ms
      token: bundles-canary-0007
      verification_key: ${file:bundle.pub}
      verification_key_id: k1
      verification_scope: gateway
    - {name: own, path: "`+own+`"}
`)
	body := `{"model":"m","messages":[{"role":"user","content":"hi"}]}`
	require.Equal(t, 400, st.chat(body).Status)
	first := st.bundlesSeen()
	require.Equal(t, []string{"platform", "own"}, []string{first.Bundles[0].Name, first.Bundles[1].Name})
	require.True(t, first.Bundles[0].Signed)
	require.Equal(t, "v1", first.Bundles[0].Revision)
	require.Equal(t, []string{"interlock"}, first.Bundles[0].Roots)
	require.NotEmpty(t, first.Bundles[0].ETag)
	require.Equal(t, "own-1", first.Bundles[1].Revision)

	setCells(t, dir, "context_overflow before_headers same_contract_fallback yes\n")
	publish("v2", private)
	require.Eventually(t, func() bool { return st.chat(body).Status == 200 }, promised+late, 20*time.Millisecond)
	good := st.bundlesSeen()
	require.Equal(t, "v2", good.Bundles[0].Revision)

	rules := filepath.Join(dir, "interlock", "replay.rego")
	sound, err := os.ReadFile(rules)
	require.NoError(t, err)
	restore := func(t *testing.T) {
		t.Helper()
		require.NoError(t, os.RemoveAll(filepath.Join(dir, "interlock")))
		again := policyDir(t)
		require.NoError(t, os.Rename(filepath.Join(again, "interlock"), filepath.Join(dir, "interlock")))
	}
	for _, broken := range []struct {
		key    string
		change func()
		says   string
	}{
		{other, func() {}, "signature does not hold"},
		{private, func() {
			write(t, rules, strings.ReplaceAll(string(sound), "input.failure.class", "input.failure.klass"))
		}, "klass"},
		{private, func() { write(t, rules, endlessRule) }, "timeout"},
		{private, func() { require.NoError(t, os.Remove(filepath.Join(dir, "interlock", "matrix", "data.json"))) }, "data.interlock.matrix is read"},
		{private, func() { require.NoError(t, os.Remove(filepath.Join(dir, "interlock", "admission.rego"))) }, "there is no rule data.interlock.admission.decision"},
	} {
		broken.change()
		publish("v3", broken.key)
		require.Eventually(t, func() bool { return strings.Contains(st.bundlesSeen().Bundles[0].LastError, broken.says) },
			20*time.Second, 20*time.Millisecond, broken.says)
		seen := st.bundlesSeen()
		require.Equal(t, good.Revision, seen.Revision)
		require.Equal(t, good.Bundles[0].ETag, seen.Bundles[0].ETag)
		require.Equal(t, 200, st.chat(body).Status, "the revision before decides")
		require.Contains(t, st.condition().Degraded, "policy")
		restore(t)
	}
	require.Equal(t, 5, st.bundlesSeen().Refused)

	st.end()
	host.leave()
	st.begin()
	require.Equal(t, 200, st.chat(body).Status)
	last := st.bundlesSeen()
	require.Equal(t, good.Revision, last.Revision)
	require.True(t, last.Bundles[0].FromDisk)
	require.True(t, last.Bundles[0].Signed)
	require.Contains(t, last.Bundles[0].LastError, "503")
	require.NotContains(t, st.logs.String(), "bundles-canary-0007")

	// Without it on disk either nothing starts: the rules that were asked for are not there.
	st.end()
	kept, err := filepath.Glob(filepath.Join(st.dir, "*", "policy", "platform-*.tar.gz"))
	require.NoError(t, err)
	require.Len(t, kept, 1)
	require.NoError(t, os.Remove(kept[0]))
	_, err = New(t.Context(), Options{Path: st.path})
	require.ErrorContains(t, err, "no last good one on disk")
	require.ErrorContains(t, err, "policy.bundles[0].url")
}

const endlessRule = `package interlock.replay

decision := {"actions": ["stop"], "reason": "slow"} if {
	n := count([1 | some a in numbers.range(1, 100000); some b in numbers.range(1, 100000); a == b])
	n > 0
}
`

// bundlesSeen is what operators are told of the bundles.
type bundlesSeen struct {
	Revision string `json:"revision"`
	Refused  int    `json:"refused"`
	Bundles  []struct {
		Name      string   `json:"name"`
		Revision  string   `json:"revision"`
		Roots     []string `json:"roots"`
		ETag      string   `json:"etag"`
		Signed    bool     `json:"signed"`
		FromDisk  bool     `json:"from_disk"`
		NotKept   string   `json:"not_kept"`
		LastError string   `json:"last_error"`
	} `json:"bundles"`
}

func (st *stand) bundlesSeen() (b bundlesSeen) {
	st.t.Helper()
	require.Equal(st.t, http.StatusOK, st.admin("GET", "/admin/v1/policy", "", &b))
	return b
}
