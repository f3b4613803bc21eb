package policy

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/interlock-gateway/interlock/policies"
)

// Source is where a bundle is read from: the default one in the program, a directory or a
// .tar.gz. Several bundles side by side, by the roots of their manifests, become several
// sources of one revision.
type Source struct{ name, path string }

// Builtin is the default bundle, embedded in the program.
func Builtin() Source { return Source{name: "builtin"} }

// Path is the bundle in a directory or in a .tar.gz file.
func Path(name, path string) Source { return Source{name: name, path: path} }

// Name returns the bundle's name.
func (s Source) Name() string { return s.name }

// A bundle file larger than that is refused, and so is a bundle with more or deeper files.
const (
	maxFileBytes   = 32 << 20
	maxBundleBytes = 128 << 20
	maxFiles       = 10_000
	maxFolderDepth = 16
)

// file is one file of a bundle. path is relative to the bundle's root, with slashes.
type file struct {
	path string
	text []byte
}

// files is a bundle as it was read: what a revision is built from.
type files struct {
	source Source
	list   []file // by path
	digest string // of paths and texts
}

// shown returns how errors name a file of the bundle.
func (f *files) shown(name string) string {
	switch {
	case f.source.path == "":
		return "builtin:" + name
	case isTarball(f.source.path):
		return f.source.path + ":" + name
	default:
		return filepath.Join(f.source.path, filepath.FromSlash(name))
	}
}

func isTarball(name string) bool {
	return strings.HasSuffix(name, ".tar.gz") || strings.HasSuffix(name, ".tgz")
}

// read reads the whole bundle.
func (s Source) read(ctx context.Context) (*files, error) {
	c := &collector{}
	var err error
	switch {
	case s.path == "":
		err = c.folder(ctx, policies.Files, ".", 0)
	case isTarball(s.path):
		err = c.tarball(ctx, s.path)
	default:
		err = c.directory(ctx, s.path)
	}
	if err != nil {
		return nil, fmt.Errorf("policy bundle %s: %w", s.name, err)
	}
	slices.SortFunc(c.list, func(a, b file) int { return strings.Compare(a.path, b.path) })
	sum := sha256.New()
	for _, f := range c.list {
		fmt.Fprintf(sum, "%d:%s%d:", len(f.path), f.path, len(f.text))
		sum.Write(f.text)
	}
	return &files{source: s, list: c.list, digest: hex.EncodeToString(sum.Sum(nil))}, nil
}

type collector struct {
	list  []file
	bytes int64
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
		case info.Mode().IsRegular() && belongs(name):
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

func (c *collector) tarball(ctx context.Context, name string) error {
	whole, err := os.ReadFile(name)
	if err != nil {
		return err
	}
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
		if header.Typeflag != tar.TypeReg || !belongs(inside) || ignored(path.Base(inside)) {
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

const manifestFile = ".manifest"

// ignored: hidden files and folders, which editors, version control and mounts leave about.
func ignored(base string) bool { return strings.HasPrefix(base, ".") && base != manifestFile }

// belongs reports whether a file is part of the bundle. The schemas are the gateway's own: a
// bundle's copy of them is for people and for the stock command.
func belongs(name string) bool {
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
