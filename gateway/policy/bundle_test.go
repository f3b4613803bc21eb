package policy

import (
	"bytes"
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/cover"
	"github.com/open-policy-agent/opa/v1/format"
	"github.com/open-policy-agent/opa/v1/loader"
	"github.com/open-policy-agent/opa/v1/storage"
	"github.com/open-policy-agent/opa/v1/tester"
	"github.com/stretchr/testify/require"
)

// The default bundle's folder, as the stock `opa` command would be given it.
const bundleDir = "../../policies"

// What `opa test policies/` does: every file below the folder is loaded, JSON as data, and
// the tests of the bundle run. Coverage is held per file.
func TestStockTest(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	options := ast.ParserOptions{ProcessAnnotation: true, RegoVersion: ast.RegoV1}
	modules, store, err := tester.LoadWithParserOptions([]string{bundleDir}, nil, options)
	require.NoError(t, err)
	txn, err := store.NewTransaction(ctx)
	require.NoError(t, err)
	defer store.Abort(ctx, txn)

	coverage := cover.New()
	results, err := tester.NewRunner().
		SetStore(store).
		SetModules(modules).
		SetCompiler(ast.NewCompiler().WithStrict(true).WithEnablePrintStatements(true)).
		SetCoverageQueryTracer(coverage).
		CapturePrintOutput(true).
		SetTimeout(30*time.Second).
		RunTests(ctx, txn)
	require.NoError(t, err)
	passed := 0
	for result := range results {
		require.True(t, result.Pass(), "%v %s", result, result.Output)
		passed++
	}
	require.Greater(t, passed, 30)

	for name, file := range coverage.Report(modules).Files {
		if strings.HasSuffix(name, "_test.rego") {
			continue
		}
		require.GreaterOrEqualf(t, file.Coverage, 90.0, "%s: not covered: %v", name, file.NotCovered)
	}
}

// What `opa test --bundle policies/` does: only data.json files, within the manifest's roots.
func TestStockTestAsBundle(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	options := ast.ParserOptions{ProcessAnnotation: true, RegoVersion: ast.RegoV1}
	bundles, store, err := tester.LoadBundlesWithParserOptions([]string{bundleDir}, nil, options)
	require.NoError(t, err)
	txn, err := store.NewTransaction(ctx, storage.WriteParams)
	require.NoError(t, err)
	defer store.Abort(ctx, txn)
	results, err := tester.NewRunner().SetStore(store).SetBundles(bundles).
		SetCompiler(ast.NewCompiler().WithStrict(true)).SetTimeout(30*time.Second).RunTests(ctx, txn)
	require.NoError(t, err)
	passed := 0
	for result := range results {
		require.True(t, result.Pass(), "%v", result)
		passed++
	}
	require.Greater(t, passed, 30)
}

// What `opa check --strict policies/` does, without schemas and with the input schema.
func TestStockCheck(t *testing.T) {
	loaded, err := loader.NewFileLoader().WithRegoVersion(ast.RegoV1).WithProcessAnnotation(true).
		Filtered([]string{bundleDir}, nil)
	require.NoError(t, err)
	modules := map[string]*ast.Module{}
	for name, file := range loaded.Modules {
		modules[name] = file.Parsed
	}
	plain := ast.NewCompiler().WithStrict(true)
	plain.Compile(modules)
	require.Empty(t, plain.Errors)

	schemas, err := loader.Schemas(filepath.Join(bundleDir, "schemas/input/schema.json"))
	require.NoError(t, err)
	typed := ast.NewCompiler().WithStrict(true).WithSchemas(schemas).WithUseTypeCheckAnnotations(true)
	typed.Compile(modules)
	require.Empty(t, typed.Errors)

	for _, name := range []string{"input", "admission", "failure", "replay", "substitution", "matrix"} {
		require.Contains(t, loaded.Documents["schemas"], name, "schemas lie beside each other, none merged into another")
	}
}

// What `opa fmt --list policies/` does.
func TestStockFormat(t *testing.T) {
	eachFile(t, bundleDir, ".rego", func(path string, text []byte) {
		formatted, err := format.SourceWithOpts(path, text, format.Opts{RegoVersion: ast.RegoV1})
		require.NoError(t, err)
		if os.Getenv("UPDATE") != "" {
			require.NoError(t, os.WriteFile(path, formatted, 0o644))
			return
		}
		require.True(t, bytes.Equal(formatted, text), "%s is not formatted; UPDATE=1 rewrites it", path)
	})
	eachFile(t, bundleDir, ".json", func(path string, text []byte) {
		require.True(t, json.Valid(text), path)
	})
}

func eachFile(t *testing.T, dir, ext string, do func(path string, text []byte)) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		require.NoError(t, err)
		if filepath.Ext(path) == ext {
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			do(path, text)
		}
		return nil
	}))
}
