package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/gateway/config"
)

const policyGuide = "policies/README.md"

// policyRows are the rows of the guide's table of commands, by the name of the command. A command
// may have several.
func policyRows(t *testing.T) map[string]string {
	t.Helper()
	rows := map[string]string{}
	for _, line := range strings.Split(readPage(t, policyGuide), "\n") {
		if !strings.HasPrefix(line, "| `interlock policy ") {
			continue
		}
		for _, m := range regexp.MustCompile("`interlock policy ([a-z]+)").FindAllStringSubmatch(line, -1) {
			rows[m[1]] += line + "\n"
		}
	}
	return rows
}

// filterFlags are what the guide calls FILTERS: the ledger's.
func filterFlags() []string {
	var c cobra.Command
	addFilters(&c)
	var names []string
	c.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
	return names
}

// Every command that ships is in the guide with all its flags, and the guide has no other.
func TestPolicyGuideHasEveryCommandAndFlag(t *testing.T) {
	rows, policyCommand := policyRows(t), newPolicyCommand()
	page := readPage(t, policyGuide)
	everywhere := []string{}
	policyCommand.PersistentFlags().VisitAll(func(f *pflag.Flag) {
		everywhere = append(everywhere, f.Name)
		require.Contains(t, page, "`--"+f.Name+"`")
	})
	written := regexp.MustCompile(`--([a-z]+(?:-[a-z]+)*)`)
	var names []string
	for _, c := range policyCommand.Commands() {
		names = append(names, c.Name())
		row := rows[c.Name()]
		require.NotEmpty(t, row, "%s is missing", c.Name())
		var has []string
		note := func(f *pflag.Flag) {
			if !f.Hidden && f.Name != "help" {
				has = append(has, f.Name)
			}
		}
		c.Flags().VisitAll(note)
		c.PersistentFlags().VisitAll(note)
		for _, name := range has {
			if slices.Contains(filterFlags(), name) {
				require.Contains(t, row, "FILTERS", c.Name())
				continue
			}
			require.Regexp(t, "--"+name+"\\b", row, "%s --%s is missing", c.Name(), name)
		}
		for _, m := range written.FindAllStringSubmatch(row, -1) {
			require.Contains(t, append(has, everywhere...), m[1], "%s has no --%s", c.Name(), m[1])
		}
	}
	for name := range rows {
		require.Contains(t, names, name, "there is no such command")
	}
}

// A newcomer who types the guide's commands gets what it says: one cell changed, tested, shipped.
func TestPolicyGuidesCommandsWork(t *testing.T) {
	if testing.Short() || raceDetector {
		t.Skip("it asks the whole domain of the replay point")
	}
	if _, err := exec.LookPath("openssl"); err != nil {
		t.Skip("openssl is not here")
	}
	policiesDir, err := filepath.Abs(filepath.Join(root, "policies"))
	require.NoError(t, err)
	guide := readPage(t, policyGuide)
	dir := t.TempDir()
	t.Chdir(dir)
	require.NoError(t, os.Symlink(policiesDir, "policies"))
	ran, said := 0, ""
	for _, block := range blocks(guide, "sh") {
		for _, line := range strings.Split(strings.TrimSpace(block), "\n") {
			line = strings.TrimSpace(regexp.MustCompile(`\s#.*$`).ReplaceAllString(line, ""))
			if strings.HasPrefix(line, "opa ") || strings.HasPrefix(line, "GOGC=") {
				continue
			}
			if !strings.HasPrefix(line, "interlock ") {
				out, err := exec.CommandContext(t.Context(), "sh", "-ec", line).CombinedOutput()
				require.NoError(t, err, "%s\n%s", line, out)
				continue
			}
			for command := range strings.SplitSeq(line, "&&") {
				words := strings.Fields(command)
				status, out, errs := interlockRun(t, words[1:]...)
				want := 0
				if words[2] == "diff" {
					want = 1
				}
				require.Equal(t, want, status, "%s\n%s\n%s", command, out, errs)
				ran++
				said += out
			}
		}
	}
	require.GreaterOrEqual(t, ran, 8)
	require.Contains(t, said, "replay  failure.class = malformed_answer, failure.phase = before_headers")
	require.Contains(t, said, "checkout")
	for _, archive := range []string{"ours.tar.gz", "mine.tar.gz"} {
		require.Contains(t, archived(t, archive), ".manifest")
	}
}

// Every key of a bundle is described in the schema and named in the guide.
func TestKeysOfBundlesAreDescribed(t *testing.T) {
	var schema any
	require.NoError(t, json.Unmarshal(config.Schema(), &schema))
	described := map[string]string{}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			properties, _ := v["properties"].(map[string]any)
			if properties["verification_key"] != nil {
				for name, p := range properties {
					property, _ := p.(map[string]any)
					described[name], _ = property["description"].(string)
				}
			}
			for _, inner := range v {
				walk(inner)
			}
		case []any:
			for _, inner := range v {
				walk(inner)
			}
		}
	}
	walk(schema)
	page := readPage(t, policyGuide)
	bundle := reflect.TypeFor[config.Bundle]()
	for i := range bundle.NumField() {
		name := bundle.Field(i).Tag.Get("yaml")
		require.NotEmpty(t, described[name], "%s is not described", name)
		require.Regexp(t, "\\b"+name+"\\b", page, name)
	}
}
