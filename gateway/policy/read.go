package policy

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/interlock-gateway/interlock/policies"
)

// A bundle file larger than that is refused, and so is a bundle with more or deeper files.
const (
	maxFileBytes   = 32 << 20
	maxBundleBytes = 128 << 20
	maxFiles       = 10_000
	maxFolderDepth = 16
)

// collector gathers a bundle's files, within the limits.
type collector struct {
	all   bool // also what the gateway does not read: it may be signed
	list  []file
	bytes int64
}

func (c *collector) source(ctx context.Context, s Source) error {
	switch {
	case s.path == "":
		return c.folder(ctx, policies.Files, ".", 0)
	case isTarball(s.path):
		whole, err := os.ReadFile(s.path)
		if err != nil {
			return err
		}
		return c.tarball(ctx, s.path, whole)
	default:
		return c.directory(ctx, s.path)
	}
}

// wants reports whether a file is to be read.
func (c *collector) wants(name string) bool {
	if c.all {
		return true
	}
	return belongs(name)
}

func (c *collector) add(name string, r io.Reader) error {
	text, err := io.ReadAll(io.LimitReader(r, maxFileBytes+1))
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	c.bytes += int64(len(text))
	switch {
	case len(text) > maxFileBytes:
		return fmt.Errorf("%s is larger than %d MiB", name, maxFileBytes>>20)
	case c.bytes > maxBundleBytes:
		return fmt.Errorf("the bundle is larger than %d MiB", maxBundleBytes>>20)
	case len(c.list) == maxFiles:
		return fmt.Errorf("the bundle has more than %d files", maxFiles)
	}
	c.list = append(c.list, file{path: name, text: text})
	return nil
}

func (c *collector) directory(ctx context.Context, dir string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is neither a directory nor a .tar.gz file", dir)
	}
	return c.folder(ctx, os.DirFS(dir), ".", 0)
}

// folder reads a folder and what is below it. Links are followed, as mounted configuration
// is made of them; hidden files other than the bundle's own are not looked at.
func (c *collector) folder(ctx context.Context, root fs.FS, dir string, depth int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if depth > maxFolderDepth {
		return fmt.Errorf("%s: folders are nested deeper than %d", dir, maxFolderDepth)
	}
	entries, err := fs.ReadDir(root, dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		name := path.Join(dir, entry.Name())
		if ignored(entry.Name()) {
			continue
		}
		info, err := fs.Stat(root, name) // through links
		if errors.Is(err, fs.ErrNotExist) {
			continue // a dangling link, or a file that an editor has just taken away
		}
		if err != nil {
			return err
		}
		switch {
		case info.IsDir():
			err = c.folder(ctx, root, name, depth+1)
		case info.Mode().IsRegular() && c.wants(name):
			err = c.open(root, name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *collector) open(root fs.FS, name string) error {
	f, err := root.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	return c.add(name, f)
}

// tarball reads an archive. name is for errors.
func (c *collector) tarball(ctx context.Context, name string, whole []byte) error {
	unzipped, err := gzip.NewReader(bytes.NewReader(whole))
	if err != nil {
		return fmt.Errorf("%s is no gzip file: %w", name, err)
	}
	archive := tar.NewReader(io.LimitReader(unzipped, maxBundleBytes*2))
	seen := map[string]bool{}
	for ctx.Err() == nil {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s is no tar archive: %w", name, err)
		}
		inside := strings.TrimPrefix(path.Clean("/"+header.Name), "/")
		if header.Typeflag != tar.TypeReg || !c.wants(inside) {
			continue
		}
		if seen[inside] {
			return fmt.Errorf("%s holds %s twice", name, inside)
		}
		seen[inside] = true
		if err := c.add(inside, archive); err != nil {
			return err
		}
	}
	return ctx.Err()
}

const (
	manifestFile   = ".manifest"
	signaturesFile = ".signatures.json"
)

// ignored: hidden files and folders, which editors, version control and mounts leave about.
func ignored(base string) bool {
	return strings.HasPrefix(base, ".") && base != manifestFile && base != signaturesFile
}

// belongs reports whether a file is part of the bundle. The schemas are the gateway's own: a
// bundle's copy of them is for people and for the stock command.
func belongs(name string) bool {
	if ignored(path.Base(name)) || path.Base(name) == signaturesFile {
		return false
	}
	if name == manifestFile || name == "patch.json" {
		return true
	}
	if strings.HasPrefix(name, "schemas/") {
		return false
	}
	switch path.Ext(name) {
	case ".rego":
		return !strings.HasSuffix(name, "_test.rego")
	case ".json", ".yaml", ".yml":
		return true
	}
	return false
}
