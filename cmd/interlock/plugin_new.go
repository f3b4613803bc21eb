package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/interlock-gateway/interlock/gateway/wasm"
	"github.com/interlock-gateway/interlock/sdk"
)

const (
	sdkModule    = "github.com/interlock-gateway/interlock/sdk/go"
	templateName = "acme" // of the plugin that the templates are
	leastGo      = "1.26"
)

var pluginName = regexp.MustCompile(`^[a-z][a-z0-9-]{0,62}[a-z0-9]$`)

func newPluginNew() *cobra.Command {
	var lang, kind string
	c := &cobra.Command{
		Use:   "new --lang go NAME",
		Short: "Make a folder with a plugin that works, to start from",
		Long: "Make the folder NAME with a plugin that works: its source, fixtures that test it, and the SDK, so\n" +
			"that it builds anywhere and without a network. NAME is the plugin's: lower-case letters, digits and\n" +
			"hyphens; it may have a path before it.",
		Example: "  interlock plugin new --lang go acme\n" +
			"  interlock plugin new --lang go --kind guard plugins/no-secrets",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if lang != "go" {
				return &exitError{status: 2, message: fmt.Sprintf("--lang %q: allowed is go; in C and Rust begin with sdk/abi/interlock_plugin.h "+
					"and the guests in sdk/guests of the source, and give the module to `interlock plugin build`", printable(lang))}
			}
			if kind != wasm.KindAdapter && kind != wasm.KindGuard {
				return &exitError{status: 2, message: fmt.Sprintf("--kind %q: allowed are adapter and guard", printable(kind))}
			}
			dir := filepath.Clean(args[0])
			name := filepath.Base(dir)
			if !pluginName.MatchString(name) {
				return &exitError{status: 2, message: fmt.Sprintf("%q is no name of a plugin: allowed are 2 to 64 lower-case letters, digits and hyphens, a letter first", printable(name))}
			}
			if err := makePlugin(dir, name, kind); err != nil {
				return err
			}
			fmt.Fprintf(c.OutOrStdout(), "Made %s, a plugin of the kind %s. It works as it is:\n\n  cd %s\n  interlock plugin test\n\nREADME.md there says what to change.\n", dir, kind, dir)
			return nil
		},
	}
	c.Flags().StringVar(&lang, "lang", "", "the language: go; required")
	c.Flags().StringVar(&kind, "kind", wasm.KindAdapter, "adapter or guard")
	return c
}

// makePlugin makes the folder. What fails leaves nothing behind.
func makePlugin(dir, name, kind string) (err error) {
	existed := false
	switch list, err := os.ReadDir(dir); {
	case err == nil && len(list) > 0:
		return fmt.Errorf("%s is there already, and not empty", dir)
	case err == nil:
		existed = true
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	defer func() {
		if err == nil {
			return
		}
		if list, e := os.ReadDir(dir); e == nil {
			for _, entry := range list {
				_ = os.RemoveAll(filepath.Join(dir, entry.Name()))
			}
		}
		if !existed {
			_ = os.Remove(dir)
		}
	}()
	rename := func(b []byte) []byte { return bytes.ReplaceAll(b, []byte(templateName), []byte(name)) }
	if err := copySource("template/"+kind, dir, rename); err != nil {
		return err
	}
	if err := copySource("go", filepath.Join(dir, "sdk"), nil); err != nil {
		return err
	}
	goLine := "go " + leastGo + ".0\n"
	for file, text := range map[string]string{
		"go.mod": "module example.com/" + name + "\n\n" + goLine + "\n" +
			"require " + sdkModule + " v0.0.0\n\nreplace " + sdkModule + " => ./sdk\n",
		"sdk/go.mod": "module " + sdkModule + "\n\n" + goLine,
		".gitignore": "*.wasm\n",
		"README.md":  string(rename([]byte(pluginReadmes[kind]))),
	} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o644); err != nil { // #nosec G306 -- source, for everybody
			return err
		}
	}
	return nil
}

// copySource writes a folder of the SDK, without its tests of Go.
func copySource(from, to string, change func([]byte) []byte) error {
	return fs.WalkDir(sdk.Files, from, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		target := filepath.Join(to, filepath.FromSlash(strings.TrimPrefix(strings.TrimPrefix(p, from), "/")))
		if d.IsDir() {
			return os.MkdirAll(target, 0o755)
		}
		if strings.HasSuffix(path.Base(p), "_test.go") {
			return nil
		}
		b, err := sdk.Files.ReadFile(p)
		if err != nil {
			return err
		}
		if change != nil {
			b = change(b)
		}
		return os.WriteFile(target, b, 0o644) // #nosec G306 -- source, for everybody
	})
}

var pluginReadmes = map[string]string{
	wasm.KindAdapter: `# acme

An adapter for Interlock: it translates between OpenAI's format and that of the provider acme.

` + "```sh" + `
interlock plugin build    # makes acme.wasm, and prints the lines for the gateway's configuration
interlock plugin test     # the fixtures in testdata, and what any adapter must hold
interlock plugin bench    # what each call costs
` + "```" + `

It works as it is, for a provider that is made up. To make it yours:

1. testdata: for each exchange that the provider's pages show, a file with the caller's request (request.json), the provider's request (provider.json), its answer (answer.json, stream.sse) and the answer in OpenAI's format (want.json). ` + "`interlock plugin test --update`" + ` fills in the parts that you leave empty: read what it wrote.
2. manifest.go: the endpoints, headers, ways to authenticate and capabilities.
3. request.go, answer.go, failure.go: the mapping.
4. config.go: what an operator may set.

A running gateway that has acme.wasm in its configuration takes a new build by itself.

sdk holds the SDK's source: docs are in its comments (` + "`go doc ./sdk`, `go doc ./sdk/chat`, `go doc ./sdk/json`" + `). No network is needed.
`,
	wasm.KindGuard: `# acme

A guard for Interlock: it looks at requests and answers, and may refuse or replace them.

` + "```sh" + `
interlock plugin build    # makes acme.wasm, and prints the lines for the gateway's configuration
interlock plugin test     # the fixtures in testdata, and what any guard must hold
interlock plugin bench    # what each call costs
` + "```" + `

It works as it is, and refuses the words of its configuration. To make it yours, change guard.go and manifest.go, and the fixtures in testdata: what is looked at (request.json, answer.json, stream.frames) and what the verdict must be (verdict.json). ` + "`interlock plugin test --update`" + ` fills in a verdict that you leave empty: read what it wrote.

A running gateway that has acme.wasm in its configuration takes a new build by itself.

sdk holds the SDK's source: docs are in its comments (` + "`go doc ./sdk`, `go doc ./sdk/json`" + `). No network is needed.
`,
}
