package policy

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/bundle"
	"github.com/open-policy-agent/opa/v1/util"
)

// file is one file of a bundle. path is relative to the bundle's root, with slashes.
type file struct {
	path string
	text []byte
}

// Bundle is one bundle as it was read: its signature holds where the source names a key, and
// so does its manifest; nothing of it has been compiled. Immutable.
type Bundle struct {
	source   Source
	list     []file // by path: what of it the gateway reads
	digest   string // of paths and texts
	revision string // as the manifest has it; ""
	roots    []string
	signed   bool
	etag     string // as the server sent it
	raw      []byte // the archive as a server sent it; nil for others
	fromDisk bool   // the last good one, read without its server
}

// Read reads a bundle, and verifies its signature where the source names a key. An error is
// an Errors where the bundle itself is at fault. A bundle server is asked once.
func Read(ctx context.Context, src Source) (*Bundle, error) {
	if src.isRemote() {
		client, err := newClient(src)
		if err != nil {
			return nil, fmt.Errorf("policy bundle %s: %w", src.name, err)
		}
		defer client.close()
		got, err := client.get(ctx, "", 0)
		return got.bundle, err
	}
	c := &collector{all: src.key.set()}
	if err := c.source(ctx, src); err != nil {
		return nil, fmt.Errorf("policy bundle %s: %w", src.name, err)
	}
	return newBundle(src, c, isTarball(src.path))
}

// newBundle makes a bundle of what was collected. In an archive nothing may stand that is not
// signed; beside a folder's files people keep others.
func newBundle(src Source, c *collector, archive bool) (*Bundle, error) {
	b := &Bundle{source: src, roots: []string{""}}
	if src.key.set() {
		if err := src.key.verify(c.list, archive); err != nil {
			return nil, Errors{{File: src.shown(signaturesFile), Message: err.Error()}}
		}
		b.signed = true
	}
	b.list = slices.DeleteFunc(c.list, func(f file) bool { return !belongs(f.path) })
	slices.SortFunc(b.list, func(a, b file) int { return strings.Compare(a.path, b.path) })
	sum := sha256.New()
	for _, f := range b.list {
		_, _ = fmt.Fprintf(sum, "%d:%s%d:", len(f.path), f.path, len(f.text))
		sum.Write(f.text)
	}
	b.digest = hex.EncodeToString(sum.Sum(nil))
	if fault := b.manifest(); fault != nil {
		return nil, Errors{*fault}
	}
	return b, nil
}

// maxRevision bounds the manifest's revision, which becomes a part of the revision's ID.
const maxRevision = 128

// manifest reads what the bundle says of itself.
func (b *Bundle) manifest() *Fault {
	for _, f := range b.list {
		fault := func(format string, args ...any) *Fault {
			return &Fault{File: b.source.shown(f.path), Message: fmt.Sprintf(format, args...)}
		}
		switch f.path {
		case "patch.json":
			return fault("a delta bundle is not accepted: send the whole one")
		case manifestFile:
			var m bundle.Manifest
			if err := util.UnmarshalJSON(f.text, &m); err != nil {
				return fault("%v", err)
			}
			m.Init()
			if m.RegoVersion != nil && *m.RegoVersion != 1 {
				return fault("rego_version is %d; it must be 1", *m.RegoVersion)
			}
			if len(m.Revision) > maxRevision || strings.ContainsFunc(m.Revision, func(r rune) bool { return r <= ' ' || r > '~' || r == ',' }) {
				return fault("revision must be %d printable characters at most, without blanks and commas", maxRevision)
			}
			b.revision, b.roots = m.Revision, slices.Sorted(slices.Values(*m.Roots))
		}
	}
	return nil
}

// ID identifies the bundle's content: its name, its manifest's revision where there is one,
// and a digest. Equal content has equal IDs.
func (b *Bundle) ID() string {
	id := b.source.name + "@"
	if b.revision != "" {
		id += b.revision + "-"
	}
	return id + b.digest[:12]
}

// Source returns where the bundle was read from.
func (b *Bundle) Source() Source { return b.source }

// Revision returns the manifest's revision; "" where there is none.
func (b *Bundle) Revision() string { return b.revision }

// Digest returns a digest of the content, in hex.
func (b *Bundle) Digest() string { return b.digest }

// Roots returns the parts of the policy that the bundle owns, sorted; "" is all of it.
func (b *Bundle) Roots() []string { return slices.Clone(b.roots) }

// Signed reports whether its signature was verified.
func (b *Bundle) Signed() bool { return b.signed }

// ETag returns what the bundle server calls this content; "" where there is none.
func (b *Bundle) ETag() string { return b.etag }
