package policy

import (
	"io"
	"slices"
)

// WriteArchive writes the bundle as a .tar.gz: what the gateway reads of it, unsigned. Read from
// there under the same name it has the same ID.
func (b *Bundle) WriteArchive(w io.Writer) error { return pack(w, b.list) }

// SameContent reports whether two revisions are made of the same content, whatever the bundles
// are called.
func (r *Revision) SameContent(o *Revision) bool {
	return slices.EqualFunc(r.parts, o.parts, func(a, b Part) bool { return a.Bundle.digest == b.Bundle.digest })
}
