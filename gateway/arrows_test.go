// Package gateway_test holds the direction in which the gateway's packages may import each
// other: an arrow may only point down the list. It keeps the parts understandable one by one,
// and the pure ones pure.
package gateway_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/interlock-gateway/interlock/"

// order is architecture from top to bottom. A package of two segments stands for those below
// it too.
var order = []string{
	"server", "admin", "downstream", "flow", "route", "key", "upstream", "adapter", "wasm", "policy",
	"ledger", "storage", "recovery", "failure", "openai", "catalog", "fault", "sigv4", "config", "telemetry",
}

// only names libraries that one place may import, because what they do belongs there.
var only = map[string][]string{
	"github.com/valyala/fasthttp":         {"gateway/downstream", "gateway/upstream", "bench"},
	"github.com/open-policy-agent/opa":    {"gateway/policy", "policies"},
	"github.com/tetratelabs/wazero":       {"gateway/wasm"},
	"modernc.org/sqlite":                  {"gateway/storage"},
	"github.com/spf13/cobra":              {"cmd/interlock"},
	"github.com/prometheus/client_golang": {"gateway/telemetry", "gateway/admin"},
}

// beside names what packages may import from outside gateway/: only policy reads the default
// bundle, only the adapters and their loading know what plugins are made of.
var beside = map[string][]string{
	"policy":  {"policies"},
	"adapter": {"sdk/go"},
	"server":  {"plugins"},
	"wasm":    {"sdk/go", "sdk/guests/go/echo"}, // its tests
}

// pure packages import nothing of ours but what is listed.
var pure = map[string][]string{
	"failure":  {},
	"sigv4":    {},
	"recovery": {"failure"},
}

type source struct {
	path    string // of the file, from the module's root
	dir     string
	imports []string
}

func sources(t *testing.T) []source {
	var all []source
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() && (strings.HasPrefix(name, ".") && name != ".." || name == "node_modules" || name == "testdata") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel("..", path)
		if err != nil {
			return err
		}
		s := source{path: filepath.ToSlash(rel), dir: filepath.ToSlash(filepath.Dir(rel))}
		for _, i := range f.Imports {
			p, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				return err
			}
			s.imports = append(s.imports, p)
		}
		all = append(all, s)
		return nil
	})
	require.NoError(t, err)
	require.NotEmpty(t, all)
	return all
}

func rank(t *testing.T, dir string) (string, int) {
	name := strings.Split(strings.TrimPrefix(dir, "gateway/"), "/")[0]
	i := slices.Index(order, name)
	require.GreaterOrEqual(t, i, 0, "gateway/%s has no place in the order", name)
	return name, i
}

func TestArrowsPointDown(t *testing.T) {
	for _, s := range sources(t) {
		if !strings.HasPrefix(s.dir, "gateway/") {
			continue
		}
		from, at := rank(t, s.dir)
		for _, p := range s.imports {
			dir, ours := strings.CutPrefix(p, module)
			if !ours {
				continue
			}
			if !strings.HasPrefix(dir, "gateway/") {
				require.Contains(t, beside[from], dir, "%s imports %s: the gateway stands on its own packages", s.path, dir)
				continue
			}
			to, below := rank(t, dir)
			require.True(t, to == from || below > at, "%s imports %s, which is above it", s.path, to)
			if allowed, isPure := pure[from]; isPure && to != from {
				require.Contains(t, allowed, to, "%s is pure and imports %s", s.path, to)
			}
		}
	}
}

func TestLibrariesStayWhereTheyBelong(t *testing.T) {
	for _, s := range sources(t) {
		for _, p := range s.imports {
			for lib, places := range only {
				if p != lib && !strings.HasPrefix(p, lib+"/") {
					continue
				}
				require.True(t, slices.ContainsFunc(places, func(place string) bool {
					return s.dir == place || strings.HasPrefix(s.dir, place+"/")
				}), "%s imports %s, which belongs to %v", s.path, p, places)
			}
		}
	}
}

// What decides must not know for whom.
func TestNoProviderIsNamedWhereDecisionsAreMade(t *testing.T) {
	places := []string{"recovery", "failure", "route", "flow", "policy", "upstream", "downstream", "ledger"}
	names := []string{
		"anthropic", "azure", "bedrock", "cerebras", "claude", "cloudflare", "cohere", "dashscope", "databricks",
		"deepinfra", "deepseek", "fireworks", "gemini", "groq", "huggingface", "minimax", "mistral", "moonshot",
		"nebius", "nvidia", "ollama", "openrouter", "perplexity", "sambanova", "together.ai", "vertex", "voyage",
		"watsonx", "xai", "zhipu",
	}
	check := func(path string) {
		b, err := os.ReadFile(path)
		require.NoError(t, err)
		text := strings.ToLower(string(b))
		for _, n := range names {
			require.NotContains(t, text, n, "%s", path)
		}
	}
	for _, s := range sources(t) {
		for _, p := range places {
			if s.dir == "gateway/"+p || strings.HasPrefix(s.dir, "gateway/"+p+"/") {
				check(filepath.Join("..", s.path))
			}
		}
	}
	rules := 0
	require.NoError(t, filepath.WalkDir("../policies", func(path string, d fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".rego" {
			rules++
			check(path)
		}
		return err
	}))
	require.Positive(t, rules)
}

// The SDK and the plugins run inside guests: they know nothing of the gateway.
func TestPluginsStandAlone(t *testing.T) {
	for _, s := range sources(t) {
		if strings.HasSuffix(s.path, "_test.go") || s.dir == "plugins/plugintest" || // builds modules for tests
			!strings.HasPrefix(s.dir, "plugins") && !strings.HasPrefix(s.dir, "sdk/go") && !strings.HasPrefix(s.dir, "sdk/guests") {
			continue
		}
		for _, p := range s.imports {
			require.False(t, strings.HasPrefix(p, module+"gateway/"), "%s imports %s", s.path, p)
		}
	}
}
