package policy

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/interlock-gateway/interlock/policies"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patient is for tests that are not about time: the machine may be busy.
var patient = Options{Timeout: 10 * time.Second}

func testContext(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func builtin(t testing.TB) *Revision {
	t.Helper()
	r, err := Load(testContext(t), Builtin(), patient)
	require.NoError(t, err)
	return r
}

// copyBundle writes the default bundle to a folder of its own, with changes: path → text, ""
// takes the file away.
func copyBundle(t testing.TB, changes map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, fs.WalkDir(policies.Files, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := policies.Files.ReadFile(path)
		if err != nil {
			return err
		}
		writeFile(t, filepath.Join(dir, path), string(text))
		return nil
	}))
	for path, text := range changes {
		if text == "" {
			require.NoError(t, os.Remove(filepath.Join(dir, path)))
			continue
		}
		writeFile(t, filepath.Join(dir, path), text)
	}
	return dir
}

func writeFile(t testing.TB, path, text string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
}

// edited returns a file of the default bundle with one text replaced.
func edited(t testing.TB, path, from, to string) string {
	t.Helper()
	text, err := policies.Files.ReadFile(path)
	require.NoError(t, err)
	require.Contains(t, string(text), from)
	return strings.Replace(string(text), from, to, 1)
}

func loadDir(t testing.TB, dir string) *Revision {
	t.Helper()
	r, err := Load(testContext(t), Path("test", dir), patient)
	require.NoError(t, err)
	return r
}

// refusal returns why a changed default bundle is refused.
func refusal(t testing.TB, changes map[string]string) string {
	t.Helper()
	r, err := Load(testContext(t), Path("test", copyBundle(t, changes)), patient)
	require.Error(t, err)
	require.Nil(t, r)
	return err.Error()
}
