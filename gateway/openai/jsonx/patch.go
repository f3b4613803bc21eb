package jsonx

import (
	"slices"
	"strconv"
)

// Patch is a list of edits to one document. Edits do not overlap; those at one place apply in the
// order they were made. The zero value changes nothing; Reset keeps the buffers.
type Patch struct {
	edits []edit
	text  []byte
}

type edit struct{ from, to, textFrom, textTo int }

// Reset forgets every edit.
func (p *Patch) Reset() { p.edits, p.text = p.edits[:0], p.text[:0] }

// Empty says whether nothing changes.
func (p *Patch) Empty() bool { return len(p.edits) == 0 }

// Len is how many edits there are.
func (p *Patch) Len() int { return len(p.edits) }

// Growth is by how many bytes the edits within [from, to] make the document longer, and how many
// edits those are.
func (p *Patch) Growth(from, to int) (bytes, edits int) {
	for _, e := range p.edits {
		if e.from >= from && e.to <= to {
			bytes += e.textTo - e.textFrom - (e.to - e.from)
			edits++
		}
	}
	return bytes, edits
}

// Replace puts text in the place of [from, to). Equal offsets insert.
func (p *Patch) Replace(from, to int, text string) {
	at := len(p.text)
	p.text = append(p.text, text...)
	p.add(from, to, at)
}

// ReplaceBytes is Replace for bytes.
func (p *Patch) ReplaceBytes(from, to int, text []byte) {
	at := len(p.text)
	p.text = append(p.text, text...)
	p.add(from, to, at)
}

// ReplaceString puts s, as a JSON string, in the place of [from, to).
func (p *Patch) ReplaceString(from, to int, s string) {
	at := len(p.text)
	p.text = AppendString(p.text, s)
	p.add(from, to, at)
}

// ReplaceInt puts n in the place of [from, to).
func (p *Patch) ReplaceInt(from, to int, n int64) {
	at := len(p.text)
	p.text = strconv.AppendInt(p.text, n, 10)
	p.add(from, to, at)
}

// Build lets f append the text for [from, to).
func (p *Patch) Build(from, to int, f func(dst []byte) []byte) {
	at := len(p.text)
	p.text = f(p.text)
	p.add(from, to, at)
}

// InsertMember puts a member, given as its raw text `"key":value`, in front of all others of the
// object that opens at the given offset of b.
func (p *Patch) InsertMember(b []byte, open int, key string, value []byte) {
	at := len(p.text)
	next := blanks(b, open+1)
	empty := next < len(b) && b[next] == '}'
	if empty && p.touches(open+1) {
		p.text = append(p.text, ',')
	}
	p.text = append(AppendString(p.text, key), ':')
	p.text = append(p.text, value...)
	if !empty {
		p.text = append(p.text, ',')
	}
	p.add(open+1, open+1, at)
}

// RemoveMember takes out a member whose key opens at key and whose value ends at end; before is
// where the value in front of it ends, or the offset behind the opening brace.
func (p *Patch) RemoveMember(b []byte, before, key, end int) {
	if next := blanks(b, end); next < len(b) && b[next] == ',' {
		p.add(key, blanks(b, next+1), len(p.text))
		return
	}
	p.add(before, end, len(p.text))
}

func (p *Patch) touches(at int) bool {
	for _, e := range p.edits {
		if e.from == at {
			return true
		}
	}
	return false
}

func (p *Patch) add(from, to, textFrom int) {
	e := edit{from, to, textFrom, len(p.text)}
	i := len(p.edits)
	p.edits = append(p.edits, e)
	for ; i > 0 && p.edits[i-1].behind(e); i-- {
		p.edits[i] = p.edits[i-1]
	}
	p.edits[i] = e
}

// behind says whether e applies behind f: insertions come before what is replaced at their place.
func (e edit) behind(f edit) bool {
	return e.from > f.from || e.from == f.from && f.to == f.from && e.to > e.from
}

// Append appends b with the edits made.
func (p *Patch) Append(dst, b []byte) []byte {
	at := 0
	dst = slices.Grow(dst, len(b)+len(p.text)) // once, as bodies may be large
	for _, e := range p.edits {
		dst = append(dst, b[at:e.from]...)
		dst = append(dst, p.text[e.textFrom:e.textTo]...)
		at = e.to
	}
	return append(dst, b[at:]...)
}

// Detach makes a copied patch independent of the one it was copied from.
func (p *Patch) Detach() {
	p.edits = p.edits[:len(p.edits):len(p.edits)]
	p.text = p.text[:len(p.text):len(p.text)]
}
