package downstream

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/interlock-gateway/interlock/gateway/telemetry"
)

// TLSFiles name the PEM files of a TLS listener. Without a certificate the listener speaks
// plain HTTP; with a client CA callers must show a certificate that it signed. Files are read
// again when they change; broken ones leave the old ones in force.
type TLSFiles struct{ Cert, Key, ClientCA string }

// certificateCheck is how often handshakes look for changed files, at most.
const certificateCheck = time.Second

// certificates are a listener's certificates, as the files last had them.
type certificates struct {
	files TLSFiles
	log   *telemetry.Log

	current atomic.Pointer[tls.Config]
	next    atomic.Int64 // when to look again, in Unix nanoseconds

	mu   sync.Mutex
	seen [3]os.FileInfo
}

// config returns the TLS configuration, or nil for plain HTTP.
func (t TLSFiles) config(log *telemetry.Log) (*tls.Config, error) {
	if t == (TLSFiles{}) {
		return nil, nil
	}
	if t.Cert == "" || t.Key == "" {
		return nil, errors.New("listen.tls: cert_file and key_file are both needed")
	}
	c := &certificates{files: t, log: log}
	c.changed()
	if err := c.load(); err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			c.refresh(time.Now())
			return c.current.Load(), nil
		},
	}, nil
}

// refresh reads the files again if they have changed. One handshake at a time looks; the
// others go on with what there is.
func (c *certificates) refresh(now time.Time) {
	if now.UnixNano() < c.next.Load() || !c.mu.TryLock() {
		return
	}
	defer c.mu.Unlock()
	c.next.Store(now.Add(certificateCheck).UnixNano())
	if !c.changed() {
		return
	}
	if err := c.load(); err != nil {
		c.log.Error("the changed TLS files cannot be used; the old ones stay", "error", err.Error())
		return
	}
	c.log.Info("TLS files read again")
}

// changed says whether a file is another one than before, and remembers it.
func (c *certificates) changed() bool {
	changed := false
	for i, name := range [...]string{c.files.Cert, c.files.Key, c.files.ClientCA} {
		if name == "" {
			continue
		}
		now, err := os.Stat(name)
		if err != nil {
			continue // being replaced: look again later
		}
		old := c.seen[i]
		if old == nil || !os.SameFile(old, now) || !old.ModTime().Equal(now.ModTime()) || old.Size() != now.Size() {
			changed, c.seen[i] = true, now
		}
	}
	return changed
}

func (c *certificates) load() error {
	pair, err := tls.LoadX509KeyPair(c.files.Cert, c.files.Key)
	if err != nil {
		return fmt.Errorf("listen.tls: cert_file %s, key_file %s: %w", c.files.Cert, c.files.Key, err)
	}
	config := &tls.Config{
		MinVersion:   tls.VersionTLS12,
		NextProtos:   []string{"http/1.1"},
		Certificates: []tls.Certificate{pair},
	}
	if c.files.ClientCA != "" {
		pem, err := os.ReadFile(c.files.ClientCA)
		if err != nil {
			return fmt.Errorf("listen.tls: client_ca_file: %w", err)
		}
		config.ClientCAs = x509.NewCertPool()
		if !config.ClientCAs.AppendCertsFromPEM(pem) {
			return fmt.Errorf("listen.tls: client_ca_file %s holds no PEM certificate", c.files.ClientCA)
		}
		config.ClientAuth = tls.RequireAndVerifyClientCert
	}
	c.current.Store(config)
	return nil
}
