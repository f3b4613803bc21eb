package server

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/gateway/fault"
)

// credentialsStayApart: each provider sees its own credential and none of the caller's; a
// provider's message that quotes the credential shows it to nobody.
func credentialsStayApart(t *testing.T) {
	t.Run("another account answers", func(t *testing.T) {
		st := baseline(t, "T24")
		got := st.credentialCall()
		require.Equal(t, 200, got.Status, got.Body)
		require.Equal(t, "from B", got.content(t))
		st.calls(map[string]int{"A": 1, "B": 1})
		st.requireRecord(got.ID(), "success", tried{"a", "upstream_auth"}, tried{"b", ""})
		require.NotNil(t, st.status("a").Isolation, "a dead credential takes its channel out")
		st.requireNoSecrets(got)
	})
	t.Run("no account answers", func(t *testing.T) {
		scripts := corpus(t, "reported", "T24")
		scripts["B"] = with(t, scripts["A"], keyA, keyB)
		st := setUp(t, scripts, k0)
		got := st.credentialCall()
		got.refused(t, 502, "routes_exhausted", "false")
		require.Contains(t, got.Body, `"class":"upstream_auth"`)
		st.calls(map[string]int{"A": 1, "B": 1})
		st.requireRecord(got.ID(), "exhausted", tried{"a", "upstream_auth"}, tried{"b", "upstream_auth"})
		st.requireNoSecrets(got)
	})
}

// callersSecrets are what the caller sends beside its key, by header.
var callersSecrets = []string{
	"x-api-key", "canary-c1", "api-key", "canary-c2", "x-goog-api-key", "canary-c3", "xi-api-key", "canary-c4",
	"Cookie", "s=canary-c5", "x-custom-secret", "canary-c6",
}

func (st *stand) credentialCall() *answer {
	st.t.Helper()
	return st.chat(r1, callersSecrets...)
}

// requireNoSecrets stops the gateway and looks for credentials everywhere they could be.
func (st *stand) requireNoSecrets(got *answer) {
	st.t.Helper()
	record := st.entry(got.ID()).raw
	st.requireOnly("A", keyA, keyB)
	st.requireOnly("B", keyB, keyA)
	st.end() // so that everything is written

	secrets := []string{keyA, keyB, callersKey, "canary"}
	var headers bytes.Buffer
	require.NoError(st.t, got.Header.Write(&headers))
	for place, text := range map[string]string{
		"the answer's body": got.Body, "the answer's headers": headers.String(),
		"the record": record, "the log": st.logs.String(),
	} {
		requireNone(st.t, place, text, secrets)
	}
	files := 0
	require.NoError(st.t, filepath.WalkDir(st.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path == st.path { // the configuration itself holds them
			return err
		}
		b, err := os.ReadFile(path)
		requireNone(st.t, path, string(b), secrets)
		files++
		return err
	}))
	require.NotZero(st.t, files, "there is no database to look into")
}

func requireNone(t *testing.T, place, text string, secrets []string) {
	t.Helper()
	for _, s := range secrets {
		require.False(t, strings.Contains(text, s), "%s holds %s", place, s)
	}
}

// requireOnly demands that a provider saw its own credential and nobody else's.
func (st *stand) requireOnly(provider, own, other string) {
	st.t.Helper()
	for _, c := range st.providers[provider].Calls() {
		require.Equal(st.t, "Bearer "+own, c.Header.Get("Authorization"))
		require.Len(st.t, c.Header.Values("Authorization"), 1)
		seen := everything(st.t, c)
		for _, s := range []string{other, callersKey, "canary-c1", "canary-c2", "canary-c3", "canary-c4", "canary-c5", "canary-c6"} {
			require.False(st.t, strings.Contains(seen, s), "%s saw %s", provider, s)
		}
	}
}

// everything is a call as its provider saw it, head and body.
func everything(t *testing.T, c fault.Call) string {
	t.Helper()
	var b bytes.Buffer
	b.WriteString(c.Path + "\r\n" + c.Host + "\r\n")
	require.NoError(t, c.Header.Write(&b))
	b.Write(c.Body)
	return b.String()
}
