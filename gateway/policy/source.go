package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
)

// Source is where a bundle is read from: the default one in the program, a directory, a
// .tar.gz or a bundle server. It is a comparable value, and shows its name only, never its
// secrets.
type Source struct {
	name, path string
	key        VerificationKey // the zero value: signatures are not looked at
	remote     remote
}

// Builtin is the default bundle, embedded in the program.
func Builtin() Source { return Source{name: builtinName} }

const builtinName = "builtin"

// Path is the bundle in a directory or in a .tar.gz file.
func Path(name, path string) Source { return Source{name: name, path: path} }

// SignedWith returns the same source, whose bundle must be signed with that key.
func (s Source) SignedWith(k VerificationKey) Source {
	s.key = k
	return s
}

// Name returns the bundle's name.
func (s Source) Name() string { return s.name }

func (s Source) String() string { return s.name }

// GoString keeps secrets out of %#v.
func (s Source) GoString() string { return "policy.Source(" + strconv.Quote(s.name) + ")" }

// Where says where the bundle comes from, for people: a path, an address without what may be
// a secret in it, or "builtin".
func (s Source) Where() string {
	switch {
	case s.isRemote():
		return shownURL(s.remote.url)
	case s.path != "":
		return s.path
	default:
		return builtinName
	}
}

// place names where the bundle comes from, as a part of a file's name, without what may be a
// secret: it stays the same when a token or a key is another one.
func (s Source) place() string {
	where := s.path
	if s.isRemote() {
		where = s.remote.url
	}
	sum := sha256.Sum256([]byte(where))
	return url.PathEscape(s.name) + "-" + hex.EncodeToString(sum[:4])
}

func (s Source) isRemote() bool { return s.remote.url != "" }

// shown returns how errors name a file of the bundle.
func (s Source) shown(name string) string {
	switch {
	case s.isRemote():
		return s.name + ":" + name
	case s.path == "":
		return builtinName + ":" + name
	case isTarball(s.path):
		return s.path + ":" + name
	default:
		return filepath.Join(s.path, filepath.FromSlash(name))
	}
}

func isTarball(name string) bool {
	return strings.HasSuffix(name, ".tar.gz") || strings.HasSuffix(name, ".tgz")
}
