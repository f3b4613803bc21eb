package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/gateway/catalog"
	"github.com/interlock-gateway/interlock/gateway/config"
	"github.com/interlock-gateway/interlock/sdk/conformance"
	interlock "github.com/interlock-gateway/interlock/sdk/go"
)

const pluginGuide = "sdk/README.md"

// Every command of the guide and of the plugins' own READMEs is one, with the flags it shows.
func TestCommandsOfThePluginGuideExist(t *testing.T) {
	command := regexp.MustCompile("(?m)^(?:bin/)?interlock (plugin [a-z]+)(.*)$")
	flag := regexp.MustCompile(`--[a-z]+`)
	seen := map[string]bool{}
	texts := []string{readPage(t, pluginGuide), pluginReadmes["adapter"], pluginReadmes["guard"], readPage(t, "README.md")}
	for _, text := range texts {
		for _, block := range blocks(text, "sh") {
			for _, m := range command.FindAllStringSubmatch(block, -1) {
				status, out, errs := interlockRun(t, append(strings.Fields(m[1]), "--help")...)
				require.Zero(t, status, errs)
				require.Contains(t, out, "interlock "+m[1], m[0])
				for _, f := range flag.FindAllString(m[2], -1) {
					require.Contains(t, out, f, m[0])
				}
				seen[m[1]] = true
			}
		}
	}
	for _, c := range newPluginCommand().Commands() {
		name := "plugin " + c.Name()
		require.True(t, seen[name] || strings.Contains(readPage(t, pluginGuide), "interlock "+name), "%s is not in the guide", name)
		require.NotEmpty(t, c.Example, name)
		require.NotEmpty(t, c.Long, name)
	}
}

func TestConfigurationOfThePluginGuideIsValid(t *testing.T) {
	t.Setenv("ACME_API_KEY", "a-key-of-some-length")
	t.Setenv("WEB_APP_KEY", "a-key-of-some-length")
	checked := 0
	for _, text := range blocks(readPage(t, pluginGuide), "yaml") {
		if !strings.HasPrefix(text, "version:") {
			continue
		}
		path := filepath.Join(t.TempDir(), "interlock.yaml")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		_, r := catalog.Load(path, config.Env{}) // and not check, which would look for the module
		require.NoError(t, r.Err())
		checked++
	}
	require.Equal(t, 1, checked)
}

// The guide's fixture is one, and its classes are all there are.
func TestFixtureAndClassesOfThePluginGuide(t *testing.T) {
	page := readPage(t, pluginGuide)
	parsed := 0
	for _, text := range blocks(page, "text") {
		if strings.HasPrefix(text, "-- ") {
			_, err := conformance.ParseFixture("guide", []byte(text))
			require.NoError(t, err)
			parsed++
		}
	}
	require.Equal(t, 1, parsed)
	for _, class := range []string{
		interlock.ClientInvalid, interlock.ContextOverflow, interlock.ContentFiltered, interlock.RateLimited, interlock.Overloaded,
		interlock.ServerError, interlock.Timeout, interlock.UpstreamAuth, interlock.ModelUnavailable, interlock.MalformedAnswer,
	} {
		require.Contains(t, page, "`"+class+"`")
	}
}
