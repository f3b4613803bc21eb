package sigv4

import (
	"errors"
	"fmt"
	"strings"
)

// Scope reads from an endpoint's host which service and region a request to it is signed for:
// bedrock-runtime.us-east-1.amazonaws.com is bedrock in us-east-1. ok is false for a host that
// does not tell, such as a proxy's.
func Scope(host string) (service, region string, ok bool) {
	host, _, _ = strings.Cut(strings.ToLower(host), ":")
	labels := strings.Split(host, ".")
	for i := 1; i < len(labels); i++ {
		if !isRegion(labels[i]) {
			continue
		}
		service = strings.TrimSuffix(labels[i-1], "-fips")
		if signedAs, other := names[service]; other {
			service = signedAs
		}
		return service, labels[i], isWord(service)
	}
	return "", "", false
}

// names are the services whose endpoints are called otherwise than what is signed for.
var names = map[string]string{"bedrock-runtime": "bedrock"}

// isRegion says whether the label has the form of us-east-1 or us-gov-west-1.
func isRegion(label string) bool {
	parts := strings.Split(label, "-")
	if len(parts) < 3 || len(parts[0]) != 2 {
		return false
	}
	for i, p := range parts {
		digits := i == len(parts)-1
		for k := 0; k < len(p); k++ {
			if digits != (p[k] >= '0' && p[k] <= '9') {
				return false
			}
		}
		if p == "" {
			return false
		}
	}
	return true
}

// proxied is the service that is signed for where the host does not tell, as with a proxy's.
const proxied = "bedrock"

// For makes the Signer of an endpoint. The region is the host's, else the one given. credential is
// as ParseCredential reads it. The error says what is missing, and quotes nothing.
func For(host, region, credential string) (*Signer, error) {
	c, err := ParseCredential(credential)
	if err != nil {
		return nil, fmt.Errorf("credential: %w", err)
	}
	service, known, ok := Scope(host)
	switch {
	case ok:
		region = known
	case region == "":
		return nil, errors.New("region: is required where the host does not name it")
	default:
		service = proxied
	}
	return New(c, region, service)
}
