package policy

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/open-policy-agent/opa/v1/bundle"
	"github.com/stretchr/testify/require"
)

const sharedSecret = "a secret of the bundle server"

// keyPair is a way of signing: the private part and what verifies it.
type keyPair struct{ private, public string }

func pemOf(kind string, der []byte) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
}

func publicPEM(t testing.TB, public any) string {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(public)
	require.NoError(t, err)
	return pemOf("PUBLIC KEY", der)
}

func ecPair(t testing.TB, curve elliptic.Curve) keyPair {
	t.Helper()
	key, err := ecdsa.GenerateKey(curve, rand.Reader)
	require.NoError(t, err)
	der, err := x509.MarshalECPrivateKey(key)
	require.NoError(t, err)
	return keyPair{pemOf("EC PRIVATE KEY", der), publicPEM(t, &key.PublicKey)}
}

func rsaPair(t testing.TB, bits int) keyPair {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, bits)
	require.NoError(t, err)
	der, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	return keyPair{pemOf("PRIVATE KEY", der), publicPEM(t, &key.PublicKey)}
}

func verifier(t testing.TB, text, id, scope string) VerificationKey {
	t.Helper()
	k, err := ParseKey(text, id, scope)
	require.NoError(t, err)
	return k
}

// teamBundle is a bundle of one table of a team, as a folder.
func teamBundle(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, ".manifest"), `{"roots": ["team"], "metadata": {"owner": "us"}}`)
	writeFile(t, filepath.Join(dir, "team", "data.json"), `{"rows": {"b": 1, "a": [true, null, 1.5, "x<y"]}}`)
	writeFile(t, filepath.Join(dir, "team", "more", "data.yaml"), "rows:\n  c: 2\n")
	writeFile(t, filepath.Join(dir, "team", "rules.rego"), "package team.rules\n\nyes := true\n")
	writeFile(t, filepath.Join(dir, "README.md"), "# not a part of it")
	return dir
}

func built(t testing.TB, dir string, o BuildOptions) []byte {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, BuildBundle(testContext(t), &b, Path("team", dir), o))
	return b.Bytes()
}

func archived(t testing.TB, raw []byte) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "bundle.tar.gz")
	require.NoError(t, os.WriteFile(name, raw, 0o600))
	return name
}

func TestSignedBundles(t *testing.T) {
	dir := teamBundle(t)
	for algorithm, pair := range map[string]keyPair{
		"RS256": rsaPair(t, 2048),
		"ES256": ecPair(t, elliptic.P256()),
		"HS256": {sharedSecret, sharedSecret},
	} {
		t.Run(algorithm, func(t *testing.T) {
			raw := built(t, dir, BuildOptions{Revision: "v7", Signing: &Signing{Key: pair.private, KeyID: "k1", Scope: "gateway"}})
			path := archived(t, raw)
			b, err := Read(testContext(t), Path("team", path).SignedWith(verifier(t, pair.public, "k1", "gateway")))
			require.NoError(t, err)
			require.True(t, b.Signed())
			require.Equal(t, "v7", b.Revision())
			require.Equal(t, []string{"team"}, b.Roots())
			require.True(t, strings.HasPrefix(b.ID(), "team@v7-"))

			// Whoever has the stock tools reads it too.
			_, err = bundle.NewReader(bytes.NewReader(raw)).WithBundleVerificationConfig(bundle.NewVerificationConfig(
				map[string]*bundle.KeyConfig{"k1": {Key: pair.public, Algorithm: algorithm}}, "", "gateway", nil)).Read()
			require.NoError(t, err)

			// What is pinned is pinned.
			for _, pins := range []struct{ id, scope, says string }{
				{"k2", "gateway", `signed with the key "k1"; it must be "k2"`},
				{"k1", "", "its scope is another"},
				{"", "read", `its scope is another than "read"`},
			} {
				_, err := Read(testContext(t), Path("team", path).SignedWith(verifier(t, pair.public, pins.id, pins.scope)))
				require.ErrorContains(t, err, pins.says)
			}
			_, err = Read(testContext(t), Path("team", path).SignedWith(verifier(t, pair.public, "", "gateway")))
			require.NoError(t, err)

			// Another key of the same kind, and keys of the other kinds.
			for _, wrong := range []string{ecPair(t, elliptic.P256()).public, rsaPair(t, 2048).public, "another secret of the server", pair.public + "\n"} {
				_, err := Read(testContext(t), Path("team", path).SignedWith(verifier(t, wrong, "k1", "gateway")))
				if wrong == pair.public+"\n" && algorithm != "HS256" {
					require.NoError(t, err)
					continue
				}
				require.Error(t, err)
				require.NotContains(t, err.Error(), sharedSecret)
			}
		})
	}
}

// A public key is no secret: a bundle that is signed with it as one is refused.
func TestPublicKeyAsSecret(t *testing.T) {
	pair := rsaPair(t, 2048)
	mine := Signing{Key: strings.ReplaceAll(pair.public, "-----BEGIN", "-----begin")}
	path := archived(t, built(t, teamBundle(t), BuildOptions{Signing: &mine}))
	_, err := Read(testContext(t), Path("team", path).SignedWith(verifier(t, pair.public, "", "")))
	require.ErrorContains(t, err, `signed with "HS256"; the key is for RS256`)
}

// A bundle that stock tools signed is taken.
func TestStockSignature(t *testing.T) {
	pair := rsaPair(t, 2048)
	raw := built(t, teamBundle(t), BuildOptions{})
	b, err := bundle.NewReader(bytes.NewReader(raw)).WithRegoVersion(1).Read()
	require.NoError(t, err)
	require.NoError(t, b.GenerateSignature(bundle.NewSigningConfig(pair.private, "RS256", ""), "k1", true))
	var signed bytes.Buffer
	require.NoError(t, bundle.NewWriter(&signed).UseModulePath(true).Write(b))
	got, err := Read(testContext(t), Path("team", archived(t, signed.Bytes())).SignedWith(verifier(t, pair.public, "k1", "")))
	require.NoError(t, err)
	require.Equal(t, []string{"team"}, got.Roots())
}

// Whatever is changed in a signed folder, or added or taken away, is found; how a table is
// written is not a change.
func TestTamperedFolder(t *testing.T) {
	pair := ecPair(t, elliptic.P256())
	key := verifier(t, pair.public, "", "")
	signed := func(t *testing.T) string {
		dir := teamBundle(t)
		b, err := Read(testContext(t), Path("team", dir))
		require.NoError(t, err)
		text, err := (&Signing{Key: pair.private}).sign(b.list)
		require.NoError(t, err)
		writeFile(t, filepath.Join(dir, signaturesFile), string(text))
		return dir
	}
	dir := signed(t)
	_, err := Read(testContext(t), Path("team", dir).SignedWith(key))
	require.NoError(t, err)
	writeFile(t, filepath.Join(dir, "team", "data.json"), "{\"rows\":{\n\"a\":[true,null,1.5,\"x\\u003cy\"],\"b\":1}}")
	_, err = Read(testContext(t), Path("team", dir).SignedWith(key))
	require.NoError(t, err)

	for name, c := range map[string]struct{ path, text, says string }{
		"a cell":          {"team/data.json", `{"rows": {"b": 2, "a": [true, null, 1.5, "x<y"]}}`, "team/data.json is another"},
		"a rule":          {"team/rules.rego", "package team.rules\n\nyes := false\n", "team/rules.rego is another"},
		"the manifest":    {".manifest", `{"roots": [""]}`, ".manifest is another"},
		"one more":        {"other/data.json", `{}`, "other/data.json is not signed"},
		"one less":        {"team/more/data.yaml", "", "team/more/data.yaml is signed and is not there"},
		"no signature":    {signaturesFile, "", "the bundle is not signed"},
		"no token":        {signaturesFile, `{"signatures": ["a.b"]}`, "no JSON Web Token"},
		"no signature in": {signaturesFile, `{"signatures": []}`, "holds 0 signatures"},
		"broken":          {signaturesFile, `{`, "no signatures can be read"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := signed(t)
			if at := filepath.Join(dir, c.path); c.text == "" {
				require.NoError(t, os.Remove(at))
			} else {
				writeFile(t, at, c.text)
			}
			_, err := Read(testContext(t), Path("team", dir).SignedWith(key))
			var faults Errors
			require.ErrorAs(t, err, &faults)
			require.ErrorContains(t, err, c.says)
		})
	}
}

// A hash that can be forged is not believed, however well it is signed.
func TestWeakHash(t *testing.T) {
	pair := keyPair{sharedSecret, sharedSecret}
	list := []file{{path: "team/data.json", text: []byte("{}")}}
	sum, err := hashFile(list[0], bundle.MD5)
	require.NoError(t, err)
	signer, _, err := (&Signing{Key: pair.private}).signer()
	require.NoError(t, err)
	signed := encodePart(map[string]string{"alg": "HS256"}) + "." + encodePart(map[string]any{
		"files": []bundle.FileInfo{{Name: "team/data.json", Hash: hex.EncodeToString(sum), Algorithm: "MD5"}},
	})
	signature, err := signer([]byte(signed))
	require.NoError(t, err)
	text, err := json.Marshal(bundle.SignaturesConfig{Signatures: []string{signed + "." + base64.RawURLEncoding.EncodeToString(signature)}})
	require.NoError(t, err)
	err = verifier(t, pair.public, "", "").verify(append(list, file{path: signaturesFile, text: text}), true)
	require.ErrorContains(t, err, "proves nothing")
}

func TestKeys(t *testing.T) {
	ec, weak := ecPair(t, elliptic.P384()), ecPair(t, elliptic.P256())
	for text, says := range map[string]string{
		"":           "8 bytes or more",
		"short":      "8 bytes or more",
		weak.private: "private key",
		ec.public:    "P-256",
		"-----BEGIN PUBLIC KEY-----\nstands for a key\n":                             "no PEM",
		pemOf("PUBLIC KEY", []byte("junk")):                                          "no key that can be read",
		pemOf("SOMETHING", nil):                                                      "no public key",
		"text before\n" + strings.ReplaceAll(weak.public, "PUBLIC KEY", "DSA THING"): "no public key",
	} {
		_, err := ParseKey(text, "", "")
		require.ErrorContains(t, err, says)
	}
	for _, text := range []string{"", "short", weak.public, pemOf("PRIVATE KEY", nil), ec.private, "-----BEGIN X"} {
		err := BuildBundle(testContext(t), &bytes.Buffer{}, Path("team", teamBundle(t)), BuildOptions{Signing: &Signing{Key: text}})
		require.Error(t, err)
	}
	k := verifier(t, sharedSecret, "", "")
	require.NotContains(t, k.String()+k.GoString(), sharedSecret)
}

func TestBuildIsReproducible(t *testing.T) {
	dir := teamBundle(t)
	o := BuildOptions{Revision: "v1", Signing: &Signing{Key: sharedSecret}}
	require.Equal(t, built(t, dir, o), built(t, dir, o))
	b, err := Read(testContext(t), Path("team", archived(t, built(t, dir, o))))
	require.NoError(t, err)
	require.Contains(t, string(b.list[0].text), `"owner":"us"`, "what the manifest says beside it stays")
	require.False(t, b.Signed(), "nobody has looked")
	err = BuildBundle(testContext(t), &bytes.Buffer{}, Path("team", dir), BuildOptions{Revision: "a b"})
	require.ErrorContains(t, err, "revision must be")
}

func TestArchiveHoldsNothingUnsigned(t *testing.T) {
	b, err := Read(testContext(t), Path("team", teamBundle(t)))
	require.NoError(t, err)
	text, err := (&Signing{Key: sharedSecret}).sign(b.list)
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, pack(&out, append(b.list, file{signaturesFile, text}, file{"notes.txt", []byte("x")})))
	_, err = Read(testContext(t), Path("team", archived(t, out.Bytes())).SignedWith(verifier(t, sharedSecret, "", "")))
	require.ErrorContains(t, err, "notes.txt is not signed")
}
