package adapter

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/interlock-gateway/interlock/gateway/openai/jsonx"
)

// methods are those that a provider's request may have.
var methods = []string{"POST", "PUT", "PATCH", "GET"}

// reserved are headers that no plugin sets, whatever its manifest says: the transport's, and
// those by which a provider could be shown a credential or another host.
var reserved = []string{
	"authorization", "proxy-authorization", "cookie", "host", "content-length", "transfer-encoding", "connection",
	"keep-alive", "te", "trailer", "upgrade", "expect", "accept-encoding", "content-type", "accept", "user-agent", "forwarded", "via",
}

// Reserved says whether a plugin may never set a header of that name, in lower case.
func Reserved(name string) bool {
	return slices.Contains(reserved, name) || strings.HasPrefix(name, "proxy-") ||
		strings.HasPrefix(name, "x-forwarded-") || strings.HasPrefix(name, "x-amz-security")
}

const (
	maxPath    = 4 << 10
	maxHeaders = 64
)

// checkShaped holds a request that a plugin shaped against what it may be. The errors name
// the part, never its value; reason is the metric's word for it.
func (g *Guest) checkShaped(s *Shaped, body []byte) (reason string, err error) {
	if !slices.Contains(methods, s.Method) {
		return refusedMethod, fmt.Errorf("%s: request: the method is none of %s", g.name, strings.Join(methods, ", "))
	}
	if err := checkPath(s.Path); err != nil {
		return refusedPath, fmt.Errorf("%s: request: %w", g.name, err)
	}
	if len(s.Header) > maxHeaders {
		return refusedHeader, fmt.Errorf("%s: request: more than %d headers", g.name, maxHeaders)
	}
	for _, f := range s.Header {
		switch {
		case !slices.Contains(g.manifest.RequestHeaders, f.Name):
			return refusedHeader, fmt.Errorf("%s: request: a header is set that the manifest does not declare", g.name)
		case Reserved(f.Name):
			return refusedHeader, fmt.Errorf("%s: request: the header %s is the host's alone", g.name, f.Name)
		case !isHeaderValue(f.Value):
			return refusedHeader, fmt.Errorf("%s: request: the header %s has a control character or is too long", g.name, f.Name)
		}
	}
	if s.ContentType == "" || !isHeaderValue(s.ContentType) {
		return refusedHeader, fmt.Errorf("%s: request: the content type is empty or has a control character", g.name)
	}
	if HasFold([]byte(s.ContentType), "json") && !jsonx.Valid(body) {
		return refusedBody, fmt.Errorf("%s: request: the body is not JSON", g.name)
	}
	return "", nil
}

// checkPath refuses what could leave the base URL: a scheme, a host, a step upwards, however
// it is escaped.
func checkPath(path string) error {
	switch {
	case path == "" || path[0] != '/':
		return errors.New("the path does not begin with a slash")
	case len(path) > maxPath:
		return fmt.Errorf("the path has more than %d bytes", maxPath)
	case strings.HasPrefix(path, "//") || strings.Contains(path, "\\"):
		return errors.New("the path could name another host")
	}
	for i := range len(path) {
		if c := path[i]; c <= ' ' || c >= 0x7f || c == '#' {
			return errors.New("the path has a character that must be escaped")
		}
	}
	below, _, _ := strings.Cut(path, "?")
	steps := strings.Split(strings.ToLower(below)[1:], "/")
	for i, step := range steps {
		step, _, _ = strings.Cut(step, ";") // what some servers take for parameters of the step
		switch step = strings.ReplaceAll(step, "%2e", "."); {
		case step == "..":
			return errors.New("the path has a step upwards")
		case step == ".":
			return errors.New("the path has a step that leads nowhere")
		case step == "" && i < len(steps)-1:
			return errors.New("the path has an empty step")
		}
	}
	for i := 0; i+2 < len(path); i++ {
		if path[i] == '%' && (path[i+1] == '0' || path[i+1] == '1' || path[i+1] == '7' && (path[i+2] == 'f' || path[i+2] == 'F')) {
			return errors.New("the path has an escaped control character")
		}
	}
	return nil
}

func isHeaderValue(v string) bool {
	if len(v) > maxHeaderValue {
		return false
	}
	for i := range len(v) {
		if c := v[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}
