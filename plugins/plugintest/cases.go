package plugintest

import (
	"os"
	"path/filepath"
	"testing"
)

// Cases is the folder of the cases, which a stranger's clone has not: the test is skipped there.
func Cases(t testing.TB, provider string) string {
	t.Helper()
	dir := os.Getenv("INTERLOCK_CASES")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "cases")
	}
	if _, err := os.Stat(filepath.Join(dir, "recordings", provider)); err != nil {
		t.Skip("no recordings of real providers here: set INTERLOCK_CASES to a folder that has them")
	}
	return dir
}

// ReadFile reads a file that must be there.
func ReadFile(t testing.TB, path ...string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return b
}
