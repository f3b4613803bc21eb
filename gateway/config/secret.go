package config

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/interlock-gateway/interlock/gateway/telemetry"
)

// Secret is a value that nothing prints.
type Secret = telemetry.Secret

// Fingerprint returns 16 hex digits by which two secrets are told apart without showing
// either: for noticing that a credential has changed, over restarts too. It is "" for an
// empty secret.
func Fingerprint(s Secret) string {
	if s == "" {
		return ""
	}
	d := sha256.Sum256([]byte("interlock secret\x00" + s.Reveal()))
	return hex.EncodeToString(d[:8])
}

// Document is a mapping that the gateway hands on as JSON without reading it. It may hold
// secrets, so it prints as one.
type Document struct{ JSON Secret }
