package fault

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"fmt"
	"io"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

// codings are the content codings by their names in HTTP. "deflate" is zlib,
// as RFC 9110 has it.
var codings = []string{"br", "deflate", "gzip", "zstd"}

// coder applies a content coding piece by piece.
type coder struct {
	out bytes.Buffer
	enc interface {
		io.WriteCloser
		Flush() error
	}
}

func newCoder(name string) (*coder, error) {
	c := &coder{}
	switch name {
	case "gzip":
		c.enc = gzip.NewWriter(&c.out)
	case "deflate":
		c.enc = zlib.NewWriter(&c.out)
	case "br":
		c.enc = brotli.NewWriter(&c.out)
	case "zstd":
		enc, err := zstd.NewWriter(&c.out, zstd.WithEncoderConcurrency(1))
		if err != nil {
			return nil, fmt.Errorf("fault: zstd: %w", err)
		}
		c.enc = enc
	default:
		return nil, fmt.Errorf("fault: no content coding %q", name)
	}
	return c, nil
}

// code gives the coded bytes of p, complete up to there; last ends the coding.
func (c *coder) code(p []byte, last bool) ([]byte, error) {
	if len(p) > 0 {
		if _, err := c.enc.Write(p); err != nil {
			return nil, err
		}
	}
	finish := c.enc.Flush
	if last {
		finish = c.enc.Close
	}
	if err := finish(); err != nil {
		return nil, err
	}
	out := bytes.Clone(c.out.Bytes())
	c.out.Reset()
	return out, nil
}
