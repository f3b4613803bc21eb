package tool

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/format"

	"github.com/interlock-gateway/interlock/gateway/policy"
)

// Format holds the Rego files below a folder to OPA's format, tests included. It returns where
// a file departs from it first, or with fix the files that it rewrote. Files that do not parse
// are left out: policy.Check says why they do not.
func Format(ctx context.Context, dir string, fix bool) (faults policy.Errors, fixed []string, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err := errors.Join(err, ctx.Err()); err != nil {
			return err
		}
		if strings.HasPrefix(d.Name(), ".") && path != dir {
			if d.IsDir() {
				return filepath.SkipDir
			}
			return nil
		}
		info, err := os.Stat(path) // through links
		if err != nil || !info.Mode().IsRegular() || filepath.Ext(path) != ".rego" {
			return nil // a dangling link is no file
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		wanted, err := format.SourceWithOpts(path, text, format.Opts{RegoVersion: ast.RegoV1})
		if err != nil || bytes.Equal(wanted, text) {
			return nil
		}
		if !fix {
			line, column := firstDifference(text, wanted)
			faults = append(faults, policy.Fault{
				File: path, Line: line, Column: column, Message: "not formatted as OPA does; --fix rewrites it",
			})
			return nil
		}
		fixed = append(fixed, path)
		return replaceFile(path, wanted, info.Mode().Perm())
	})
	return faults, fixed, err
}

// firstDifference returns the line and column, from 1, where two texts part.
func firstDifference(a, b []byte) (line, column int) {
	at := 0
	for at < len(a) && at < len(b) && a[at] == b[at] {
		at++
	}
	return bytes.Count(a[:at], []byte("\n")) + 1, at - bytes.LastIndexByte(a[:at], '\n')
}

// replaceFile writes beside a file and renames: a gateway that watches the folder reads the
// old text or the new one.
func replaceFile(path string, text []byte, mode fs.FileMode) error {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(real), ".interlock-*")
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	err = errors.Join(err, f.Chmod(mode), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), real)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("%s: %w", path, err), os.Remove(f.Name()))
	}
	return nil
}
