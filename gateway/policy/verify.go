package policy

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/open-policy-agent/opa/v1/bundle"
	"github.com/open-policy-agent/opa/v1/util"
)

// VerificationKey is what a bundle's signature is verified with: a public key or a shared secret, and
// what is pinned of it. It is a comparable value and never shows the key.
type VerificationKey struct {
	text      string
	algorithm string
	id, scope string
}

// The algorithms, each for one kind of key: the bundle has no say in it.
const (
	rs256 = "RS256" // an RSA key
	es256 = "ES256" // a key on the curve P-256
	hs256 = "HS256" // a shared secret
)

const (
	minSecret  = 8
	minRSABits = 2048
)

// ParseKey returns a verification key. text is a public key or a certificate in PEM, or else a
// shared secret. A signature made with a key of another ID than id is refused, unless id is "";
// one with another scope than scope always.
func ParseKey(text, id, scope string) (VerificationKey, error) {
	k := VerificationKey{text: text, id: id, scope: scope}
	if !strings.Contains(text, "-----BEGIN") {
		if len(text) < minSecret {
			return VerificationKey{}, fmt.Errorf("a shared secret has %d bytes or more", minSecret)
		}
		k.algorithm = hs256
		return k, nil
	}
	public, err := publicKey(text)
	if err != nil {
		return VerificationKey{}, err
	}
	k.algorithm, err = algorithmOf(public)
	return k, err
}

func (k VerificationKey) set() bool { return k.algorithm != "" }

func (k VerificationKey) String() string { return "a key for " + k.algorithm }

// GoString keeps the key out of %#v.
func (k VerificationKey) GoString() string { return k.String() }

// publicKey reads PEM. The library, which reads it again, knows the same kinds of block.
func publicKey(text string) (crypto.PublicKey, error) {
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return nil, errors.New("the key is no PEM")
	}
	switch block.Type {
	case "PUBLIC KEY":
		return readKey(x509.ParsePKIXPublicKey(block.Bytes))
	case "RSA PUBLIC KEY":
		return readKey(x509.ParsePKCS1PublicKey(block.Bytes))
	case "CERTIFICATE":
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return readKey[crypto.PublicKey](nil, err)
		}
		return certificate.PublicKey, nil
	case "PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY":
		return nil, errors.New("it is a private key: give the public one")
	}
	return nil, fmt.Errorf("a PEM block %q is no public key", block.Type)
}

// readKey drops what the parser says: it may show a part of the key.
func readKey[K any](key K, err error) (crypto.PublicKey, error) {
	if err != nil {
		return nil, errors.New("the PEM holds no key that can be read")
	}
	return key, nil
}

func algorithmOf(public crypto.PublicKey) (string, error) {
	switch key := public.(type) {
	case *rsa.PublicKey:
		if key.N.BitLen() < minRSABits {
			return "", fmt.Errorf("an RSA key has %d bits or more", minRSABits)
		}
		return rs256, nil
	case *ecdsa.PublicKey:
		if key.Curve == elliptic.P256() {
			return es256, nil
		}
		return "", errors.New("an EC key is on the curve P-256")
	}
	return "", errors.New("keys are RSA, EC on the curve P-256, or a shared secret")
}

// verify holds every file to the signature, which lies among them. Where all must be signed,
// not even a file that the gateway does not read may stand beside the signed ones.
func (k VerificationKey) verify(list []file, all bool) error {
	at := slices.IndexFunc(list, func(f file) bool { return f.path == signaturesFile })
	if at < 0 {
		return errors.New("the bundle is not signed")
	}
	var signatures bundle.SignaturesConfig
	if err := json.Unmarshal(list[at].text, &signatures); err != nil {
		return errors.New("no signatures can be read")
	}
	if len(signatures.Signatures) != 1 {
		return fmt.Errorf("it holds %d signatures; it must hold one", len(signatures.Signatures))
	}
	signed, err := k.open(signatures.Signatures[0])
	if err != nil {
		return err
	}
	for _, f := range list {
		if f.path == signaturesFile {
			continue
		}
		info, ok := signed[f.path]
		switch {
		case ok:
			if err := verifyFile(f, info); err != nil {
				return err
			}
			delete(signed, f.path)
		case all || belongs(f.path):
			return fmt.Errorf("%s is not signed", f.path)
		}
	}
	for name := range signed {
		return fmt.Errorf("%s is signed and is not there", name)
	}
	return nil
}

// open verifies a token and returns the files that it signs.
func (k VerificationKey) open(token string) (map[string]bundle.FileInfo, error) {
	var head struct {
		Algorithm string `json:"alg"`
		KeyID     string `json:"kid"`
	}
	var claims struct {
		KeyID string `json:"keyid"`
	}
	parts := strings.Split(token, ".")
	if len(parts) != 3 || decodePart(parts[0], &head) != nil || decodePart(parts[1], &claims) != nil {
		return nil, errors.New("the signature is no JSON Web Token")
	}
	if head.Algorithm != k.algorithm {
		return nil, fmt.Errorf("it is signed with %.16q; the key is for %s", head.Algorithm, k.algorithm)
	}
	id := head.KeyID
	if id == "" {
		id = claims.KeyID // as signers of before have it
	}
	if k.id != "" && id != k.id {
		return nil, fmt.Errorf("it is signed with the key %.64q; it must be %q", id, k.id)
	}
	// The library asks for an ID of the key even where there is one key only.
	const only = "key"
	keys := map[string]*bundle.KeyConfig{only: {Key: k.text, Algorithm: k.algorithm}}
	files, err := (&bundle.DefaultVerifier{}).VerifyBundleSignature(
		bundle.SignaturesConfig{Signatures: []string{token}},
		bundle.NewVerificationConfig(keys, only, k.scope, nil),
	)
	switch {
	case err != nil && err.Error() == "scope mismatch":
		return nil, fmt.Errorf("its scope is another than %q", k.scope)
	case err != nil:
		return nil, errors.New("the signature does not hold") // why is of no use to anyone who may know
	}
	trimmed := make(map[string]bundle.FileInfo, len(files))
	for name, info := range files {
		trimmed[strings.TrimPrefix(name, "/")] = info
	}
	return trimmed, nil
}

func decodePart(part string, to any) error {
	text, err := base64.RawURLEncoding.DecodeString(part)
	if err != nil {
		return err
	}
	return json.Unmarshal(text, to)
}

// verifyFile compares a file with its signed hash. Structured files are hashed by what they
// mean, so that they may be written another way.
func verifyFile(f file, info bundle.FileInfo) error {
	switch bundle.HashingAlgorithm(info.Algorithm) {
	case bundle.MD5, bundle.SHA1, "":
		return fmt.Errorf("%s is signed by a hash that proves nothing: %.16q", f.path, info.Algorithm)
	}
	sum, err := hashFile(f, bundle.HashingAlgorithm(info.Algorithm))
	if err != nil {
		return fmt.Errorf("%s: %w", f.path, err)
	}
	want, err := hex.DecodeString(info.Hash)
	if err != nil || !bytes.Equal(want, sum) {
		return fmt.Errorf("%s is another than the one that was signed", f.path)
	}
	return nil
}

func hashFile(f file, algorithm bundle.HashingAlgorithm) ([]byte, error) {
	hasher, err := bundle.NewSignatureHasher(algorithm)
	if err != nil {
		return nil, err
	}
	if !bundle.IsStructuredDoc(f.path) {
		return hasher.HashFile(f.text)
	}
	var value any
	if err := util.Unmarshal(f.text, &value); err != nil {
		return nil, err
	}
	return hasher.HashFile(value)
}
