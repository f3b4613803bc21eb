package main

import (
	"database/sql"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
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
func (s *sandbox) run(command string) (status int, stderr string) {
	s.t.Helper()
	before := s.files()
	var out, errs output
	status = run(s.t.Context(), []string{command, "--config", filepath.Join(s.dir, "interlock.yaml")}, &out, &errs)
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
