package admin

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/interlock-gateway/interlock/gateway/config"
)

// call is one request of an operator.
type call struct {
	*http.Request
	who   string   // name of the token; "local" where none is asked for
	names []string // the path's variable parts, decoded, in order
}

// endpoint is one method of one path. A part of the path in braces is any one name, percent-
// encoded; with dots it is one or more, slashes between them being part of the name.
type endpoint struct {
	method string
	path   string
	role   config.Role // the least that may; "": needs no token
	handle func(*Server, http.ResponseWriter, *call) error
	large  bool // takes a body of up to a mebibyte
}

const (
	smallBody = 64 << 10
	largeBody = 1 << 20
)

func (e *endpoint) bodyLimit() int64 {
	if e.large {
		return largeBody
	}
	return smallBody
}

var endpoints = []endpoint{
	{http.MethodGet, "/healthz", "", (*Server).health, false},
	{http.MethodGet, "/readyz", "", (*Server).ready, false},
	{http.MethodGet, "/metrics", "", (*Server).showMetrics, false},
	{http.MethodGet, "/openapi.json", config.RoleViewer, (*Server).document, false},
	{http.MethodGet, "/admin/v1/requests", config.RoleViewer, (*Server).listRequests, false},
	{http.MethodGet, "/admin/v1/requests/{id}", config.RoleViewer, (*Server).showRequest, false},
	{http.MethodGet, "/admin/v1/usage", config.RoleViewer, (*Server).usage, false},
	{http.MethodGet, "/admin/v1/channels", config.RoleViewer, (*Server).channels, false},
	{http.MethodGet, "/admin/v1/breakers", config.RoleViewer, (*Server).breakers, false},
	{http.MethodPost, "/admin/v1/breakers/{group}/{channel}/{model...}/reset", config.RoleOperator, (*Server).resetBreaker, false},
	{http.MethodGet, "/admin/v1/switches", config.RoleViewer, (*Server).listSwitches, false},
	{http.MethodGet, "/admin/v1/switches/{kind}/{name...}", config.RoleViewer, (*Server).showSwitch, false},
	{http.MethodPut, "/admin/v1/switches/{kind}/{name...}", config.RoleOperator, (*Server).setSwitch, false},
	{http.MethodDelete, "/admin/v1/switches/{kind}/{name...}", config.RoleOperator, (*Server).clearSwitch, false},
	{http.MethodGet, "/admin/v1/investigations", config.RoleViewer, (*Server).investigations, false},
	{http.MethodPost, "/admin/v1/investigations/{id}/close", config.RoleOperator, (*Server).closeInvestigation, false},
	{http.MethodGet, "/admin/v1/keys", config.RoleViewer, (*Server).listKeys, false},
	{http.MethodPost, "/admin/v1/keys", config.RoleAdmin, (*Server).createKey, false},
	{http.MethodDelete, "/admin/v1/keys/{id}", config.RoleAdmin, (*Server).deleteKey, false},
	{http.MethodGet, "/admin/v1/policy", config.RoleViewer, (*Server).policyStatus, false},
	{http.MethodGet, "/admin/v1/plugins", config.RoleViewer, (*Server).pluginStatus, false},
	{http.MethodGet, "/admin/v1/policy/candidate", config.RoleViewer, (*Server).showCandidate, false},
	{http.MethodPost, "/admin/v1/policy/promote", config.RoleOperator, (*Server).promote, false},
	{http.MethodPost, "/admin/v1/policy/rollback", config.RoleOperator, (*Server).rollback, false},
	{http.MethodPost, "/admin/v1/policy/evaluate", config.RoleViewer, (*Server).evaluate, true},
	{http.MethodPost, "/admin/v1/reload", config.RoleAdmin, (*Server).reload, false},
	{http.MethodGet, "/admin/v1/changes", config.RoleViewer, (*Server).changes, false},
}

// find returns the endpoint of a request and the names in its path. The refusal is a 404 or a
// 405, for whoever may know that; the endpoint is then nil.
func (s *Server) find(r *http.Request) (*endpoint, []string, *refusal) {
	parts := strings.Split(r.URL.EscapedPath(), "/")
	var allowed []string
	for i := range endpoints {
		e := &endpoints[i]
		names, ok := e.match(parts)
		if !ok {
			continue
		}
		if e.method == r.Method || e.method == http.MethodGet && r.Method == http.MethodHead {
			return e, names, nil
		}
		allowed = append(allowed, e.method)
		if e.method == http.MethodGet {
			allowed = append(allowed, http.MethodHead)
		}
	}
	if allowed == nil {
		return nil, nil, &refusal{status: http.StatusNotFound, code: notFound, message: "there is nothing at this path; /openapi.json lists what there is"}
	}
	slices.Sort(allowed)
	allow := strings.Join(allowed, ", ")
	return nil, nil, &refusal{
		status: http.StatusMethodNotAllowed, code: invalidRequest, allow: allow,
		message: "this path does not take that method; it takes " + allow,
	}
}

// match compares a path's escaped parts. A name is never empty.
func (e *endpoint) match(parts []string) (names []string, ok bool) {
	pattern := strings.Split(e.path, "/")
	for i, want := range pattern {
		switch {
		case strings.HasSuffix(want, "...}"):
			rest := len(pattern) - i - 1
			end := len(parts) - rest
			if end <= i || !slices.Equal(parts[end:], pattern[i+1:]) {
				return nil, false
			}
			name, err := url.PathUnescape(strings.Join(parts[i:end], "/"))
			return append(names, name), err == nil && name != ""
		case i >= len(parts):
			return nil, false
		case strings.HasPrefix(want, "{"):
			name, err := url.PathUnescape(parts[i])
			if err != nil || name == "" {
				return nil, false
			}
			names = append(names, name)
		case want != parts[i]:
			return nil, false
		}
	}
	return names, len(parts) == len(pattern)
}
