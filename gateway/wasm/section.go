package wasm

import (
	"errors"
	"fmt"
)

// manifestSection is the custom section that holds a module's manifest.
const manifestSection = "interlock.manifest"

var errNotWasm = errors.New("this is not a Wasm module")

// ReadManifest returns the manifest that a module carries, without running anything of it. It
// returns nil and no error for a module without one.
func ReadManifest(module []byte) (*Manifest, error) {
	text, err := manifestText(module)
	if text == nil || err != nil {
		return nil, err
	}
	return ParseManifest(text)
}

// ManifestText returns the manifest that a module carries, as it is written there and unchecked;
// nil where there is none.
func ManifestText(module []byte) ([]byte, error) { return manifestText(module) }

// WriteManifest returns the module with the manifest in it, in place of one that it had. text is
// the manifest's JSON.
func WriteManifest(module, text []byte) ([]byte, error) {
	if _, err := ParseManifest(text); err != nil {
		return nil, err
	}
	out, err := withoutManifest(module)
	if err != nil {
		return nil, err
	}
	head := append(appendLength(nil, len(manifestSection)), manifestSection...)
	out = appendLength(append(out, 0), len(head)+len(text))
	return append(append(out, head...), text...), nil
}

// withoutManifest is a copy of the module without the section.
func withoutManifest(module []byte) ([]byte, error) {
	out := make([]byte, 0, len(module)+4096)
	err := eachSection(module, func(whole []byte, name string, _ []byte) {
		if name != manifestSection {
			out = append(out, whole...)
		}
	})
	return out, err
}

func manifestText(module []byte) (text []byte, err error) {
	found := 0
	err = eachSection(module, func(_ []byte, name string, body []byte) {
		if name == manifestSection {
			text = append([]byte{}, body...)
			found++
		}
	})
	if err == nil && found > 1 {
		err = fmt.Errorf("it has the section %s twice", manifestSection)
	}
	return text, err
}

// eachSection calls f with the header of a module and then with each section: all its bytes,
// and of a custom one its name and what follows.
func eachSection(module []byte, f func(whole []byte, name string, body []byte)) error {
	if len(module) < 8 || string(module[:8]) != "\x00asm\x01\x00\x00\x00" {
		return errNotWasm
	}
	f(module[:8], "", nil)
	for at := 8; at < len(module); {
		id := module[at]
		size, n := length(module[at+1:])
		if n == 0 || size > len(module)-at-1-n {
			return fmt.Errorf("the section at byte %#x is cut off", at)
		}
		body := module[at+1+n : at+1+n+size]
		name := ""
		if id == 0 {
			k, n := length(body)
			if n == 0 || k > len(body)-n {
				return fmt.Errorf("the section at byte %#x has no name", at)
			}
			name, body = string(body[n:n+k]), body[n+k:]
		}
		end := at + 1 + n + size
		f(module[at:end], name, body)
		at = end
	}
	return nil
}

// length reads an unsigned LEB128 of 32 bits and says how many bytes it takes; none if it is
// broken.
func length(b []byte) (v, n int) {
	for n < len(b) && n < 5 {
		c := b[n]
		v |= int(c&0x7f) << (7 * n)
		n++
		if c < 0x80 {
			if v > 1<<32-1 {
				return 0, 0
			}
			return v, n
		}
	}
	return 0, 0
}

func appendLength(b []byte, v int) []byte {
	for v >= 0x80 {
		b = append(b, byte(v)|0x80)
		v >>= 7
	}
	return append(b, byte(v))
}
