package admin

import (
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/interlock-gateway/interlock/gateway/config"
)

// Who made a change, where no configured name says it.
const (
	whoAdmin = "admin" // with admin.token
	whoLocal = "local" // without a token, on loopback
)

var rank = map[config.Role]int{config.RoleViewer: 1, config.RoleOperator: 2, config.RoleAdmin: 3}

// admit says who sends a request, or why it is refused. A nil endpoint is a path or method
// that does not exist: that, too, only an operator may find out.
func (s *Server) admit(r *http.Request, e *endpoint) (who string, denied *refusal) {
	cfg := &s.Generation().Config.Admin
	if !cfg.Secured() {
		return whoLocal, refuseForeign(r)
	}
	least := config.RoleViewer
	if e != nil {
		least = e.role
	}
	if least == "" {
		return "", nil
	}
	who, role, ok := identify(cfg, r.Header.Get("Authorization"))
	if !ok {
		return "", &refusal{
			status: http.StatusUnauthorized, code: invalidToken,
			message: "an operator's token is required: authorization: Bearer TOKEN",
		}
	}
	if rank[role] < rank[least] {
		return "", &refusal{
			status: http.StatusForbidden, code: permissionDenied,
			message: fmt.Sprintf("the token %q has the role %s; this needs %s", who, role, least),
		}
	}
	return who, nil
}

// identify finds the token that was presented. It compares digests with every token there is,
// so that the time it takes says nothing about any of them.
func identify(cfg *config.Admin, header string) (who string, role config.Role, ok bool) {
	scheme, presented, _ := strings.Cut(header, " ")
	presented = strings.TrimSpace(presented)
	if !strings.EqualFold(scheme, "bearer") || presented == "" {
		return "", "", false
	}
	given := sha256.Sum256([]byte(presented))
	compare := func(token config.Secret, name string, r config.Role) {
		d := sha256.Sum256([]byte(token.Reveal()))
		if subtle.ConstantTimeCompare(d[:], given[:]) == 1 && token != "" {
			who, role, ok = name, r, true
		}
	}
	compare(cfg.Token, whoAdmin, config.RoleAdmin)
	for i := range cfg.Tokens {
		compare(cfg.Tokens[i].Token, cfg.Tokens[i].Name, cfg.Tokens[i].Role)
	}
	return who, role, ok
}

// refuseForeign keeps web pages out of a listener that asks for no token: a page may reach
// loopback through the operator's browser, by a name of its own (DNS rebinding) or as a
// cross-origin request.
func refuseForeign(r *http.Request) *refusal {
	if !isLoopback(r.Host) {
		return &refusal{
			status: http.StatusForbidden, code: foreignHost,
			message: "without an admin token only a loopback host is answered, such as 127.0.0.1 or localhost",
		}
	}
	origins := r.Header.Values("Origin")
	for _, origin := range origins {
		u, err := url.Parse(origin)
		if err != nil || u.Scheme != "http" || !strings.EqualFold(u.Host, r.Host) {
			return &refusal{
				status: http.StatusForbidden, code: foreignOrigin,
				message: "without an admin token a request of another origin is not answered",
			}
		}
	}
	return nil
}

// isLoopback says whether a Host header names this machine by loopback.
func isLoopback(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	} else {
		host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	}
	return strings.EqualFold(host, "localhost") || net.ParseIP(host).IsLoopback()
}
