package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	interlock "github.com/interlock-gateway/interlock/sdk/go"
	sdkjson "github.com/interlock-gateway/interlock/sdk/go/json"
)

// Run checks a plugin in a test.
func Run(t T, p Plugin, fixtures []Fixture) {
	t.Helper()
	r := Check(context.Background(), p, fixtures)
	for _, f := range r.Findings {
		t.Errorf("%s", f)
	}
	t.Logf("%d fixtures, %d calls", r.Fixtures, r.Calls)
}

// Check runs every check and reports what is wrong. It ends early, without a finding, when ctx is
// cancelled.
func Check(ctx context.Context, p Plugin, fixtures []Fixture) *Report {
	c := &checker{ctx: ctx, plugin: p, report: &Report{Fixtures: len(fixtures)}, answers: map[string]bool{}}
	c.at("", "manifest")
	if !c.readManifest() {
		return c.report
	}
	c.config()
	c.open = c.opened("the configuration {}", []byte("{}"))
	if c.open == nil && len(fixtures) > 0 {
		c.open = c.opened("the first fixture's configuration", fixtures[0].config)
	}
	if c.open == nil {
		c.found("it cannot be opened")
		return c.report
	}
	c.describe()
	c.unknown()
	for i := range fixtures {
		c.fixture(&fixtures[i])
	}
	c.hostile(fixtures)
	return c.report
}

type checker struct {
	ctx      context.Context
	plugin   Plugin
	manifest manifest
	report   *Report
	open     Caller
	answers  map[string]bool // the operations that there are; the manifest may name fewer

	fixtureName, check string
}

// at says what is looked at from here on.
func (c *checker) at(fixture, check string) {
	c.fixtureName, c.check = fixture, check
	c.report.looked(fixture, check)
}

// found notes a finding; the same one again adds nothing.
func (c *checker) found(format string, args ...any) {
	f := Finding{c.fixtureName, c.check, fmt.Sprintf(format, args...)}
	if !slices.Contains(c.report.Findings, f) && len(c.report.Findings) < 200 {
		c.report.Findings = append(c.report.Findings, f)
	}
}

// call makes a call; ok is false when there was no result, which is a finding.
func (c *checker) call(to Caller, op uint32, in []byte) (out []byte, failed, ok bool) {
	if c.ctx.Err() != nil {
		return nil, false, false
	}
	c.report.Calls++
	out, failed, err := to.Call(op, in, nil)
	if err != nil {
		c.found("operation %d has no result: %v", op, err)
		return nil, false, false
	}
	return out, failed, true
}

// ask makes a call of which an error must be one of the codes; e is nil when there was none.
func (c *checker) ask(to Caller, op uint32, in []byte, codes ...string) (out []byte, e *interlock.Error, ok bool) {
	out, failed, ok := c.call(to, op, in)
	if !ok || !failed {
		return out, nil, ok
	}
	err := decodeError(out)
	if !errors.As(err, &e) {
		c.found("operation %d: %v", op, err)
		return nil, nil, false
	}
	if !slices.Contains(codes, e.Code) {
		c.found("operation %d fails with %v", op, e)
		return nil, nil, false
	}
	return nil, e, true
}

func (c *checker) readManifest() bool {
	if err := json.Unmarshal(c.plugin.Manifest, &c.manifest); err != nil {
		c.found("it is not a manifest: %v", err)
		return false
	}
	m := &c.manifest
	if m.Name == "" || m.Version == "" {
		c.found("name or version is missing")
	}
	if m.ABI != "1.0" {
		c.found("abi is %q", m.ABI)
	}
	if m.Kind != "adapter" && m.Kind != "guard" {
		c.found("kind is %q", m.Kind)
	}
	if len(m.Operations) == 0 {
		c.found("there are no operations")
	}
	for _, o := range m.Operations {
		if _, ok := operations[o]; !ok {
			c.found("there is no operation %q", o)
		}
	}
	for _, h := range m.RequestHeaders {
		if h != strings.ToLower(h) {
			c.found("the header %q is not in lower case", h)
		}
	}
	return true
}

// opened opens the plugin and says nothing when its own error refuses the configuration.
func (c *checker) opened(what string, config []byte) Caller {
	to, err := c.plugin.Open(config)
	var e *interlock.Error
	if err != nil && !errors.As(err, &e) {
		c.found("%s: %v", what, err)
	}
	if err != nil {
		return nil
	}
	return to
}

func (c *checker) config() {
	c.at("", "configure")
	refuse := []string{`{"a":`, `[1]`, `7`}
	if more := c.manifest.ConfigSchema.AdditionalProperties; more != nil && string(*more) == "false" {
		refuse = append(refuse, `{"no_plugin_has_this_key":1}`)
	}
	for _, config := range refuse {
		to, err := c.plugin.Open([]byte(config))
		var e *interlock.Error
		switch {
		case err == nil:
			c.found("accepts %s", config)
			_ = to
		case !errors.As(err, &e) || e.Code != interlock.CodeConfig:
			c.found("refuses %s with %v, which is no error of the code config", config, err)
		}
	}
	if _, err := c.plugin.Open([]byte(strings.Repeat("[", 100_000))); err == nil {
		c.found("accepts a configuration nested without end")
	}
}

func (c *checker) describe() {
	c.at("", "describe")
	out, e, ok := c.ask(c.open, interlock.OpDescribe, defaultContext().encode(""))
	if !ok || e != nil {
		return
	}
	r := interlock.NewReader(out)
	if said := r.Bytes(); !r.OK() || same(c.plugin.Manifest, said) != "" {
		c.found("is not the manifest: %s", same(c.plugin.Manifest, said))
	}
}

func (c *checker) unknown() {
	c.at("", "operations")
	ctx := defaultContext()
	answer := ctx.answer("", &providerAnswer{status: 200, body: []byte("{}")})
	guard := ctx.guard(&subject{Labels: json.RawMessage("{}")})
	guardBody := guard
	guardBody.Str("{}")
	guardEvents := guard
	guardEvents.Str("")
	appendFrames(&guardEvents, nil, false)
	inputs := map[string][]byte{
		"request": ctx.request([]byte("{}")), "response": answer, "events": ctx.events("", nil, false), "classify": answer,
		"guard_request": guardBody, "guard_response": guardBody, "guard_events": guardEvents,
	}
	for name, op := range operations {
		out, failed, ok := c.call(c.open, op, inputs[name])
		if !ok {
			continue
		}
		var e *interlock.Error
		unsupported := failed && errors.As(decodeError(out), &e) && e.Code == interlock.CodeUnsupported
		if c.answers[name] = !unsupported; unsupported && c.manifest.has(name) {
			c.found("%s is unsupported, which is not what the manifest says", name)
		}
	}
	for _, op := range []uint32{9, 10, 255, 1 << 16, 1<<31 - 1} {
		out, failed, ok := c.call(c.open, op, ctx.encode(""))
		if !ok {
			continue
		}
		var e *interlock.Error
		if !failed || !errors.As(decodeError(out), &e) || e.Code != interlock.CodeUnsupported {
			c.found("operation %d is not answered with the error unsupported", op)
		}
	}
}

// checkFailure holds a failure to the ABI.
func (c *checker) checkFailure(f *interlock.Failure) {
	switch f.Class {
	case "", interlock.ClientInvalid, interlock.ContextOverflow, interlock.ContentFiltered, interlock.RateLimited,
		interlock.Overloaded, interlock.ServerError, interlock.Timeout, interlock.UpstreamAuth,
		interlock.ModelUnavailable, interlock.MalformedAnswer:
	default:
		c.found("there is no class %q", f.Class)
	}
}

func (c *checker) checkState(state string) {
	if len(state) > c.manifest.maxState() {
		c.found("a state of %d bytes; the manifest says %d", len(state), c.manifest.maxState())
	}
}

// hopByHop are headers that no plugin may set.
var forbiddenHeaders = []string{
	"host", "content-length", "content-type", "transfer-encoding", "connection", "authorization", "proxy-authorization", "cookie",
}

func (c *checker) checkRequest(q *providerRequest) {
	if q.kind != 0 {
		c.found("kind is %d", q.kind)
	}
	switch q.method {
	case "POST", "GET", "PUT", "PATCH", "DELETE":
	default:
		c.found("the method is %q", q.method)
	}
	if !strings.HasPrefix(q.path, "/") || strings.HasPrefix(q.path, "//") || strings.ContainsAny(q.path, "\\#") || hasControl(q.path) || strings.Contains(q.path, " ") {
		c.found("the path is %q", q.path)
	}
	for _, part := range strings.Split(strings.SplitN(q.path, "?", 2)[0], "/") {
		if p := strings.ReplaceAll(strings.ToLower(part), "%2e", "."); p == ".." || p == "." {
			c.found("the path leaves its place: %q", q.path)
		}
	}
	for _, h := range q.header {
		if !slices.Contains(c.manifest.RequestHeaders, h.Name) || slices.Contains(forbiddenHeaders, h.Name) {
			c.found("a header that the manifest does not declare, or nobody may set: %q", h.Name)
		}
		if hasControl(h.Value) {
			c.found("a control character in the header %s", h.Name)
		}
	}
	if hasControl(q.contentType) {
		c.found("a control character in the content type")
	}
	if q.framing > 4 {
		c.found("framing is %d", q.framing)
	}
	c.checkState(q.state)
	if strings.HasPrefix(q.contentType, "application/json") && !sdkjson.Valid([]byte(q.body)) {
		c.found("the body is not JSON: %.300q", q.body)
	}
}

func hasControl(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return r < 0x20 || r == 0x7f })
}
