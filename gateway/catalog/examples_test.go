package catalog

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/gateway/config"
)

var variable = regexp.MustCompile(`\$\{env:([A-Z0-9_]+)\}`)

// Every configuration that we show passes the strict check.
func TestExamplesPassTheStrictCheck(t *testing.T) {
	files, err := filepath.Glob("../../examples/configs/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range append(files, "../../examples/quickstart/interlock.yaml") {
		t.Run(filepath.Base(filepath.Dir(file))+"/"+filepath.Base(file), func(t *testing.T) {
			b, err := os.ReadFile(file)
			require.NoError(t, err)
			values := map[string]string{}
			for _, m := range variable.FindAllStringSubmatch(string(b), -1) {
				values[m[1]] = "value-of-" + m[1]
				if strings.HasSuffix(m[1], "_SHA256") {
					values[m[1]] = strings.Repeat("0a", 32)
				}
			}
			c, r := Load(file, config.Env{Lookup: func(name string) (string, bool) {
				v, ok := values[name]
				return v, ok
			}})
			require.NoError(t, r.Err())
			require.NotNil(t, c)
			r.Strict()
			require.NoError(t, r.Err())
		})
	}
}
