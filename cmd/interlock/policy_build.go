package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/interlock-gateway/interlock/gateway/policy"
)

const maxKeyFile = 64 << 10

func newPolicyBuild(f *policyFlags) *cobra.Command {
	var out, key, algorithm string
	var o policy.BuildOptions
	var s policy.Signing
	c := &cobra.Command{
		Use:   "build DIR -o FILE.tar.gz",
		Short: "Make a bundle's archive, signed, for a bundle server",
		Long: "Check a bundle as a gateway would, and write it as a .tar.gz in OPA's bundle format, without its tests.\n" +
			"Nothing is written where the bundle would be refused. Equal bundles are equal byte for byte, but for an\n" +
			"ES256 signature.\n\n" +
			"The key is a private key in PEM (RSA: RS256; the curve P-256: ES256), or a file with a shared secret\n" +
			"(HS256). The gateway pins the key, its ID and the scope.",
		Example: "  interlock policy build ours -o ours.tar.gz --revision r1\n" +
			"  openssl ecparam -genkey -name prime256v1 -noout -out key.pem\n" +
			"  interlock policy build ours -o ours.tar.gz --revision r2 --signing-key key.pem --signing-alg ES256 --key-id ci",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if out == "" {
				return &exitError{status: 2, message: "-o FILE.tar.gz is required"}
			}
			if key == "" && (algorithm != "" || s.KeyID != "" || s.Scope != "") {
				return &exitError{status: 2, message: "--signing-alg, --key-id and --scope need --signing-key"}
			}
			if key != "" {
				text, err := readBounded(key, maxKeyFile)
				if err != nil {
					return &exitError{status: 2, message: "--signing-key: " + err.Error()}
				}
				s.Key = strings.TrimSpace(string(text))
				if is, err := s.Algorithm(); err != nil || algorithm != "" && is != algorithm {
					return signingFault(algorithm, is, err)
				}
				o.Signing = &s
			}
			src := bundleSource(args[0])
			r, err := f.load(c.Context(), args[0])
			if err != nil {
				return err
			}
			var archive bytes.Buffer
			if err := policy.BuildBundle(c.Context(), &archive, src, o); err != nil {
				return err
			}
			if err := replace(out, archive.Bytes()); err != nil {
				return err
			}
			signed := ""
			if o.Signing != nil {
				signed = ", signed"
			}
			fmt.Fprintf(c.OutOrStdout(), "%s: %s, roots %s%s\n", out, bytesText(int64(archive.Len())), rootsText(r), signed)
			return nil
		},
	}
	c.Flags().StringVarP(&out, "output", "o", "", "the archive to write; required")
	c.Flags().StringVar(&o.Revision, "revision", "", "the revision's name, for its manifest: it becomes a part of the ID in records and metrics")
	c.Flags().StringVar(&key, "signing-key", "", "the file of the key to sign with")
	c.Flags().StringVar(&algorithm, "signing-alg", "", "RS256, ES256 or HS256: refuse a key of another kind (default: what the key is for)")
	c.Flags().StringVar(&s.KeyID, "key-id", "", "the key's ID, for gateways that pin it")
	c.Flags().StringVar(&s.Scope, "scope", "", "the signature's scope, for gateways that pin it")
	return c
}

func signingFault(wanted, is string, err error) error {
	switch {
	case err != nil:
		return &exitError{status: 2, message: "--signing-key: " + err.Error()}
	case wanted != "RS256" && wanted != "ES256" && wanted != "HS256":
		return &exitError{status: 2, message: fmt.Sprintf("--signing-alg %q: allowed are RS256, ES256 and HS256", printable(wanted))}
	default:
		return &exitError{status: 2, message: fmt.Sprintf("--signing-alg %s: the key is one for %s", wanted, is)}
	}
}

// rootsText names what the first bundle of a revision owns.
func rootsText(r *policy.Revision) string {
	var roots []string
	for _, root := range r.Parts()[0].Roots {
		if root == "" {
			root = "everything"
		}
		roots = append(roots, root)
	}
	return strings.Join(roots, ", ")
}

// replace writes a file beside its place and renames it: a bundle server or a gateway that
// looks sees the old one or the new one.
func replace(path string, text []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".interlock-*")
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Chmod(0o644), f.Close()); err == nil { // #nosec G302 -- a bundle is for everybody
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}
