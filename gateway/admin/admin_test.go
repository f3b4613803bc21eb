package admin

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/gateway/config"
	"github.com/interlock-gateway/interlock/gateway/failure"
	"github.com/interlock-gateway/interlock/gateway/ledger"
	"github.com/interlock-gateway/interlock/gateway/policy/trial"
	"github.com/interlock-gateway/interlock/gateway/route"
	"github.com/interlock-gateway/interlock/gateway/storage"
)

func TestRoles(t *testing.T) {
	st := setUp(t, tokens)
	st.reload = func(context.Context) (uint64, []config.Problem, error) { return 8, nil, nil }
	as := map[config.Role]string{config.RoleViewer: "tok-viewer", config.RoleOperator: "tok-operator", config.RoleAdmin: "tok-admin"}
	for i := range endpoints {
		e := &endpoints[i]
		path := fill(e.path)
		st.token = ""
		if e.role == "" {
			require.Equal(t, 200, st.call(e.method, path, "", "Host", "elsewhere.example").status)
			continue
		}
		for _, header := range []string{"", "Bearer", "Bearer ", "Bearer wrong", "Basic tok-root", "tok-root", "Bearer tok-roo", "Bearer tok-root2"} {
			st.refused(401, invalidToken, e.method, path, "", "Authorization", header)
		}
		for role, token := range as {
			st.token = token
			r := st.call(e.method, path, `{"nonsense":1}`)
			if rank[role] < rank[e.role] {
				require.Equal(t, 403, r.status, "%s as %s", path, role)
				require.Contains(t, r.body, "this needs "+string(e.role))
			} else {
				require.NotContains(t, []int{401, 403, 500}, r.status, "%s as %s: %s", path, role, r.body)
			}
		}
	}
	st.token = ""
	st.refused(401, invalidToken, "GET", "/nothing", "")
	st.token = "tok-root"
	st.refused(404, notFound, "GET", "/nothing", "")
	require.Equal(t, 200, st.call("GET", "/admin/v1/channels", "", "Host", "gateway.example", "Origin", "https://elsewhere").status)
	require.Equal(t, 200, st.call("GET", "/admin/v1/channels", "", "Authorization", "bearer tok-viewer").status)
}

func TestWithoutATokenOnlyLoopback(t *testing.T) {
	st := setUp(t, "")
	for _, host := range []string{"127.0.0.1", "127.0.0.1:8081", "localhost", "LOCALHOST:1", "[::1]", "[::1]:8081", "127.9.9.9:1"} {
		require.Equal(t, 200, st.call("GET", "/admin/v1/channels", "", "Host", host).status, host)
	}
	for _, host := range []string{"evil.example", "localhost.evil.example", "10.0.0.1:8081", "0.0.0.0", "evil.example:8081", "127.0.0.1.evil.example"} {
		st.refused(403, foreignHost, "GET", "/admin/v1/channels", "", "Host", host)
		st.refused(403, foreignHost, "GET", "/metrics", "", "Host", host)
	}
	for _, origin := range []string{"null", "http://evil.example", "https://127.0.0.1:8081", "http://127.0.0.1:9", "http://127.0.0.1:8081.evil.example", "%"} {
		st.refused(403, foreignOrigin, "PUT", "/admin/v1/switches/group/g", `{"reason":"r"}`, "Host", "127.0.0.1:8081", "Origin", origin)
	}
	require.Equal(t, 200, st.call("GET", "/healthz", "", "Origin", st.url).status)
	require.True(t, st.state.Switches().Set().Empty())
}

func TestPathsAndMethods(t *testing.T) {
	st := setUp(t, "")
	for _, path := range []string{
		"/", "/admin", "/admin/v1", "/admin/v1/", "/admin/v1/requests/", "/admin/v1/requests/a/b", "/admin/v1/switches/group/",
		"/admin/v1/switches//x", "/Healthz", "/healthz/", "//healthz", "/admin/v1/breakers/g/c/reset", "/x/../healthz",
	} {
		st.refused(404, notFound, "GET", path, "")
	}
	st.refused(405, invalidRequest, "POST", "/healthz", "")
	r := st.call("PATCH", "/admin/v1/switches/group/g", "")
	require.Equal(t, 405, r.status)
	require.Equal(t, "DELETE, GET, HEAD, PUT", r.header.Get("Allow"))
	require.Equal(t, 200, st.call("HEAD", "/healthz", "").status)
}

func TestHealthReadyMetrics(t *testing.T) {
	st := setUp(t, "")
	require.Equal(t, "v-test", st.ok("GET", "/healthz", "")["version"])
	st.condition.Degraded = map[string]string{"storage": "gone"}
	got := st.ok("GET", "/readyz", "")
	require.Equal(t, "ready", got["status"])
	require.Equal(t, map[string]any{"storage": "gone"}, got["degraded"])
	st.condition = Condition{Ready: false}
	r := st.call("GET", "/readyz", "")
	require.Equal(t, 503, r.status)
	require.JSONEq(t, `{"status":"not_ready","generation":7,"degraded":{}}`, r.body)
	st.condition = Condition{Draining: true, Ready: true}
	r = st.call("GET", "/readyz", "")
	require.Equal(t, 503, r.status)
	require.Contains(t, r.body, "draining")

	inv, _, err := st.db.OpenInvestigation(context.Background(), storage.Investigation{Kind: "odd", Scope: "s", Cause: "c"})
	require.NoError(t, err)
	m := st.call("GET", "/metrics", "").body
	require.Contains(t, m, `interlock_investigations_open{kind="odd"} 1`)
	require.Contains(t, m, `interlock_investigations_open{kind="isolated_account"} 0`)
	require.Contains(t, m, `interlock_ledger_queue`)
	require.Contains(t, m, `interlock_circuit_state{channel="d",group="g",model="other"} 0`)
	_, err = st.db.CloseInvestigation(context.Background(), inv.ID, "w", "")
	require.NoError(t, err)
	require.Contains(t, st.call("GET", "/metrics", "").body, `interlock_investigations_open{kind="odd"} 0`)
}

// keep puts one request with two attempts into the ledger.
func (st *stand) keep(id string, at time.Time) {
	r := st.ledger.Acquire()
	r.ID, r.Key, r.Endpoint, r.RequestedModel, r.ReceivedAt = id, "web", "chat_completions", "plain", at
	r.UserAction = id
	for n, cause := range []failure.Cause{failure.Initial, failure.SameContractFallback} {
		a := r.NextAttempt()
		a.Cause, a.Group, a.Channel, a.Model, a.Reason = cause, "g", "c", "plain", "because"
		require.NoError(st.t, st.ledger.OpenAttempt(r, n+1, nil))
		a = r.Attempt(n + 1)
		a.End = failure.EndFailed
		a.Class = failure.ServerError
		if n == 1 {
			a.End, a.Class, a.CostUSD = failure.EndSuccess, failure.None, ledger.Some(0.25)
		}
		st.ledger.CloseAttempt(r, n+1)
	}
	r.Decisions = append(r.Decisions, ledger.Decision{Attempt: 1, Point: "replay", Input: []byte(`{}`), Output: []byte(`{"a":1}`), Revision: "rev"})
	r.Terminal, r.Status, r.Cause = failure.Success, 200, ledger.Some(failure.SameContractFallback)
	st.ledger.CloseRequest(r)
}

func TestRequests(t *testing.T) {
	st := setUp(t, "")
	var ids []string
	for i := range 3 {
		at := time.Now().Add(time.Duration(i-3) * time.Minute)
		ids = append(ids, ledger.NewID(at))
		st.keep(ids[i], at)
	}
	page := st.ok("GET", "/admin/v1/requests?limit=2&class=server_error&key=web", "")
	list := page["requests"].([]any)
	require.Len(t, list, 2)
	require.Equal(t, ids[2], list[0].(map[string]any)["request_id"])
	require.NotContains(t, list[0], "decisions")
	page = st.ok("GET", "/admin/v1/requests?limit=2&cursor="+page["next"].(string), "")
	require.Len(t, page["requests"], 1)
	require.Empty(t, page["next"])
	require.Empty(t, st.ok("GET", "/admin/v1/requests?key=nobody", "")["requests"])

	one := st.ok("GET", "/admin/v1/requests/"+ids[0], "")
	require.Len(t, one["attempts"], 2)
	require.Len(t, one["decisions"], 1)
	text := st.call("GET", "/admin/v1/requests/"+ids[0], "", "Accept", "text/plain")
	require.Contains(t, text.body, "attempt 2  same_contract_fallback")
	lines := st.call("GET", "/admin/v1/requests?limit=1", "", "Accept", "application/x-ndjson")
	require.Equal(t, 3, strings.Count(lines.body, "\n"), "an export knows no pages")
	require.Contains(t, lines.body, `"decisions"`)
	csv := st.call("GET", "/admin/v1/requests", "", "Accept", "text/csv; q=1")
	require.Equal(t, 7, strings.Count(csv.body, "\n"), "a head and two attempts each")

	st.refused(404, notFound, "GET", "/admin/v1/requests/req_none", "")
	require.Contains(t, st.refused(400, invalidRequest, "GET", "/admin/v1/requests?colour=red", ""), "colour")
	st.refused(400, invalidRequest, "GET", "/admin/v1/requests?limit=0", "")
	st.refused(400, invalidRequest, "GET", "/admin/v1/requests?cursor=%21", "")
	st.refused(400, invalidRequest, "GET", "/admin/v1/requests?limit=0", "", "Accept", "text/csv")
	st.refused(400, invalidRequest, "GET", "/admin/v1/requests?a=%zz", "")

	use := st.call("GET", "/admin/v1/usage?group_by=key,cause", "")
	require.Equal(t, 200, use.status)
	require.Contains(t, use.body, "same_contract_fallback")
	require.Contains(t, use.body, "0.75")
	st.refused(400, invalidRequest, "GET", "/admin/v1/usage?group_by=colour", "")
	st.refused(400, invalidRequest, "GET", "/admin/v1/usage?since=yesterday", "")
	st.refused(400, invalidRequest, "GET", "/admin/v1/usage?until=2026-01-01", "")
}

func TestSwitches(t *testing.T) {
	st := setUp(t, "")
	for path, name := range map[string]string{
		"channel/g/c": "g/c", "group/g": "g", "provider/p": "p", "account/acc": "acc", "model/org%2Fm": "org/m", "model/org/m": "org/m",
		"alias/agent": "agent", "action/same_route_retry": "same_route_retry", "alias-action/agent/model_substitution": "agent/model_substitution",
		"policy/candidate": "candidate",
	} {
		p := "/admin/v1/switches/" + path
		st.refused(404, notFound, "GET", p, "")
		st.refused(404, notFound, "DELETE", p, "")
		set := st.ok("PUT", p, `{"reason":"burning","until":"2026-03-01T13:00:00Z"}`)
		require.Equal(t, name, set["name"])
		require.Equal(t, "local", set["who"])
		require.Equal(t, set, st.ok("GET", p, ""))
		again := st.ok("PUT", p, `{"reason":"still","until":null}`)
		require.Nil(t, again["until"])
		ch := st.lastChange()
		require.Equal(t, "still", ch["reason"])
		require.Equal(t, "burning", ch["before"].(map[string]any)["reason"])
		require.Equal(t, "still", ch["after"].(map[string]any)["reason"])
		require.Len(t, st.ok("GET", "/admin/v1/switches", "")["switches"], 1)
		st.ok("DELETE", p, `{"reason":"out"}`)
		ch = st.lastChange()
		require.Nil(t, ch["after"])
		require.Equal(t, "out", ch["reason"])
		require.True(t, strings.HasSuffix(ch["what"].(string), "/"+name))
	}
	p := "/admin/v1/switches/group/g"
	for _, unknown := range []string{"group/h", "planet/x", "channel/c", "model/nope", "action/initial", "account/g%2Fc", "alias/plain"} {
		st.refused(404, notFound, "PUT", "/admin/v1/switches/"+unknown, `{"reason":"r"}`)
	}
	for body, says := range map[string]string{
		``: "object", `{}`: "reason", `{"reason":""}`: "reason", `{"reason":"r","untill":null}`: `"untill"`, `{"reason":1}`: "reason",
		`{"reason":"r","until":"soon"}`: "an RFC 3339 time such as 2026-01-02T15:04:05Z, or null, is expected",
		`{"reason":"r","until":7}`:      "RFC 3339", `{"reason":"r","reason":"s"}`: "reason is given twice", `{"reason":"r","Reason":"s"}`: "Reason is given twice",
		`{"reason":"r","r\u0065ason":"s"}`: "reason is given twice", `{"reason":"r","until":"2026-03-01T12:00:00Z"}`: "passed", `[]`: "body", `{"reason":"r"} x`: "", `{"reason":`: "ends",
		`{"reason":"` + strings.Repeat("x", maxReason+1) + `"}`: "too long",
	} {
		require.Contains(t, st.refused(400, invalidRequest, "PUT", p, body), says, body)
	}
	st.refused(413, requestTooLarge, "PUT", p, `{"reason":"`+strings.Repeat("x", smallBody)+`"}`)
	st.refused(413, requestTooLarge, "DELETE", p, strings.Repeat(" ", smallBody+1))
	require.True(t, st.state.Switches().Set().Empty())
}

func TestChannelsAndBreakers(t *testing.T) {
	st := setUp(t, "")
	st.ok("PUT", "/admin/v1/switches/channel/g/d", `{"reason":"r"}`)
	r := st.call("GET", "/admin/v1/channels", "")
	require.NotContains(t, r.body, "canary")
	got := st.ok("GET", "/admin/v1/channels", "")
	require.EqualValues(t, 7, got["generation"])
	list := got["channels"].([]any)
	require.Len(t, list, 2)
	require.Equal(t, "ready", list[0].(map[string]any)["state"])
	require.Nil(t, list[0].(map[string]any)["last_failure"])
	require.Equal(t, "switched_off", list[1].(map[string]any)["state"])
	require.NotNil(t, list[1].(map[string]any)["switch"])
	require.Len(t, st.ok("GET", "/admin/v1/breakers", "")["breakers"], 3)

	reset := "/admin/v1/breakers/g/c/org%2Fm/reset"
	require.Equal(t, false, st.ok("POST", reset, "")["ended"])
	g := st.generation.Table
	routes := g.Plan(nil, g.Groups(), "org/m", route.PlanOptions{Now: st.now})
	var permit route.Permit
	require.True(t, routes[0].Enter(&permit, st.now, route.Ask{}).State.Usable())
	permit.Report(st.now, route.Outcome{Class: failure.UpstreamAuth, Health: failure.Isolates, Reason: "bad_credential"})
	ch := st.ok("GET", "/admin/v1/channels", "")["channels"].([]any)[0].(map[string]any)
	require.Equal(t, "isolated", ch["state"])
	require.Equal(t, "upstream_auth", ch["last_failure"].(map[string]any)["class"])
	require.Equal(t, true, st.ok("POST", "/admin/v1/breakers/g/c/org/m/reset", `{"reason":"new key"}`)["ended"])
	require.Equal(t, "new key", st.lastChange()["reason"])
	require.Equal(t, "ready", st.ok("GET", "/admin/v1/channels", "")["channels"].([]any)[0].(map[string]any)["state"])

	st.refused(404, notFound, "POST", "/admin/v1/breakers/g/c/nope/reset", "")
	st.refused(404, notFound, "POST", "/admin/v1/breakers/x/c/plain/reset", "")
	st.refused(400, invalidRequest, "POST", reset, `{"why":"x"}`)
	st.refused(400, invalidRequest, "GET", "/admin/v1/channels?group=g", "")
}

func TestKeys(t *testing.T) {
	st := setUp(t, "")
	made := st.ok("POST", "/admin/v1/keys", `{"name":"mobile","groups":["g"],"models":["org/*"],"budget":"interactive","rpm":5,"labels":{"team":"m"}}`)
	secret := made["key"].(string)
	require.Regexp(t, `^ilk_[0-9A-Za-z]{32}$`, secret)
	k := st.generation.Keys.Find([]byte(secret))
	require.Equal(t, "mobile", k.Name)
	require.True(t, k.MayCall("org/m"))
	require.False(t, k.MayCall("plain"))
	r := st.call("GET", "/admin/v1/keys", "")
	require.NotContains(t, r.body, secret)
	require.NotContains(t, r.body, "canary")
	list := st.ok("GET", "/admin/v1/keys", "")["keys"].([]any)
	require.Len(t, list, 2)
	require.Equal(t, "config", list[0].(map[string]any)["source"])
	require.Equal(t, made["id"], list[1].(map[string]any)["id"])
	require.Equal(t, true, list[1].(map[string]any)["in_force"])
	require.NotContains(t, st.call("GET", "/admin/v1/changes", "").body, secret)
	require.Equal(t, "key/"+made["id"].(string), st.lastChange()["what"])

	for body, says := range map[string]string{
		`{"groups":["g"]}`: "name", `{"name":"-","groups":["g"]}`: "name", `{"name":"x"}`: "groups", `{"name":"x","groups":["h"]}`: `"h"`,
		`{"name":"x","groups":["g","g"]}`: "twice", `{"name":"x","groups":["g"],"models":[""]}`: "models", `{"name":"x","groups":["g"],"budget":"b"}`: "budget",
		`{"name":"x","groups":["g"],"budgets":["b"]}`: "budgets", `{"name":"x","groups":["g"],"rpm":-1}`: "rpm", `{"name":"x","groups":["g"],"labels":{"":"v"}}`: "labels",
		`{"name":"x","groups":["g"],"key":"mine"}`: `"key"`, ``: "object",
	} {
		require.Contains(t, st.refused(400, invalidRequest, "POST", "/admin/v1/keys", body), says, body)
	}
	for _, taken := range []string{"mobile", "web"} {
		st.refused(409, nameTaken, "POST", "/admin/v1/keys", `{"name":"`+taken+`","groups":["g"]}`)
	}

	st.keysErr = errors.New("no generation")
	st.refused(500, internalError, "POST", "/admin/v1/keys", `{"name":"late","groups":["g"]}`)
	st.refused(500, keysNotInForce, "DELETE", "/admin/v1/keys/"+made["id"].(string), "")
	require.NotNil(t, st.generation.Keys.Find([]byte(secret)))
	st.keysErr = nil
	st.ok("DELETE", "/admin/v1/keys/"+made["id"].(string), `{"reason":"leaked"}`)
	require.Nil(t, st.generation.Keys.Find([]byte(secret)))
	require.Equal(t, "leaked", st.lastChange()["reason"])
	st.refused(404, notFound, "DELETE", "/admin/v1/keys/"+made["id"].(string), "")
	require.Len(t, st.ok("GET", "/admin/v1/keys", "")["keys"], 1, "a key that could not be put in force is not kept")
}

func TestNewKeysDiffer(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		k := newKey()
		require.Regexp(t, `^ilk_[0-9A-Za-z]{32}$`, k)
		require.False(t, seen[k])
		seen[k] = true
	}
}

func TestPolicy(t *testing.T) {
	st := setUp(t, "")
	st.status = PolicyStatus{Revision: "r1", Source: "builtin", LoadedAt: st.now}
	got := st.ok("GET", "/admin/v1/policy", "")
	require.Equal(t, "r1", got["revision"])
	require.Nil(t, got["last_error"])
	d := st.ok("POST", "/admin/v1/policy/evaluate", `{"point":"failure","input":{"failure":{"status":429}}}`)
	require.Equal(t, "rate_limited", d["output"].(map[string]any)["class"])
	require.Equal(t, st.generation.Policy.ID(), d["revision"])
	st.refused(400, invalidRequest, "POST", "/admin/v1/policy/evaluate", `{"point":"retry","input":{}}`)
	st.refused(400, invalidRequest, "POST", "/admin/v1/policy/evaluate", `{"point":"replay","input":{"failure":3}}`)
	st.refused(400, invalidRequest, "POST", "/admin/v1/policy/evaluate", `{"point":"replay","inputs":{}}`)
	st.refused(413, requestTooLarge, "POST", "/admin/v1/policy/evaluate", `{"point":"replay","input":"`+strings.Repeat("x", largeBody)+`"}`)
}

func TestPlugins(t *testing.T) {
	st := setUp(t, "")
	require.Equal(t, []any{}, st.ok("GET", "/admin/v1/plugins", "")["plugins"])
	st.plugins = []Plugin{
		{Name: "acme", Source: "file:acme.wasm", SHA256: "ab", Status: "loaded", Kind: "adapter", Version: "1.2.3", ABI: "1.0", Since: st.now, Endpoints: []string{"chat_completions"}},
		{Name: "gone", Source: "builtin:gone", Status: "disabled", Error: "no such adapter"},
	}
	got := st.ok("GET", "/admin/v1/plugins", "")["plugins"].([]any)
	require.Equal(t, "1.2.3", got[0].(map[string]any)["version"])
	require.Nil(t, got[0].(map[string]any)["error"])
	require.Equal(t, "no such adapter", got[1].(map[string]any)["error"])
	require.Nil(t, got[1].(map[string]any)["loaded_at"])
	require.Equal(t, []any{}, got[1].(map[string]any)["operations"])
}

func TestReload(t *testing.T) {
	st := setUp(t, "")
	st.reload = func(context.Context) (uint64, []config.Problem, error) { return 8, nil, nil }
	require.EqualValues(t, 8, st.ok("POST", "/admin/v1/reload", "")["generation"])
	require.Equal(t, []any{}, st.ok("POST", "/admin/v1/reload", "")["refused_plugins"])
	require.EqualValues(t, 7, st.lastChange()["before"].(map[string]any)["generation"])
	st.reload = func(context.Context) (uint64, []config.Problem, error) {
		return 0, []config.Problem{{File: "f", Line: 3, Column: 5, Key: "groups[0]", Message: "bad"}, {Message: "worse"}}, errors.New("x")
	}
	st.refused(422, reloadRefused, "POST", "/admin/v1/reload", "{}")
	require.Contains(t, st.call("POST", "/admin/v1/reload", "").body, `"errors":[{"file":"f","line":3,"column":5,"key":"groups[0]","message":"bad"},{`)
	st.reload = func(context.Context) (uint64, []config.Problem, error) { return 0, nil, errors.New("no file") }
	require.Contains(t, st.call("POST", "/admin/v1/reload", "").body, `"message":"no file"`)
	st.refused(400, invalidRequest, "POST", "/admin/v1/reload", `{"now":true}`)
	st.reload = func(context.Context) (uint64, []config.Problem, error) { panic("broken") }
	st.refused(500, internalError, "POST", "/admin/v1/reload", "")
}

func TestInvestigationsAndChanges(t *testing.T) {
	st := setUp(t, tokens)
	st.token = "tok-operator"
	inv, _, err := st.db.OpenInvestigation(context.Background(), storage.Investigation{Kind: "k", Scope: "s", Cause: "c"})
	require.NoError(t, err)
	require.Len(t, st.ok("GET", "/admin/v1/investigations", "")["investigations"], 1)
	closed := st.ok("POST", "/admin/v1/investigations/"+inv.ID+"/close", `{"note":"fixed"}`)
	require.Equal(t, "hands", closed["closed_by"])
	require.Equal(t, "fixed", closed["note"])
	st.refused(404, notFound, "POST", "/admin/v1/investigations/"+inv.ID+"/close", "")
	require.Empty(t, st.ok("GET", "/admin/v1/investigations", "")["investigations"])
	require.Len(t, st.ok("GET", "/admin/v1/investigations?state=all", "")["investigations"], 1)
	st.refused(400, invalidRequest, "GET", "/admin/v1/investigations?state=odd", "")
	st.refused(400, invalidRequest, "POST", "/admin/v1/investigations/x/close", `{"notes":""}`)

	for range 2 {
		st.ok("PUT", "/admin/v1/switches/group/g", `{"reason":"r"}`)
	}
	page := st.ok("GET", "/admin/v1/changes?limit=2", "")
	require.Len(t, page["changes"], 2)
	require.Equal(t, "hands", page["changes"].([]any)[0].(map[string]any)["who"])
	page = st.ok("GET", "/admin/v1/changes?limit=2&cursor="+page["next"].(string), "")
	require.Len(t, page["changes"], 1)
	require.Empty(t, page["next"])
	for _, q := range []string{"limit=0", "limit=x", "cursor=0", "cursor=x", "who=me", "limit=1&limit=2"} {
		st.refused(400, invalidRequest, "GET", "/admin/v1/changes?"+q, "")
	}
}

func TestTheDocumentNamesEveryEndpoint(t *testing.T) {
	st := setUp(t, "")
	doc := st.ok("GET", "/openapi.json", "")
	require.Equal(t, "3.1.0", doc["openapi"])
	paths := doc["paths"].(map[string]any)
	named := 0
	for _, e := range endpoints {
		p, ok := paths[strings.ReplaceAll(e.path, "...", "")].(map[string]any)
		require.True(t, ok, e.path)
		require.Contains(t, p, strings.ToLower(e.method), e.path)
		named++
	}
	for path, methods := range paths {
		if !strings.HasPrefix(path, "/v1/") && !strings.HasPrefix(path, "/interlock/") {
			named -= len(methods.(map[string]any))
		}
	}
	require.Zero(t, named, "the document names what is not there")
	schemas := doc["components"].(map[string]any)["schemas"].(map[string]any)
	for _, part := range strings.Split(string(OpenAPI), `"$ref": "#/components/schemas/`)[1:] {
		name, _, _ := strings.Cut(part, `"`)
		require.Contains(t, schemas, name)
	}
}

// The document's schemas name the fields that answers have, no more and no fewer.
func TestTheDocumentDescribesTheAnswers(t *testing.T) {
	st := setUp(t, "")
	id := ledger.NewID(time.Now())
	st.keep(id, time.Now())
	st.ok("PUT", "/admin/v1/switches/model/plain", `{"reason":"r"}`)
	_, _, err := st.db.OpenInvestigation(context.Background(), storage.Investigation{Kind: "k", Scope: "s", Cause: "c"})
	require.NoError(t, err)
	var doc struct {
		Components struct {
			Schemas map[string]struct{ Properties map[string]any }
		}
	}
	require.NoError(t, json.Unmarshal(OpenAPI, &doc))
	same := func(schema string, answer any) {
		var want, got []string
		for name := range doc.Components.Schemas[schema].Properties {
			want = append(want, name)
		}
		for name := range answer.(map[string]any) {
			got = append(got, name)
		}
		require.ElementsMatch(t, want, got, schema)
	}
	first := func(v any) any { return v.([]any)[0] }
	request := st.ok("GET", "/admin/v1/requests/"+id, "")
	same("Request", request)
	same("Attempt", first(request["attempts"]))
	same("Decision", first(request["decisions"]))
	same("UsageSums", st.ok("GET", "/admin/v1/usage", "")["total"])
	channel := first(st.ok("GET", "/admin/v1/channels", "")["channels"])
	same("Channel", channel)
	same("Route", first(channel.(map[string]any)["models"]))
	same("Breaker", first(st.ok("GET", "/admin/v1/breakers", "")["breakers"]))
	same("Switch", first(st.ok("GET", "/admin/v1/switches", "")["switches"]))
	same("Investigation", first(st.ok("GET", "/admin/v1/investigations", "")["investigations"]))
	same("Key", first(st.ok("GET", "/admin/v1/keys", "")["keys"]))
	st.candidate.Report = &trial.Report{}
	same("Candidate", map[string]any(st.ok("GET", "/admin/v1/policy/candidate", "")))
	same("Change", first(st.ok("GET", "/admin/v1/changes", "")["changes"]))
}

func TestSlowHeadsAndManyConnectionsAreBounded(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	b := &boundedListener{Listener: l, free: make(chan struct{}, 1), closed: make(chan struct{})}
	dial := func() net.Conn {
		c, err := net.Dial("tcp", l.Addr().String())
		require.NoError(t, err)
		return c
	}
	one, two := dial(), dial()
	defer one.Close()
	defer two.Close()
	first, err := b.Accept()
	require.NoError(t, err)
	second := make(chan net.Conn)
	go func() {
		c, _ := b.Accept()
		second <- c
	}()
	require.Len(t, b.free, 1)
	require.NoError(t, first.Close())
	_ = first.Close() // twice gives one place back
	c := <-second
	require.NotNil(t, c)
	require.Len(t, b.free, 1)
	waiting := make(chan error)
	go func() { _, err := b.Accept(); waiting <- err }()
	require.NoError(t, b.Close())
	require.ErrorIs(t, <-waiting, net.ErrClosed)
	require.NoError(t, c.Close())
}

// A code that is not the callers' side's stands in the README of the packages.
func TestCodesAreDocumented(t *testing.T) {
	readme, err := os.ReadFile("../README.md")
	require.NoError(t, err)
	callers, err := os.ReadFile("../openai/error.go")
	require.NoError(t, err)
	source, err := os.ReadFile("answer.go")
	require.NoError(t, err)
	codes := regexp.MustCompile(`(?m)^\t\w+ += "(\w+)"`).FindAllStringSubmatch(string(source), -1)
	require.Greater(t, len(codes), 10)
	for _, code := range codes {
		require.Contains(t, string(readme), "`"+code[1]+"`")
		if !strings.Contains(string(callers), `"`+code[1]+`"`) {
			require.Regexp(t, "(?m)^\\| .*`"+code[1]+"`.* \\| \\d{3} \\|", string(readme), "it has no row of its own")
		}
	}
}

func TestCandidateOfThePolicy(t *testing.T) {
	st := setUp(t, tokens)
	st.token = "tok-operator"
	st.candidate = Candidate{State: CandidateShadow, Path: "next", Mode: "shadow", Revision: "candidate@1", LoadedAt: time.Now(), Report: &trial.Report{}}
	seen := st.ok("GET", "/admin/v1/policy/candidate", "")
	require.Equal(t, "shadow", seen["state"])
	require.Nil(t, seen["promoted"])
	require.Equal(t, st.generation.Policy.ID(), seen["active"])
	require.Equal(t, "candidate@1", st.ok("GET", "/admin/v1/policy", "")["candidate"].(map[string]any)["revision"])
	for _, path := range []string{"/admin/v1/policy/promote", "/admin/v1/policy/rollback"} {
		st.token = "tok-viewer"
		st.refused(403, permissionDenied, "POST", path, "")
		st.token = "tok-operator"
		st.refused(400, invalidRequest, "POST", path, `{"why":"x"}`)
		st.candErr = ErrNoCandidate
		st.refused(404, notFound, "POST", path, "")
		st.candErr = nil
		require.Equal(t, "shadow", st.ok("POST", path, `{"reason":"because"}`)["state"])
		change := st.ok("GET", "/admin/v1/changes", "")["changes"].([]any)[0].(map[string]any)
		require.Equal(t, strings.TrimPrefix(path, "/admin/v1/"), change["what"])
		require.Equal(t, "hands", change["who"])
		require.Equal(t, "because", change["reason"])
		require.Equal(t, "candidate@1", change["after"].(map[string]any)["candidate"])
	}
	st.candErr = ErrInForce
	st.refused(409, candidateInForce, "POST", "/admin/v1/policy/promote", "")
}
