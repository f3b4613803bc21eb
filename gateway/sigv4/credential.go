package sigv4

import (
	"errors"
	"strings"
)

// Credential is a pair of keys, and the token that belongs to a temporary one. It prints as
// nothing but its access key.
type Credential struct {
	AccessKey, SecretKey string
	SessionToken         string // "" for a lasting one
}

// ParseCredential reads ACCESS_KEY:SECRET_KEY or ACCESS_KEY:SECRET_KEY:SESSION_TOKEN. The error
// quotes nothing.
func ParseCredential(text string) (Credential, error) {
	access, rest, found := strings.Cut(text, ":")
	secret, token, withToken := strings.Cut(rest, ":")
	c := Credential{AccessKey: access, SecretKey: secret, SessionToken: token}
	if !found || withToken && token == "" {
		return Credential{}, errors.New("ACCESS_KEY:SECRET_KEY or ACCESS_KEY:SECRET_KEY:SESSION_TOKEN is expected")
	}
	return c, c.check()
}

func (c *Credential) check() error {
	switch {
	case !isWord(c.AccessKey):
		return errors.New("the access key is not letters and digits")
	case !isPrintable(c.SecretKey) || c.SecretKey == "":
		return errors.New("the secret key is empty or has blanks or control bytes")
	case !isPrintable(c.SessionToken):
		return errors.New("the session token has blanks or control bytes")
	}
	return nil
}

// String is the access key, which is no secret.
func (c Credential) String() string { return c.AccessKey }

// GoString is String.
func (c Credential) GoString() string { return c.AccessKey }

// isWord says whether s is not empty and letters, digits, - and _ only.
func isWord(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; !isUnreserved(c) || c == '.' || c == '~' {
			return false
		}
	}
	return s != ""
}

func isPrintable(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] <= ' ' || s[i] >= 0x7f {
			return false
		}
	}
	return true
}
