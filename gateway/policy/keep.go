package policy

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/url"
	"os"
	"path/filepath"
)

// The last good bundle of a server is kept as it was sent, so that its signature is verified
// again when it is read: who can write to the folder cannot make policy.

// keptFile is where a source's bundle is kept. A name that points to another address is
// another bundle.
func keptFile(dir string, s Source) string {
	sum := sha256.Sum256([]byte(s.remote.url))
	return filepath.Join(dir, url.PathEscape(s.name)+"-"+hex.EncodeToString(sum[:4])+".tar.gz")
}

// keep writes a bundle that is in force. A crash leaves the one before or this one.
func keep(dir string, b *Bundle) (err error) {
	if dir == "" || b.raw == nil {
		return nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".new-*") // 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(f.Name()))
		}
	}()
	if _, err = f.Write(b.raw); err != nil {
		return errors.Join(err, f.Close())
	}
	if err = errors.Join(f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), keptFile(dir, b.source))
}

// kept reads the last good bundle of a source, with everything that is asked of a new one.
func kept(ctx context.Context, dir string, s Source) (*Bundle, error) {
	if dir == "" {
		return nil, os.ErrNotExist
	}
	f, err := os.Open(keptFile(dir, s))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	raw, err := readLimited(f, maxDownload)
	if err != nil {
		return nil, err
	}
	b, err := unpack(ctx, s, raw)
	if err != nil {
		return nil, err
	}
	b.fromDisk = true
	return b, nil
}
