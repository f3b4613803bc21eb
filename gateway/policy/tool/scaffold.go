package tool

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

//go:embed all:template
var start embed.FS

// Scaffold makes a folder with a bundle that works, to start from. It refuses a folder in
// which there is anything; what fails leaves nothing behind.
func Scaffold(dir string) (err error) {
	list, err := os.ReadDir(dir)
	switch {
	case err == nil && len(list) > 0:
		return fmt.Errorf("%s is there already, and not empty", dir)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	}
	existed := err == nil
	var made []string
	defer func() {
		if err == nil {
			return
		}
		for i := len(made) - 1; i >= 0; i-- {
			if made[i] != dir || !existed {
				_ = os.Remove(made[i])
			}
		}
	}()
	const from = "template"
	return fs.WalkDir(start, from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		target := filepath.Join(dir, filepath.FromSlash(strings.TrimPrefix(strings.TrimPrefix(path, from), "/")))
		made = append(made, target)
		if d.IsDir() {
			return os.MkdirAll(target, 0o755) // #nosec G301 -- source, for everybody
		}
		text, err := start.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(target, text, 0o644) // #nosec G306 -- source, for everybody
	})
}
