package server

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/gateway/fault"
)

// course is what is tried in each world while the failing provider fails for ever, a letter for
// each attempt: i initial, r same-route retry, f same-contract fallback, s model substitution.
type course struct {
	equal      string // another channel serves the same model
	lone       string // nothing else does
	approved   string // an approved substitute does
	unapproved string // a substitute is listed, but the policy does not approve it
}

// courses are decisions.md's table for an idempotent request.
var courses = map[string]course{
	"client_invalid":      {"i", "i", "i", "i"},
	"context_overflow":    {"i", "i", "is", "i"},
	"gateway_denied":      {"i", "i", "i", "i"},
	"upstream_auth":       {"if", "i", "is", "i"},
	"model_unavailable":   {"if", "i", "is", "i"},
	"network":             {"irf", "ir", "irs", "ir"},
	"timeout":             {"if", "ir", "is", "ir"},
	"rate_limited":        {"if", "ir", "irs", "ir"},
	"overloaded":          {"if", "ir", "irs", "ir"},
	"server_error":        {"if", "ir", "irs", "ir"},
	"malformed_answer":    {"if", "i", "is", "i"},
	"empty_completion":    {"if", "i", "is", "i"},
	"schema_invalid":      {"i", "i", "i", "i"}, // no route here is verified for the schema
	"refusal":             {"i", "i", "i", "i"},
	"content_filtered":    {"i", "i", "i", "i"},
	"cancelled":           {"i", "i", "i", "i"},
	"partial_stream":      {"i", "i", "i", "i"},
	"side_effect_unknown": {"i", "i", "i", "i"},
	"unknown":             {"i", "i", "i", "i"},
}

var worlds = []string{"equal", "lone", "approved", "unapproved"}

func (c course) in(world string) string {
	return map[string]string{"equal": c.equal, "lone": c.lone, "approved": c.approved, "unapproved": c.unapproved}[world]
}

// surelyNotProcessed are the classes that may be replayed whatever the side effects.
var surelyNotProcessed = []string{"rate_limited", "upstream_auth", "model_unavailable"}

// telling is one story in one world: what one caller lives through.
type telling struct {
	*failing
	name       string // of its group and its key
	provider   string // the one that fails
	world      string
	idempotent bool
	stream     bool
}

// TestTheDefaultMatrixThroughTheGateway tells every story of the matrix over real sockets: what
// the caller sees, which attempts and decisions the ledger keeps, and how often each provider
// was called. Every telling has channels of its own, so that no health is shared.
func TestTheDefaultMatrixThroughTheGateway(t *testing.T) {
	t.Parallel()
	for class := range courses {
		t.Run(class, func(t *testing.T) {
			t.Parallel()
			st, tellings := tellAll(t, class)
			for _, tl := range tellings {
				t.Run(tl.title(), func(t *testing.T) {
					t.Parallel()
					own := *st
					own.t = t
					tl.run(&own)
				})
			}
		})
	}
}

func (tl *telling) title() string {
	side := "idempotent"
	if !tl.idempotent {
		side = "possible"
	}
	mode := "whole"
	if tl.stream {
		mode = "stream"
	}
	return strings.Join([]string{tl.phase, tl.provider, tl.world, side, mode}, "/")
}

// tellAll starts a gateway for the stories of one class.
func tellAll(t *testing.T, class string) (*stand, []*telling) {
	t.Helper()
	scripts := map[string]string{"well": "healthy \"well\" usage 7 2\n"}
	var tellings []*telling
	providers, groups, keys := "", "", ""
	declared := map[string]any{}
	for i := range failings {
		f := &failings[i]
		if strings.Fields(f.cell())[0] != class {
			continue
		}
		p := fmt.Sprintf("p%d", i)
		scripts[p] = f.script()
		url := "{{url " + p + "}}/v1"
		if f.reached != "" {
			url = strings.ReplaceAll(f.reached, "{{tls}}", "{{tls "+p+"}}/v1")
		}
		providers += "  " + p + ": {adapter: openai, base_url: \"" + url + "\"}\n"
		if f.declared {
			declared[p] = map[string]any{"codes": map[string]string{"declared": strings.Fields(f.cell())[0]}}
		}
		for _, tl := range f.tellings(p) {
			tellings = append(tellings, tl)
			groups += tl.group()
			keys += fmt.Sprintf("  - {name: %s, key: %q, groups: [%s]}\n", tl.name, tl.key(), tl.name)
		}
	}
	yaml := "providers:\n  well: {adapter: openai, base_url: \"{{url well}}/v1\"}\n" + providers + matrixYAML +
		"groups:\n" + groups + "keys:\n" + keys
	dir := policyDir(t)
	overrides, err := json.Marshal(map[string]any{
		"providers": declared, "labels": map[string]any{},
		"aliases": map[string]any{"held": map[string]string{"substitution": "deny"}},
	})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "interlock", "overrides", "data.json"), overrides, 0o600))
	st := &stand{t: t, dir: t.TempDir(), providers: map[string]*fault.Provider{}, logs: &lockedBuffer{}}
	for name, text := range scripts {
		st.addProvider(name, text)
	}
	for name, p := range st.providers { // what speaks TLS to a plain port is not understood there
		yaml = strings.ReplaceAll(yaml, "{{tls "+name+"}}", "https"+strings.TrimPrefix(p.URL(), "http"))
	}
	st.path = filepath.Join(st.dir, "interlock.yaml")
	st.configure(yaml + "policy: {bundles: [{name: own, path: \"" + dir + "\"}]}\n")
	st.begin()
	return st, tellings
}

const matrixYAML = `
watch: false
models:
  m: {context_window: 8192, max_output_tokens: 4096, modalities: [text], capabilities: [streaming, json_schema], price: {input: 1, output: 4}}
  n: {context_window: 128000, max_output_tokens: 8192, modalities: [text], capabilities: [streaming, json_schema], price: {input: 2, output: 8}}
budgets:
  interactive: {deadline: 60s, backoff: {base: 1ms, max: 5ms}}
breaker: {consecutive_failures: 0, failure_ratio: 0}
aliases:
  agent: {model: m, cross_model_fallback_allowed: true, substitutes: [{model: n, price_ceiling: {input: 3, output: 9}}]}
  held: {model: m, cross_model_fallback_allowed: true, substitutes: [{model: n, price_ceiling: {input: 3, output: 9}}]}
`

// script is what the failing provider does.
func (f *failing) script() string {
	rule := func(head, fault string) string {
		if fault == "" {
			return ""
		}
		return "on " + head + "\n  " + fault + "\n"
	}
	switch {
	case f.declared && f.phase == "before_headers":
		return rule("chat", "status 400 code declared")
	case f.declared:
		return rule("chat", inside("declared"))
	case f.onConnection != "":
		return rule("connection", f.onConnection)
	}
	return rule("chat stream", f.stream) + rule("chat json", f.whole) + rule("chat", f.fault)
}

// tellings are the story in every world, with side effects and without, as a stream and whole.
func (f *failing) tellings(provider string) (all []*telling) {
	for _, world := range worlds {
		for _, idempotent := range []bool{true, false} {
			for _, stream := range []bool{true, false} {
				if !stream && (f.phase == "after_output" || f.fault == "" && f.whole == "" && f.stream != "") {
					continue // of a whole answer nothing is out before its end
				}
				all = append(all, &telling{
					failing: f, provider: provider, world: world, idempotent: idempotent, stream: stream,
					name: fmt.Sprintf("%s-%s-%t-%t", provider, world, idempotent, stream),
				})
			}
		}
	}
	return all
}

func (tl *telling) key() string { return "ilk-matrix-" + tl.name }

func (tl *telling) credential(channel string) string { return "sk-" + tl.name + "-" + channel }

// group is the telling's own group: its channels, and their health, are nobody else's.
func (tl *telling) group() string {
	clocks := ""
	if tl.clock != "" {
		clocks = ", timeouts: {" + tl.clock + ": 250ms}"
	}
	line := func(channel, provider, model, more string) string {
		return fmt.Sprintf("      - {name: %s, provider: %s, credential: %s, models: {%s: {}}%s}\n",
			channel, provider, tl.credential(channel), model, more)
	}
	text := "  - name: " + tl.name + "\n    channels:\n" + line("a", tl.provider, "m", ", priority: 1"+clocks)
	switch tl.world {
	case "equal":
		text += line("b", "well", "m", ", priority: 2")
	case "approved", "unapproved":
		text += line("s", "well", "n", "")
	}
	return text
}

// course is what has to be tried.
func (tl *telling) course() string {
	if tl.phase == "after_output" {
		return "i"
	}
	c := courses[tl.class]
	switch {
	case tl.idempotent:
		return c.in(tl.world)
	case !tl.notSent && !slices.Contains(surelyNotProcessed, tl.class):
		return "i"
	case tl.world == "approved":
		return c.unapproved // no other model where something may happen twice
	default:
		return c.in(tl.world)
	}
}

var acts = map[byte]string{'i': "initial", 'r': "same_route_retry", 'f': "same_contract_fallback", 's': "model_substitution"}

// end is how the request has to end: the ledger's terminal reason, the status and the error code.
func (tl *telling) end() (terminal string, status int, code string) {
	course := tl.course()
	switch last := course[len(course)-1]; {
	case last == 'f' || last == 's':
		return "success", 200, ""
	case tl.leaves && tl.phase == "after_output":
		return "cancelled", 200, ""
	case tl.leaves:
		return "cancelled", 499, ""
	case tl.phase == "after_output":
		return "partial", 200, "partial_stream"
	}
	switch tl.class {
	case "client_invalid":
		return "policy_stop", 400, "invalid_value"
	case "context_overflow":
		return "policy_stop", 400, "context_length_exceeded"
	case "content_filtered":
		return "policy_stop", 400, tl.filter()
	case "unknown":
		if tl.declared && tl.phase == "before_output" { // without a status that rejects anything
			return "policy_stop", 502, "outcome_unknown"
		}
		return "policy_stop", 502, "upstream_rejected"
	}
	switch {
	case !tl.idempotent && !tl.notSent && !slices.Contains(surelyNotProcessed, tl.class):
		return "policy_stop", 502, "outcome_unknown"
	case tl.class == "rate_limited":
		return "exhausted", 429, "routes_exhausted"
	case slices.Contains([]string{"gateway_denied", "side_effect_unknown", "partial_stream"}, tl.class):
		return "policy_stop", 502, "routes_exhausted"
	default:
		return "exhausted", 502, "routes_exhausted"
	}
}

func (tl *telling) filter() string {
	if strings.Contains(tl.fault, "content_policy_violation") {
		return "content_policy_violation"
	}
	return "content_filter"
}

func (tl *telling) body() string {
	model := map[string]string{"equal": "m", "lone": "m", "approved": "agent", "unapproved": "held"}[tl.world]
	format := ""
	if tl.structured {
		format = `,"response_format":{"type":"json_schema","json_schema":{"name":"p","strict":true,"schema":{"type":"object",` +
			`"properties":{"city":{"type":"string"}},"required":["city"],"additionalProperties":false}}}`
	}
	return fmt.Sprintf(`{"model":%q,"stream":%t,"messages":[{"role":"user","content":"hi"}]%s}`, model, tl.stream, format)
}

func (tl *telling) run(st *stand) {
	t := st.t
	ctx, leave := context.WithTimeout(t.Context(), time.Minute)
	defer leave()
	headers := []string{"Authorization", "Bearer " + tl.key(), "Content-Type", "application/json", "interlock-side-effects", "none"}
	if !tl.idempotent {
		headers[5] = "possible"
	}
	if tl.structured {
		headers = append(headers, "interlock-release", "buffered")
	}
	if tl.leaves {
		tl.leave(ctx, leave, st, headers)
	} else {
		a, err := st.post(ctx, "/v1/chat/completions", tl.body(), headers...)
		require.NoError(t, err)
		require.NoError(t, a.Err)
		tl.requireSeen(t, a)
	}
	tl.requireKept(t, st.kept(tl.name))
	tl.requireCalls(st)
}

// leave asks and goes away: once the provider stalls its call, or once some output has come.
func (tl *telling) leave(ctx context.Context, gone func(), st *stand, headers []string) {
	st.t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+st.Addr().String()+"/v1/chat/completions", strings.NewReader(tl.body()))
	require.NoError(st.t, err)
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	if tl.phase == "after_output" {
		resp, err := st.client.Do(req)
		require.NoError(st.t, err)
		defer resp.Body.Close()
		lines := bufio.NewScanner(resp.Body)
		for lines.Scan() && !strings.Contains(lines.Text(), "one ") {
		}
		require.NoError(st.t, lines.Err())
		gone()
		return
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if resp, err := st.client.Do(req); err == nil {
			_ = resp.Body.Close()
		}
	}()
	require.Eventually(st.t, func() bool {
		return slices.ContainsFunc(st.providers[tl.provider].Calls(), func(c fault.Call) bool {
			return tl.made(c, "a") && c.Stalled
		})
	}, 20*time.Second, 2*time.Millisecond)
	gone()
	<-ended
}

// requireSeen demands what the caller saw.
func (tl *telling) requireSeen(t *testing.T, a *answer) {
	t.Helper()
	_, status, code := tl.end()
	course := tl.course()
	require.Equal(t, status, a.Status, a.Body)
	last := course[len(course)-1]
	switch {
	case code == "partial_stream":
		require.Contains(t, a.Body, "one ", "what had come is passed on")
		require.Contains(t, a.Body, `"code":"partial_stream"`)
		require.NotContains(t, a.Body, "[DONE]")
		require.NotContains(t, a.Body, `"finish_reason":"`)
		return
	case status != 200:
		require.Equal(t, code, a.errorCode(), a.Body)
		require.Equal(t, fmt.Sprint(len(course)), a.Header.Get("interlock-attempts"))
		require.Equal(t, fmt.Sprint(status == 429), a.Header.Get("x-should-retry"))
		return
	}
	require.Contains(t, a.Body, "well")
	require.NotContains(t, a.Body, `"error":`)
	require.Equal(t, acts[last], a.Header.Get("interlock-cause"))
	require.Equal(t, fmt.Sprint(len(course)), a.Header.Get("interlock-attempts"))
	if last != 's' {
		require.Equal(t, "m", a.Header.Get("interlock-model"))
		require.Empty(t, a.Header.Get("interlock-substitution"))
		return
	}
	require.Equal(t, "n", a.Header.Get("interlock-model"))
	require.Equal(t, "m", a.Header.Get("interlock-requested-model"))
	require.Equal(t, "approved; reason="+tl.class, a.Header.Get("interlock-substitution"))
	require.Contains(t, a.Body, `"interlock":{"requested_model":"m","cause":"model_substitution","reason":"`+tl.class+`"}`)
}

// requireKept demands what the ledger keeps: attempts with their causes, and why each was made.
func (tl *telling) requireKept(t *testing.T, r *record) {
	t.Helper()
	course := tl.course()
	want, got := []string{}, []string{}
	for i := range len(course) {
		switch course[i] {
		case 'f':
			want = append(want, acts['f']+" b m success")
		case 's':
			want = append(want, acts['s']+" s n success")
		default:
			want = append(want, acts[course[i]]+" a m "+tl.attemptEnd()+" "+tl.class+" "+tl.phase)
		}
	}
	for _, a := range r.Attempts {
		line := a.Cause + " " + a.Channel + " " + a.Model + " " + a.Terminal
		if a.Class != "" {
			line += " " + a.Class + " " + a.Phase
		}
		got = append(got, line)
	}
	require.Equal(t, want, got)
	terminal, status, _ := tl.end()
	require.Equal(t, terminal, r.Terminal)
	require.Equal(t, status, r.Status)
	require.Equal(t, tl.phase == "after_output" || terminal == "success", r.OutputStarted)
	if tl.leaves || tl.phase == "after_output" {
		require.Empty(t, r.decided(t, "replay"), "there is nothing to decide")
		return
	}
	for i, d := range r.decided(t, "replay") { // each failure brings the next attempt, or the stop
		next := "stop"
		if i+1 < len(course) {
			next = acts[course[i+1]]
		}
		require.Equal(t, next, d.Actions[0])
	}
	require.Len(t, r.decided(t, "replay"), strings.Count(course, "i")+strings.Count(course, "r"))
	for _, d := range r.decided(t, "failure") {
		require.Equal(t, tl.says(), d.Class)
	}
	if tl.idempotent && strings.HasSuffix(courses[tl.class].approved, "s") && strings.HasSuffix(tl.world, "approved") {
		said := r.decided(t, "substitution")
		require.NotEmpty(t, said, "a substitute that can be reached is asked for")
		for _, d := range said {
			require.Equal(t, tl.world == "approved", d.Approve)
		}
	}
}

// says is the class that the policy gives.
func (tl *telling) says() string {
	if tl.declared {
		return strings.Fields(tl.cell())[0]
	}
	return tl.class
}

func (tl *telling) attemptEnd() string {
	switch {
	case tl.leaves:
		return "cancelled"
	case tl.phase == "after_output":
		return "partial"
	default:
		return "failed"
	}
}

// requireCalls demands that the providers were called as often as the ledger says.
func (tl *telling) requireCalls(st *stand) {
	st.t.Helper()
	course := tl.course()
	want := map[string]int{
		"a": strings.Count(course, "i") + strings.Count(course, "r"), "b": strings.Count(course, "f"), "s": strings.Count(course, "s"),
	}
	if tl.notSent {
		want["a"] = 0
	}
	got := map[string]int{}
	for channel := range want {
		got[channel] = 0
		p := "well"
		if channel == "a" {
			p = tl.provider
		}
		for _, c := range st.providers[p].Calls() {
			if tl.made(c, channel) {
				got[channel]++
			}
		}
	}
	require.Equal(st.t, want, got, "upstream calls")
}

// made says whether the call came from this telling's channel.
func (tl *telling) made(c fault.Call, channel string) bool {
	return c.Header.Get("Authorization") == "Bearer "+tl.credential(channel)
}

// said is what one decision of the ledger came to.
type said struct {
	Actions []string `json:"actions"`
	Class   string   `json:"class"`
	Approve bool     `json:"approve"`
}

// decided are the decisions of one point, in order.
func (r *record) decided(t *testing.T, point string) (all []said) {
	t.Helper()
	for _, d := range r.Decisions {
		if d.Point == point {
			var s said
			require.NoError(t, json.Unmarshal(d.Output, &s))
			all = append(all, s)
		}
	}
	return all
}

// kept is the one request that a key made, as operators see it, once it has ended.
func (st *stand) kept(key string) *record {
	st.t.Helper()
	var page struct {
		Requests []record `json:"requests"`
	}
	require.Eventually(st.t, func() bool {
		page.Requests = nil
		st.admin("GET", "/admin/v1/requests?key="+key, "", &page)
		return len(page.Requests) == 1 && page.Requests[0].Terminal != ""
	}, 20*time.Second, 5*time.Millisecond)
	r := &record{}
	st.admin("GET", "/admin/v1/requests/"+page.Requests[0].RequestID, "", r)
	return r
}

// admin calls the operators' API and decodes what it says.
func (st *stand) admin(method, path, body string, into any) (status int) {
	st.t.Helper()
	req, err := http.NewRequest(method, "http://"+st.AdminAddr().String()+path, strings.NewReader(body))
	require.NoError(st.t, err)
	req.Header.Set("Content-Type", "application/json")
	resp, err := st.client.Do(req)
	require.NoError(st.t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	require.NoError(st.t, err)
	if into != nil {
		require.NoError(st.t, json.Unmarshal(b, into), "%s", b)
	}
	return resp.StatusCode
}
