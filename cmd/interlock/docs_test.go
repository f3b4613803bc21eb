package main

import (
	"bytes"
	"context"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// root is the project's folder.
const root = "../.."

var pages = []string{
	"README.md", "RATIONALE.md", "CHANGELOG.md", "gateway/README.md", "gateway/fault/README.md", "policies/README.md",
	"sdk/README.md", "sdk/conformance/README.md", "sdk/abi/README.md", "sdk/abi/vectors/README.md",
}

func readPage(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(root, name))
	require.NoError(t, err)
	return string(b)
}

// blocks are a page's fenced blocks of one language.
func blocks(page, language string) []string {
	var all []string
	for _, m := range regexp.MustCompile("(?ms)^```"+language+"\n(.*?)^```").FindAllStringSubmatch(page, -1) {
		all = append(all, m[1])
	}
	return all
}

func TestLinksOfThePagesLeadSomewhere(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	for _, name := range pages {
		for _, m := range link.FindAllStringSubmatch(readPage(t, name), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			target, _, _ := strings.Cut(m[1], "#")
			_, err := os.Stat(filepath.Join(root, filepath.Dir(name), target))
			require.NoError(t, err, "%s links to %s", name, m[1])
		}
	}
}

func TestConfigurationsOfTheReadmeAreValid(t *testing.T) {
	for _, name := range []string{"OPENAI_API_KEY", "OPENAI_API_KEY_2", "WEB_APP_KEY"} {
		t.Setenv(name, "a-key-of-some-length")
	}
	yaml := blocks(readPage(t, "README.md"), "yaml")
	require.NotEmpty(t, yaml)
	for _, text := range yaml {
		path := filepath.Join(t.TempDir(), "interlock.yaml")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		var out, errs output
		require.Zero(t, run(t.Context(), []string{"check", "--strict", "--config", path}, &out, &errs), errs.String())
	}
	for _, line := range strings.Split(readPage(t, "README.md"), "\n") {
		_, path, ok := strings.Cut(line, "bin/interlock check --config ")
		if !ok {
			continue
		}
		var out, errs output
		require.Zero(t, run(t.Context(), []string{"check", "--strict", "--config", filepath.Join(root, path)}, &out, &errs), errs.String())
	}
}

// What the README shows of the demonstration is what the demonstration shows.
func TestReadmeShowsTheDemo(t *testing.T) {
	_, out, _ := runDemo(t)
	var shown string
	for _, b := range blocks(readPage(t, "README.md"), "text") {
		if strings.Contains(b, "ledger  1") {
			shown = b
		}
	}
	require.NotEmpty(t, shown)
	number := regexp.MustCompile(`(under )?\d+ ms`)
	out = number.ReplaceAllString(out, "N ms")
	for _, line := range strings.Split(strings.TrimSpace(number.ReplaceAllString(shown, "N ms")), "\n") {
		require.Contains(t, out, strings.TrimSpace(line))
	}
}

// The packages' page has every package, and none that is not there.
func TestPackagesPageHasEveryPackage(t *testing.T) {
	page := readPage(t, "gateway/README.md")
	linked := map[string]bool{}
	for _, m := range regexp.MustCompile("\\[`[a-z0-9]+`\\]\\(([a-z0-9/]+)\\)").FindAllStringSubmatch(page, -1) {
		linked[m[1]] = true
	}
	gateway := filepath.Join(root, "gateway")
	err := filepath.WalkDir(gateway, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		if d.Name() == "testdata" {
			return filepath.SkipDir
		}
		if doc, _ := filepath.Glob(filepath.Join(path, "doc.go")); len(doc) == 1 {
			rel, err := filepath.Rel(gateway, path)
			require.NoError(t, err)
			require.True(t, linked[filepath.ToSlash(rel)], "%s is missing", rel)
		}
		return nil
	})
	require.NoError(t, err)
}

// The first policy change of the README, with its own commands: one cell, no restart.
func TestReadmesFirstPolicyChangeActs(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs the demonstration")
	}
	t.Setenv("TMPDIR", t.TempDir())
	dir := copyPolicies(t)
	change := regexp.MustCompile(`(?m)^sed -i .*/tmp/my-policies/.*$`).FindString(readPage(t, "README.md"))
	require.NotEmpty(t, change)
	change = strings.ReplaceAll(change, "/tmp/my-policies", dir)
	body := regexp.MustCompile(`(?m)-d '(\{"model":"gpt-4.1-mini".*stumble.*\})' \|$`).FindStringSubmatch(readPage(t, "README.md"))
	require.Len(t, body, 2)

	ctx, stop := context.WithTimeout(t.Context(), 2*time.Minute)
	defer stop()
	var out, errs output
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, append([]string{"demo", "--policy", dir}, anyPort...), &out, &errs)
	}()
	variables := regexp.MustCompile(`export URL=(\S+) ADMIN=(\S+) KEY=(\S+)`)
	require.Eventually(t, func() bool { return variables.MatchString(out.String()) }, time.Minute, 20*time.Millisecond)
	v := variables.FindStringSubmatch(out.String())
	ask := func() string {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, v[1]+"/v1/chat/completions", strings.NewReader(body[1]))
		require.NoError(t, err)
		req.Header.Set("Authorization", "Bearer "+v[3])
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		require.True(t, bytes.Contains(b, []byte("[DONE]")), string(b))
		return resp.Header.Get("interlock-cause")
	}
	require.Equal(t, "same_route_retry", ask())
	said, err := exec.CommandContext(ctx, "sh", "-c", change).CombinedOutput()
	require.NoError(t, err, string(said))
	require.Eventually(t, func() bool { return ask() == "same_contract_fallback" }, 20*time.Second, 100*time.Millisecond)
	http.DefaultClient.CloseIdleConnections()
	stop()
	require.Zero(t, <-ended, errs.String())
	left, err := os.ReadDir(os.Getenv("TMPDIR"))
	require.NoError(t, err)
	require.Empty(t, left, "the demonstration leaves nothing behind")
}

// The programs that the README's commands call are those that it says are needed, or any
// system's own.
func TestReadmeNamesTheToolsItNeeds(t *testing.T) {
	page := readPage(t, "README.md")
	needs := regexp.MustCompile(`(?m)^You need .*$`).FindString(page)
	own := strings.Fields("bin/interlock cd cp export grep od sed tr sh")
	command := regexp.MustCompile(`(?m)(?:^|\| *|\$\()([a-zA-Z][\w/.-]*)`)
	for _, block := range blocks(page, "sh") {
		block = regexp.MustCompile(`(?s)'[^']*'|#[^\n]*`).ReplaceAllString(block, "")
		for _, m := range command.FindAllStringSubmatch(block, -1) {
			if strings.Contains(" "+strings.Join(own, " ")+" ", " "+m[1]+" ") {
				continue
			}
			require.Regexp(t, `\b`+regexp.QuoteMeta(m[1])+`\b`, needs, "%q is called", m[1])
		}
	}
}

// A key is deleted by its ID, and the help says what that is and where to find it.
func TestHelpOfKeyDelete(t *testing.T) {
	var out, errs output
	require.Zero(t, run(t.Context(), []string{"key", "delete", "--help"}, &out, &errs))
	for _, want := range []string{"key_", "interlock key list", "configuration file"} {
		require.Contains(t, out.String(), want)
	}
	require.Contains(t, readPage(t, "README.md"), "bin/interlock key delete key_")
}
