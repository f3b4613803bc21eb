package sigv4

import "strings"

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
