package wasm

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	. "github.com/interlock-gateway/interlock/gateway/wasm/wasmtest"
)

// The example of the ABI's documentation is a manifest.
func TestTheDocumentedManifestIsOne(t *testing.T) {
	page, err := os.ReadFile("../../sdk/abi/README.md")
	require.NoError(t, err)
	example := regexp.MustCompile("(?s)```json\n(.*?)```").FindSubmatch(page)
	require.NotNil(t, example)
	m, err := ParseManifest(example[1])
	require.NoError(t, err)
	require.Equal(t, "acme", m.Name)
	require.EqualValues(t, 32<<20, m.Limits.Memory)
	require.EqualValues(t, 4<<10, m.Limits.State)
	require.Equal(t, []string{"text/event-stream"}, m.ContentTypes.Events)

	again, err := json.Marshal(m)
	require.NoError(t, err)
	second, err := ParseManifest(again)
	require.NoError(t, err)
	require.True(t, m.equal(second))
}

func TestWhatIsWrongInAManifestIsNamed(t *testing.T) {
	for change, want := range map[string]string{
		`"name":"Acme!"`:                                `name "Acme!"`,
		`"version":"one"`:                               `version "one"`,
		`"abi":"2.0"`:                                   `abi "2.0"`,
		`"abi":"1"`:                                     `abi "1"`,
		`"kind":"filter"`:                               `kind "filter"`,
		`"operations":["guard_request"]`:                `operations: "guard_request" is not one`,
		`"operations":["request","request"]`:            `operations: "request" stands twice`,
		`"operations":[]`:                               `operations: none`,
		`"endpoints":["chat"]`:                          `endpoints: "chat" is not one`,
		`"endpoints":[]`:                                `endpoints: none`,
		`"request_headers":["Authorization"]`:           `"Authorization" is not one`,
		`"request_headers":["authorization"]`:           `"authorization" is not one`,
		`"request_headers":["host"]`:                    `"host" is not one`,
		`"response_headers":["set-cookie"]`:             `"set-cookie" is not one`,
		`"content_types":{"events":["text"]}`:           `content_types.events: "text" is not one`,
		`"auth":["basic"]`:                              `auth: "basic" is not one`,
		`"capabilities":["network"]`:                    `capabilities: "network" is not one`,
		`"model_capabilities":["Tools"]`:                `"Tools" is not one`,
		`"limits":{"memory":"lots"}`:                    `"lots" is not a size`,
		`"limits":{"call_timeout":"soon"}`:              `"soon" is not a duration`,
		`"limits":{"state":"1MiB"}`:                     `limits.state`,
		`"config_schema":{"type":"objekt"}`:             `config_schema`,
		`"config_schema":{"$ref":"http://example.com"}`: `stands for itself`,
		`"colour":"red"`:                                `unknown field "colour"`,
	} {
		text := string(manifest(nil))
		name := change[:strings.Index(change, ":")+1]
		if i := strings.Index(text, name); i >= 0 {
			end := regexp.MustCompile(`,"[a-z_]+":|}$`).FindStringIndex(text[i:])
			text = text[:i] + change + text[i+end[0]:]
		} else {
			text = "{" + change + "," + text[1:]
		}
		_, err := ParseManifest([]byte(text))
		require.ErrorContains(t, err, want, change)
	}
	_, err := ParseManifest([]byte(`{} {}`))
	require.Error(t, err)
	_, err = ParseManifest([]byte(`{`))
	require.Error(t, err)
	_, err = ParseManifest(make([]byte, maxManifest+1))
	require.ErrorContains(t, err, "at most")
	_, err = ParseManifest([]byte(`{"name":"A","kind":"?"}`))
	require.ErrorContains(t, err, "name")
	require.ErrorContains(t, err, "kind", "all that is wrong, at once")
}

func TestAManifestGoesIntoAModuleAndComesOut(t *testing.T) {
	bare := Module{Pages: 1, Custom: map[string][]byte{"other": []byte("kept")}}.Encode()
	none, err := ReadManifest(bare)
	require.NoError(t, err)
	require.Nil(t, none)

	first, err := WriteManifest(bare, manifest(nil))
	require.NoError(t, err)
	second, err := WriteManifest(first, manifest(func(m *Manifest) { m.Version = "2.0.0" }))
	require.NoError(t, err)
	m, err := ReadManifest(second)
	require.NoError(t, err)
	require.Equal(t, "2.0.0", m.Version)
	require.True(t, strings.HasPrefix(string(second), string(bare)), "the rest is as it was")
	require.Len(t, second, len(first), "the old one is gone")

	_, err = WriteManifest(bare, []byte(`{"name":"?"}`))
	require.ErrorContains(t, err, "name")
	_, err = WriteManifest([]byte("text"), manifest(nil))
	require.ErrorIs(t, err, errNotWasm)
	_, err = ReadManifest(append(second, first[len(bare):]...))
	require.ErrorContains(t, err, "twice")
}

func FuzzReadManifest(f *testing.F) {
	good := guest{}.module()
	f.Add(good)
	f.Add(good[:len(good)-3])
	f.Add([]byte("\x00asm\x01\x00\x00\x00\x00\xff\xff\xff\xff\x0f"))
	f.Add([]byte("\x00asm\x01\x00\x00\x00\x00\x02\x05a"))
	f.Fuzz(func(t *testing.T, module []byte) {
		m, err := ReadManifest(module)
		if err != nil || m == nil {
			return
		}
		text, err := json.Marshal(m)
		require.NoError(t, err)
		again, err := WriteManifest(module, text)
		require.NoError(t, err)
		back, err := ReadManifest(again)
		require.NoError(t, err)
		require.True(t, m.equal(back))
	})
}
