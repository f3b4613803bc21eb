package policy

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/bundle"
)

// Signing says how a bundle is signed.
type Signing struct {
	Key   string // a private key in PEM (RSA: RS256, P-256: ES256), or else a shared secret (HS256)
	KeyID string // "" names none
	Scope string // "" is the scope of keys that pin none
}

// BuildOptions say what a bundle is made into.
type BuildOptions struct {
	Revision string   // for the manifest; "" keeps what stands there
	Signing  *Signing // nil: not signed
}

// BuildBundle writes the bundle of src as a .tar.gz in OPA's format, with what the gateway reads of
// it and nothing else. Equal bundles are equal byte for byte, but for an ES256 signature. It
// does not check that the gateway would take it: Load does.
func BuildBundle(ctx context.Context, w io.Writer, src Source, o BuildOptions) error {
	b, err := Read(ctx, src)
	if err != nil {
		return err
	}
	list := slices.Clone(b.list)
	if o.Revision != "" {
		if list, err = revised(list, o.Revision); err != nil {
			return err
		}
		check := Bundle{source: src, list: list}
		if fault := check.manifest(); fault != nil {
			return Errors{*fault}
		}
	}
	if o.Signing != nil {
		text, err := o.Signing.sign(list)
		if err != nil {
			return err
		}
		list = append(list, file{path: signaturesFile, text: text})
	}
	return pack(w, list)
}

// revised returns the files with that revision in their manifest. What else stands there
// stays, whether this gateway knows it or not.
func revised(list []file, revision string) ([]file, error) {
	manifest := map[string]json.RawMessage{}
	at := slices.IndexFunc(list, func(f file) bool { return f.path == manifestFile })
	if at >= 0 {
		if err := json.Unmarshal(list[at].text, &manifest); err != nil {
			return nil, fmt.Errorf("%s: %w", manifestFile, err)
		}
	} else {
		list = slices.Insert(list, 0, file{path: manifestFile})
		at = 0
	}
	var err error
	if manifest["revision"], err = json.Marshal(revision); err != nil {
		return nil, err
	}
	text, err := json.Marshal(manifest)
	if err != nil {
		return nil, err
	}
	list[at] = file{path: manifestFile, text: text}
	return list, nil
}

func pack(w io.Writer, list []file) error {
	zipped := gzip.NewWriter(w)
	archive := tar.NewWriter(zipped)
	for _, f := range list {
		header := &tar.Header{Name: f.path, Mode: 0o644, Size: int64(len(f.text)), Format: tar.FormatPAX}
		if err := archive.WriteHeader(header); err != nil {
			return err
		}
		if _, err := archive.Write(f.text); err != nil {
			return err
		}
	}
	return errors.Join(archive.Close(), zipped.Close())
}

// sign returns the text of .signatures.json: one token over the hashes of all files.
func (s *Signing) sign(list []file) ([]byte, error) {
	signer, algorithm, err := s.signer()
	if err != nil {
		return nil, err
	}
	claims := struct {
		Files []bundle.FileInfo `json:"files"`
		KeyID string            `json:"keyid,omitempty"`
		Scope string            `json:"scope,omitempty"`
	}{KeyID: s.KeyID, Scope: s.Scope, Files: []bundle.FileInfo{}}
	for _, f := range list {
		sum, err := hashFile(f, bundle.SHA256)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.path, err)
		}
		claims.Files = append(claims.Files, bundle.NewFile(f.path, hex.EncodeToString(sum), bundle.SHA256.String()))
	}
	head := struct {
		Algorithm string `json:"alg"`
		KeyID     string `json:"kid,omitempty"`
		Type      string `json:"typ"`
	}{algorithm, s.KeyID, "JWT"}
	signed := encodePart(head) + "." + encodePart(claims)
	signature, err := signer([]byte(signed))
	if err != nil {
		return nil, errors.New("the bundle cannot be signed with this key")
	}
	return json.Marshal(bundle.SignaturesConfig{
		Signatures: []string{signed + "." + base64.RawURLEncoding.EncodeToString(signature)},
	})
}

// encodePart encodes what surely can be marshalled: words only.
func encodePart(v any) string { return base64.RawURLEncoding.EncodeToString([]byte(canonical(v))) }

// Algorithm returns what the key signs with: RS256, ES256 or HS256.
func (s *Signing) Algorithm() (string, error) {
	_, algorithm, err := s.signer()
	return algorithm, err
}

// signer returns what signs a text, and the algorithm, which the kind of key decides.
func (s *Signing) signer() (sign func([]byte) ([]byte, error), algorithm string, err error) {
	if !strings.Contains(s.Key, "-----BEGIN") {
		if len(s.Key) < minSecret {
			return nil, "", fmt.Errorf("a shared secret has %d bytes or more", minSecret)
		}
		return func(text []byte) ([]byte, error) {
			mac := hmac.New(sha256.New, []byte(s.Key))
			mac.Write(text)
			return mac.Sum(nil), nil
		}, hs256, nil
	}
	private, err := privateKey(s.Key)
	if err != nil {
		return nil, "", err
	}
	if algorithm, err = algorithmOf(private.Public()); err != nil {
		return nil, "", err
	}
	return func(text []byte) ([]byte, error) {
		sum := sha256.Sum256(text)
		if key, ok := private.(*ecdsa.PrivateKey); ok {
			return signEC(key, sum[:])
		}
		return private.Sign(rand.Reader, sum[:], crypto.SHA256)
	}, algorithm, nil
}

// signEC signs as JSON Web Tokens have it: both numbers, each as wide as the curve.
func signEC(key *ecdsa.PrivateKey, sum []byte) ([]byte, error) {
	r, s, err := ecdsa.Sign(rand.Reader, key, sum)
	if err != nil {
		return nil, err
	}
	width := (key.Curve.Params().BitSize + 7) / 8
	signature := make([]byte, 2*width)
	r.FillBytes(signature[:width])
	s.FillBytes(signature[width:])
	return signature, nil
}

func privateKey(text string) (crypto.Signer, error) {
	block, rest := pem.Decode([]byte(text))
	for block != nil && block.Type == "EC PARAMETERS" { // which some tools write before the key
		block, rest = pem.Decode(rest)
	}
	if block == nil {
		return nil, errors.New("the key is no PEM")
	}
	var key any
	var err error
	switch block.Type {
	case "PRIVATE KEY":
		key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	case "RSA PRIVATE KEY":
		key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	case "EC PRIVATE KEY":
		key, err = x509.ParseECPrivateKey(block.Bytes)
	default:
		return nil, fmt.Errorf("a PEM block %q is no private key", block.Type)
	}
	if err != nil {
		return nil, errors.New("the PEM holds no key that can be read") // its own words may show a part of it
	}
	switch key := key.(type) {
	case *rsa.PrivateKey:
		return key, nil
	case *ecdsa.PrivateKey:
		return key, nil
	}
	return nil, errors.New("keys are RSA, EC on the curve P-256, or a shared secret")
}
