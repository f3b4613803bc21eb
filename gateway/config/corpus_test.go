package config

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite what the corpus expects")

// canary stands in every secret of the corpus.
const canary = "hunter22"

// corpusEnv is the environment of the corpus.
var corpusEnv = Env{Lookup: func(name string) (string, bool) {
	v, ok := map[string]string{
		"INTERLOCK_ADMIN_TOKEN": "admin-" + canary,
		"CI_TOKEN":              "ci-" + canary,
		"OPENAI_API_KEY":        "sk-openai-" + canary,
		"ANTHROPIC_API_KEY":     "sk-anthropic-" + canary,
		"WEB_APP_KEY":           "web-" + canary,
		"SHORT_KEY":             "short",
		"EMPTY":                 "",
	}[name]
	return v, ok
}}

func corpus(t *testing.T, pattern string) []string {
	files, err := filepath.Glob(filepath.Join("testdata", pattern))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	return files
}

// Each file of the corpus has beside it what is found in it, and whether the schema takes it.
func TestCorpus(t *testing.T) {
	for _, file := range append(corpus(t, "*.good.yaml"), corpus(t, "*.bad.yaml")...) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			r := Load(file, corpusEnv)
			verdict := "takes"
			if refused := schemaRefuses(t, file); refused != nil {
				verdict = "refuses"
				require.NotEmpty(t, r.Errors, "the schema refuses what the loader takes: %v", refused)
			}
			var b strings.Builder
			fmt.Fprintf(&b, "the schema %s it\n", verdict)
			for _, p := range r.Errors {
				fmt.Fprintf(&b, "error %d:%d %s: %s\n", p.Line, p.Column, p.Key, p.Message)
			}
			for _, p := range r.Warnings {
				fmt.Fprintf(&b, "warning %d:%d %s: %s\n", p.Line, p.Column, p.Key, p.Message)
			}
			require.NotContains(t, b.String(), canary)
			require.Equal(t, strings.HasSuffix(file, ".good.yaml"), r.Err() == nil, "%v", r.Err())
			require.Equal(t, r.Err() == nil, r.Config != nil)
			want := strings.TrimSuffix(file, ".yaml") + ".txt"
			if *update {
				require.NoError(t, os.WriteFile(want, []byte(b.String()), 0o644))
			}
			expected, err := os.ReadFile(want)
			require.NoError(t, err)
			require.Equal(t, string(expected), b.String())
		})
	}
}

func compileSchema(t testing.TB) *jsonschema.Schema {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema()))
	require.NoError(t, err)
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	require.NoError(t, c.AddResource("interlock.json", doc))
	s, err := c.Compile("interlock.json")
	require.NoError(t, err)
	return s
}

// schemaRefuses validates a file that can be parsed; one that cannot is left to the loader.
func schemaRefuses(t *testing.T, file string) error {
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	d := newDocument(file, "", Env{})
	root, ok := d.read(b)
	if !ok {
		return nil
	}
	return compileSchema(t).Validate(plainValue(root))
}

// plainValue is a node as a JSON reader would give it.
func plainValue(n *node) any {
	switch n.kind {
	case boolean:
		return n.text == "true"
	case integer, float:
		return json.Number(n.text)
	case text:
		return n.text
	case sequence:
		list := make([]any, len(n.items))
		for i, item := range n.items {
			list[i] = plainValue(item)
		}
		return list
	case mapping:
		m := map[string]any{}
		for _, f := range n.fields {
			m[f.name] = plainValue(f.value)
		}
		return m
	default:
		if n.line == 1 && n.column == 1 {
			return map[string]any{} // the empty file
		}
		return nil
	}
}
