package fault

import (
	"fmt"
	"os"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

var examples = regexp.MustCompile("(?s)```fault\n(.*?)```")

// TestReadme parses every example of the reference, and demands that it names
// every word of the language.
func TestReadme(t *testing.T) {
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	found := examples.FindAllSubmatch(text, -1)
	require.NotEmpty(t, found)
	for i, m := range found {
		s, errs := Parse(fmt.Sprintf("example-%d", i+1), string(m[1]))
		require.Empty(t, errs)
		require.NotNil(t, s)
	}
	all := append(append(append(keys(settingWords), keys(ruleWords)...), keys(stepWords)...), append(endpointWords, "let", "on", "any", "connection", "repeat")...)
	all = append(append(append(all, varNames...), askWords...), codings...)
	for _, word := range all {
		require.Regexp(t, "`[^`\n]*\\b"+regexp.QuoteMeta(word)+"\\b", string(text), "README.md says nothing of %s", word)
	}
}
