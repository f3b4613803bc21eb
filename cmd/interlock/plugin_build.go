package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	goversion "go/version"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/interlock-gateway/interlock/gateway/wasm"
)

func newPluginBuild() *cobra.Command {
	var out string
	var asJSON bool
	c := &cobra.Command{
		Use:   "build [DIR | FILE.wasm]",
		Short: "Build a plugin in Go, or finish a module that another compiler made",
		Long: "Build the plugin in DIR (default: here) with the Go toolchain, have the module say what it is, put\n" +
			"that into it as its manifest, and write DIR/NAME.wasm. Nothing is fetched from a network, unless\n" +
			"GOPROXY is set.\n\n" +
			"FILE.wasm is a module that is built already, in C or Rust for example: it gets its manifest, from\n" +
			"FILE.manifest.json where that is there, else from what it says of itself.",
		Example: "  interlock plugin build\n" +
			"  interlock plugin build acme -o /srv/interlock/acme.wasm\n" +
			"  interlock plugin build target/wasm32-unknown-unknown/release/acme.wasm",
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			b, err := build(c.Context(), argOrHere(args), out, c.ErrOrStderr())
			if err != nil {
				return err
			}
			if asJSON {
				text, err := json.Marshal(b)
				if err != nil {
					return err
				}
				return printJSON(c.OutOrStdout(), text)
			}
			b.print(c.OutOrStdout())
			return nil
		},
	}
	c.Flags().StringVarP(&out, "output", "o", "", "where to write the module (default: NAME.wasm in DIR, or FILE.wasm itself)")
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

func argOrHere(args []string) string {
	if len(args) == 0 {
		return "."
	}
	return args[0]
}

// built is a module as it was written.
type built struct {
	Path     string         `json:"path"`
	Size     int            `json:"size"`
	SHA256   string         `json:"sha256"`
	Changed  bool           `json:"changed"` // false: the file had these bytes already
	Manifest *wasm.Manifest `json:"manifest"`

	code []byte
}

func build(ctx context.Context, arg, out string, stderr io.Writer) (*built, error) {
	if isFolder(arg) {
		return buildFolder(ctx, arg, out, stderr)
	}
	m, err := openModule(arg)
	if err != nil {
		return nil, err
	}
	if m.path == "" {
		return nil, fmt.Errorf("%s is built already", arg)
	}
	if out == "" {
		out = m.path
	}
	return finish(ctx, m.code, m.manifest, func(*wasm.Manifest) string { return out })
}

// buildFolder builds the plugin in Go in a folder; out may be "".
func buildFolder(ctx context.Context, dir, out string, stderr io.Writer) (*built, error) {
	code, err := compileGo(ctx, dir, stderr)
	if err != nil {
		return nil, err
	}
	return finish(ctx, code, nil, func(m *wasm.Manifest) string {
		if out == "" {
			return filepath.Join(dir, m.Name+".wasm")
		}
		return out
	})
}

// compileGo runs the Go toolchain on the main package in dir, or in dir/wasm where there is one.
func compileGo(ctx context.Context, dir string, stderr io.Writer) ([]byte, error) {
	tool, err := exec.LookPath("go")
	if err != nil {
		return nil, fmt.Errorf("there is no Go toolchain in PATH: install Go %s or later (https://go.dev/dl), or give a module that is built already", leastGo)
	}
	pack := "."
	if isFolder(filepath.Join(dir, "wasm")) {
		pack = "./wasm"
	}
	if list, _ := filepath.Glob(filepath.Join(dir, pack, "*.go")); len(list) == 0 {
		return nil, fmt.Errorf("%s has no Go source to build: name a plugin's folder, or a module", dir)
	}
	temp, err := os.MkdirTemp("", "interlock-build-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(temp) //nolint:errcheck // it is temporary
	env := goEnvironment(os.Environ(), temp)
	if err := checkGo(ctx, tool, dir, env); err != nil {
		return nil, err
	}
	file := filepath.Join(temp, "plugin.wasm")
	cmd := exec.CommandContext(ctx, tool, "build", "-buildmode=c-shared", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", file, pack) // #nosec G204 -- the toolchain
	cmd.Dir, cmd.Env = dir, env
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Run(); err != nil {
		_, _ = stderr.Write(said.Bytes())
		hint := ""
		if bytes.Contains(said.Bytes(), []byte("GOPROXY=off")) {
			hint = "; nothing is fetched from a network unless GOPROXY is set"
		}
		return nil, fmt.Errorf("the Go toolchain cannot build %s: %w%s", dir, err, hint)
	}
	return readBounded(file, maxPluginFile)
}

// goEnvironment is the environment in which a plugin is built: this one, for WebAssembly, without
// a network. Where there is no home, the toolchain keeps what it must in temp.
func goEnvironment(env []string, temp string) []string {
	has := func(name string) bool {
		for _, v := range env {
			if value, ok := strings.CutPrefix(v, name+"="); ok {
				return value != ""
			}
		}
		return false
	}
	env = append(env[:len(env):len(env)], "GOOS=wasip1", "GOARCH=wasm", "GOTOOLCHAIN=local", "CGO_ENABLED=0")
	if !has("GOPROXY") {
		env = append(env, "GOPROXY=off")
	}
	if has("HOME") {
		return env
	}
	for name, dir := range map[string]string{"GOCACHE": "cache", "GOPATH": "path"} {
		if !has(name) && !(name == "GOCACHE" && has("XDG_CACHE_HOME")) {
			env = append(env, name+"="+filepath.Join(temp, dir))
		}
	}
	return env
}

func checkGo(ctx context.Context, tool, dir string, env []string) error {
	cmd := exec.CommandContext(ctx, tool, "env", "GOVERSION")
	cmd.Dir, cmd.Env = dir, env
	said, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			return fmt.Errorf("the Go toolchain does not work: %s", bytes.TrimSpace(exit.Stderr))
		}
		return fmt.Errorf("the Go toolchain does not work: %w", err)
	}
	have, _, _ := strings.Cut(strings.TrimSpace(string(said)), " ")
	if goversion.IsValid(have) && goversion.Compare(have, "go"+leastGo) < 0 {
		return fmt.Errorf("the Go toolchain in PATH is %s: a plugin needs Go %s or later (https://go.dev/dl)", have, leastGo)
	}
	return nil
}

// finish puts a module's manifest into it and writes it, whole or not at all. manifest may be nil:
// then it is what the module says of itself.
func finish(ctx context.Context, code, manifest []byte, path func(*wasm.Manifest) string) (*built, error) {
	said, err := wasm.Describe(ctx, wasm.Options{Name: "plugin", Module: code, KeepOutput: true})
	if err != nil {
		return nil, withWords(why(err))
	}
	m, err := wasm.ParseManifest(said)
	if err != nil {
		return nil, fmt.Errorf("what the module says of itself: %w", err)
	}
	text := said
	if manifest != nil {
		text = manifest
	}
	made, err := wasm.WriteManifest(code, compactJSON(text))
	if err != nil {
		return nil, err
	}
	if s := wasm.Inspect(wasm.Options{Name: m.Name, Module: made}); s.Refused != nil {
		return nil, why(s.Refused)
	}
	if manifest != nil {
		if _, err := wasm.Prepare(ctx, wasm.Options{Name: m.Name, Module: made, Grants: m.Capabilities}); err != nil {
			return nil, why(err)
		}
	}
	sum := sha256.Sum256(made)
	b := &built{Path: path(m), Size: len(made), SHA256: hex.EncodeToString(sum[:]), Manifest: m, code: made}
	if before, err := os.ReadFile(b.Path); err == nil && bytes.Equal(before, made) {
		return b, nil
	}
	b.Changed = true
	return b, writeWhole(b.Path, made)
}

func compactJSON(text []byte) []byte {
	var b bytes.Buffer
	if json.Compact(&b, text) != nil {
		return text // what is wrong with it is said by who reads it
	}
	return b.Bytes()
}

// writeWhole writes a file so that nobody ever reads a part of it.
func writeWhole(path string, b []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	if _, err = f.Write(b); err != nil {
		_ = f.Close()
		return err
	}
	if err = f.Chmod(0o644); err != nil { // #nosec G302 -- a module is no secret
		_ = f.Close()
		return err
	}
	if err = f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// print says what was built, with the lines of configuration that name it.
func (b *built) print(w io.Writer) {
	m := b.Manifest
	path := b.Path
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	fmt.Fprintf(w, "%s %s, %s: %s\n", m.Name, m.Version, article(m.Kind), strings.Join(m.Operations, ", "))
	fmt.Fprintf(w, "  file    %s\n  size    %s\n  sha256  %s\n\n", printable(path), bytesText(int64(b.Size)), b.SHA256)
	fmt.Fprint(w, "In the gateway's configuration:\n\n", configLines(m, path))
}

func article(kind string) string {
	if kind == wasm.KindAdapter {
		return "an adapter"
	}
	return "a " + kind
}

// configLines are what an operator pastes.
func configLines(m *wasm.Manifest, path string) string {
	source, _ := json.Marshal("file:" + path) // a JSON string is a YAML string
	grants := ""
	if len(m.Capabilities) > 0 {
		grants = ", grants: [" + strings.Join(m.Capabilities, ", ") + "]"
	}
	text := fmt.Sprintf("plugins:\n  - {name: %s, source: %s%s}\n", m.Name, source, grants)
	if m.Kind == wasm.KindGuard {
		var on []string
		for _, op := range m.Operations {
			on = append(on, strings.TrimPrefix(op, "guard_"))
		}
		return text + fmt.Sprintf("keys:\n  - name: …\n    guards: [{plugin: %s, on: [%s]}]\n", m.Name, strings.Join(on, ", "))
	}
	auth := "bearer"
	if len(m.Auth) > 0 {
		auth = m.Auth[0]
	}
	return text + fmt.Sprintf("providers:\n  %s: {adapter: \"plugin:%s\", base_url: \"https://…\", auth: %q}\n", m.Name, m.Name, auth)
}
