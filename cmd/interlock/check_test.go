package main

import (
	"bytes"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/gateway/policy"
)

// sandbox is a folder with a configuration and what else the test needs; it knows what is in it.
type sandbox struct {
	t   *testing.T
	dir string
}

const soundConfig = `version: 1
listen: {address: "127.0.0.1:0"}
admin: {listen: "127.0.0.1:0"}
providers: {p: {adapter: openai, base_url: "http://127.0.0.1:9", auth: none}}
groups:
  - {name: g, channels: [{name: c, provider: p, models: "*"}]}
keys:
  - {name: k, key_sha256: ` + "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef" + `, groups: [g]}
`

func newSandbox(t *testing.T, config string) *sandbox {
	s := &sandbox{t, t.TempDir()}
	s.write("interlock.yaml", config)
	return s
}

func (s *sandbox) write(name, text string) {
	s.t.Helper()
	path := filepath.Join(s.dir, name)
	require.NoError(s.t, os.MkdirAll(filepath.Dir(path), 0o700))
	require.NoError(s.t, os.WriteFile(path, []byte(text), 0o600))
}

// files are all files and folders, with the files' contents.
func (s *sandbox) files() map[string]string {
	s.t.Helper()
	all := map[string]string{}
	require.NoError(s.t, filepath.WalkDir(s.dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			all[path] = "a folder"
			return err
		}
		b, err := os.ReadFile(path)
		all[path] = string(b)
		return err
	}))
	return all
}

// run runs a command on the configuration, which must leave nothing behind.
func (s *sandbox) run(command ...string) (status int, stderr string) {
	s.t.Helper()
	before := s.files()
	var out, errs output
	status = run(s.t.Context(), append(command, "--config", filepath.Join(s.dir, "interlock.yaml")), &out, &errs)
	require.Equal(s.t, before, s.files(), "nothing is left behind")
	return status, strings.ReplaceAll(errs.String(), s.dir+string(filepath.Separator), "")
}

func TestCheckOfASoundFileLeavesNothingBehind(t *testing.T) {
	status, errs := newSandbox(t, soundConfig).run("check")
	require.Zero(t, status, errs)
	require.Empty(t, errs)
}

// Faults of the file, its bundles, its state and its providers are one list.
func TestCheckReportsEverythingAtOnce(t *testing.T) {
	s := newSandbox(t, soundConfig+`data_dir: taken/data
storage: {url: "sqlite:taken/interlock.db"}
policy:
  bundles:
    - {name: gone, path: gone}
    - {name: broken, path: broken}
  decision_log: {file: taken/decisions.log}
watch: perhaps
typo: 1
`)
	s.write("taken", "a file where a folder should be")
	s.write("broken/interlock/x.rego", "package interlock.x\n\nfoo {\n")
	status, errs := s.run("check")
	require.Equal(t, 1, status)
	for _, want := range []string{
		"error: interlock.yaml:9:11: data_dir: taken is not a directory",
		"error: interlock.yaml:10:16: storage.url: taken is not a directory",
		"error: interlock.yaml:13:26: policy.bundles[0].path: policy bundle gone: ",
		"error: interlock.yaml:14:28: policy.bundles[1].path: broken/interlock/x.rego:4: rego_parse_error",
		"error: interlock.yaml:15:24: policy.decision_log.file: taken is not a directory",
		"error: interlock.yaml:16:8: watch: true or false is expected",
		"error: interlock.yaml:17:1: typo: unknown key",
	} {
		require.Contains(t, errs, want)
	}
}

func TestCheckSaysWhatIsWrongWithTheDatabase(t *testing.T) {
	s := newSandbox(t, soundConfig)
	raw, err := sql.Open("sqlite", filepath.Join(s.dir, "interlock.db"))
	require.NoError(t, err)
	_, err = raw.Exec("PRAGMA application_id = 0x494c4b31; PRAGMA user_version = 99; CREATE TABLE meta (x)")
	require.NoError(t, err)
	require.NoError(t, raw.Close())
	for _, command := range []string{"check", "serve"} {
		status, errs := s.run(command)
		require.Equal(t, 1, status)
		require.Contains(t, errs, "error: interlock.yaml:1:1: storage.url: the database has a newer format than this version of interlock knows (it has 99")
	}
}

// A start that fails says where, as check does, and leaves nothing behind.
func TestServeSaysWhereABundleIsBroken(t *testing.T) {
	s := newSandbox(t, soundConfig+"policy: {bundles: [{name: broken, path: broken}]}\n")
	s.write("broken/interlock/x.rego", "package interlock.x\n\nfoo {\n")
	status, errs := s.run("serve")
	require.Equal(t, 1, status)
	require.Contains(t, errs, "error: interlock.yaml:9:41: policy.bundles[0].path: broken/interlock/x.rego:4: rego_parse_error")
}

func TestServeOnATakenPortLeavesNothingBehind(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	for _, key := range []string{"listen: {address", "admin: {listen"} {
		s := newSandbox(t, strings.Replace(soundConfig, key+`: "127.0.0.1:0"`, key+`: "`+l.Addr().String()+`"`, 1))
		status, errs := s.run("serve")
		require.Equal(t, 1, status)
		require.Contains(t, errs, "address already in use")
		require.Regexp(t, `error: interlock\.yaml:[23]:\d+: (listen\.address|admin\.listen): `, errs)
	}
}

// The bundle of a server is checked like one in a folder: the server is asked. Without it the
// last good one is, and where there is none that is said.
func TestCheckOfAServersBundle(t *testing.T) {
	bundle := func(dir string) []byte {
		var b bytes.Buffer
		require.NoError(t, policy.BuildBundle(t.Context(), &b, policy.Path("b", dir), policy.BuildOptions{}))
		return b.Bytes()
	}
	good := bundle(policyData + "cell")
	bad := bundle(policyData + "broken")
	var gives atomic.Pointer[[]byte]
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		if b := gives.Load(); b != nil {
			_, _ = w.Write(*b)
			return
		}
		w.WriteHeader(http.StatusNotFound)
	}))
	defer server.Close()
	s := newSandbox(t, soundConfig+"policy: {bundles: [{name: far, url: \""+server.URL+"\", unsigned: true}]}\n")
	const key = "interlock.yaml:9:37: policy.bundles[0].url: "

	gives.Store(&good)
	status, errs := s.run("check", "--strict")
	require.Zero(t, status, errs)
	require.Empty(t, errs)
	require.EqualValues(t, 1, asked.Load())

	gives.Store(&bad)
	status, errs = s.run("check")
	require.Equal(t, 1, status)
	for _, want := range []string{
		"error: " + key + "far:interlock/replay.rego:4:25: input.failure.phase is never",
		"error: " + key + "far:interlock/admission.rego:3:13: rego_type_error: undefined function http.send",
	} {
		require.Contains(t, errs, want)
	}

	gives.Store(nil)
	status, errs = s.run("check")
	require.Equal(t, 1, status)
	require.Contains(t, errs, "error: "+key+"policy bundle far: the bundle server answers 404 Not Found; and there is no last good one on disk")

	before := asked.Load()
	status, errs = s.run("check", "--strict", "--offline")
	require.Zero(t, status, errs)
	require.Contains(t, errs, "warning: "+key+"not checked: the bundle server is not asked")
	require.Equal(t, before, asked.Load())

	// The last good one, where a gateway keeps it.
	sum := sha256.Sum256([]byte(server.URL))
	s.write("interlock-data/policy/far-"+hex.EncodeToString(sum[:4])+".tar.gz", string(good))
	s.write("interlock.yaml", soundConfig+"policy: {bundles: [{name: far, url: \""+server.URL+"\", unsigned: true}]}\ndata_dir: interlock-data\n")
	status, errs = s.run("check", "--strict")
	require.Zero(t, status, errs)
	require.Contains(t, errs, "warning: "+key+"policy bundle far: the bundle server answers 404 Not Found; its last good bundle")
	status, errs = s.run("check", "--offline")
	require.Zero(t, status, errs)
	require.Contains(t, errs, "warning: "+key+"the bundle server is not asked; its last good bundle was checked")
	gives.Store(&bad)
	status, _ = s.run("check")
	require.Equal(t, 1, status, "what the server gives now is refused")
}
