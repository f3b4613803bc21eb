package fault

import (
	"bufio"
	"cmp"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	maxHead        = 1 << 20   // bytes of a request's head
	maxRequestBody = 256 << 20 // bytes of a request's body
	connRecords    = 100       // calls of one connection that learn of its end
)

// connection serves one accepted connection.
type connection struct {
	net.Conn // the link, or TLS over it
	provider *Provider
	link     *link
	number   int
	inScript int // connections since the script was set
	state    *state
	records  []*record // under the provider's lock
	unread   bool      // an answer did not wait for its request's body
}

// peerGone is told by the link that the peer has closed.
func (c *connection) peerGone(reset bool) {
	c.provider.mu.Lock()
	defer c.provider.mu.Unlock()
	c.provider.peerClosed(c.records, c.provider.clock.Now(), reset)
}

func (c *connection) serve() {
	err := c.greet()
	if err == nil {
		err = c.calls()
	}
	switch {
	case errors.Is(err, errCutReset):
		c.link.reset(c.provider.closing)
	default:
		if t, ok := c.Conn.(*tls.Conn); ok {
			_ = t.CloseWrite() // close_notify; not sent before the handshake is done
		}
		c.link.finish(c.unread, c.provider.closing)
	}
	<-c.link.pumped
	p := c.provider
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.links, c.link)
	for _, r := range c.records {
		r.connClosed = true
	}
	p.news()
}

// greet does what a connection rule says, then the TLS handshake.
func (c *connection) greet() error {
	if rule := c.provider.pickConnection(c.state, c.inScript); rule != nil {
		x := &exchange{provider: c.provider, conn: c, plan: rule.answer, seed: c.state.script.settings.seed, vars: vars{conn: c.number, name: c.provider.name}}
		for _, s := range rule.steps {
			if err := s.run(x); err != nil {
				return err
			}
		}
	}
	if c.provider.tls == nil {
		return nil
	}
	t := tls.Server(c.link, c.provider.tls)
	if err := t.Handshake(); err != nil {
		return err
	}
	c.Conn = t
	return nil
}

// calls answers requests until the connection is not to be kept.
func (c *connection) calls() error {
	head := &headReader{src: c.Conn}
	in := bufio.NewReader(head)
	for n := 1; ; n++ {
		p := c.provider
		p.mu.Lock()
		st := p.state
		p.mu.Unlock()
		c.link.expireReads(st.script.settings.idle)
		head.left = maxHead
		if _, err := in.Peek(1); err != nil {
			return err
		}
		c.link.expireReads(0)
		req, err := http.ReadRequest(in)
		head.left = -1
		rec := &record{call: Call{Conn: c.number, ConnCall: n}}
		if err != nil {
			return c.malformed(rec, err)
		}
		keep, err := c.call(req, in, rec)
		if err != nil || !keep {
			return err
		}
		p.keeps(rec)
	}
}

// headReader limits how much one request's head may take.
type headReader struct {
	src  io.Reader
	left int // -1: no limit
}

var errHeadTooLarge = errors.New("fault: the request's head is larger than 1 MiB")

func (h *headReader) Read(p []byte) (int, error) {
	if h.left == 0 {
		return 0, errHeadTooLarge
	}
	if h.left > 0 && len(p) > h.left {
		p = p[:h.left]
	}
	n, err := h.src.Read(p)
	if h.left > 0 {
		h.left -= n
	}
	return n, err
}

// remember records a call and ties it to this connection.
func (c *connection) remember(r *record) (st *state, inScript int) {
	p := c.provider
	p.mu.Lock()
	st = p.state
	if len(c.records) == connRecords {
		c.records = c.records[1:]
	}
	c.records = append(c.records, r)
	p.mu.Unlock()
	return st, p.began(r, st)
}

// malformed records a request that could not be read.
func (c *connection) malformed(r *record, cause error) error {
	c.remember(r)
	if c.link.isGone() {
		c.provider.ended(r, EndPeerClosed)
		return cause
	}
	n, _ := io.WriteString(c.Conn, "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
	c.provider.wrote(r, n)
	c.provider.ended(r, EndBadRequest)
	return cause
}

// call answers one request.
func (c *connection) call(req *http.Request, in *bufio.Reader, rec *record) (keep bool, err error) {
	rec.call.Method, rec.call.Path, rec.call.Host = req.Method, req.RequestURI, req.Host
	rec.call.Header = req.Header
	st, inScript := c.remember(rec)
	r := &request{endpoint: st.script.settings.dialect.endpointOf(req.URL.Path), method: req.Method, path: req.URL.Path, header: req.Header}
	rule := c.provider.pick(st, r, inScript, true)
	var length int64
	if rule == nil {
		if err := c.readBody(req, r, rec); err != nil {
			return false, err
		}
		length = int64(len(r.body))
	}
	r.asked = st.script.settings.dialect.asked(r.path, r.body)
	if r.endpoint == endpointResponses {
		r.asked.choices = 1 // it has no n
	}
	x := c.exchange(st, r, rec)
	if refused := x.admit(); !refused && rule == nil {
		rule = c.provider.pick(st, r, inScript, false)
	}
	where := x.follow(rule)
	c.provider.readWhole(rec, where, r.asked, r.body[:min(len(r.body), c.provider.maxBody)], length)
	err = x.perform()
	c.provider.ended(rec, endOf(err))
	c.unread = x.plan.readHead && req.ContentLength != 0
	return !x.closeAfter && !req.Close && !c.unread, err
}

func endOf(err error) End {
	switch {
	case err == nil:
		return EndCompleted
	case errors.Is(err, errCutFin):
		return EndCutFin
	case errors.Is(err, errCutReset):
		return EndCutReset
	case errors.Is(err, ErrClosed):
		return EndProviderClosed
	default:
		return EndPeerClosed
	}
}

// readBody reads the request's body whole.
func (c *connection) readBody(req *http.Request, r *request, rec *record) error {
	if strings.EqualFold(req.Header.Get("Expect"), "100-continue") {
		if _, err := io.WriteString(c.Conn, "HTTP/1.1 100 Continue\r\n\r\n"); err != nil {
			c.provider.ended(rec, endOf(c.ending(err)))
			return err
		}
	}
	body, err := io.ReadAll(io.LimitReader(req.Body, maxRequestBody+1))
	r.body = body
	switch {
	case err == nil && len(body) <= maxRequestBody:
		return nil
	case err != nil && (c.link.isGone() || c.provider.isClosing()):
		c.provider.ended(rec, endOf(c.ending(err)))
	default:
		c.provider.ended(rec, EndBadRequest)
	}
	if err == nil {
		err = errors.New("fault: the request's body is larger than 256 MiB")
	}
	return err
}

// exchange prepares the answer to a call.
func (c *connection) exchange(st *state, r *request, rec *record) *exchange {
	set := st.script.settings
	x := &exchange{provider: c.provider, conn: c, record: rec, request: r, script: st.script, plan: newPlan(), seed: set.seed}
	x.vars = vars{model: r.asked.model, name: c.provider.name, call: rec.call.Number, conn: c.number, created: set.created}
	if set.created < 0 {
		x.vars.created = firstCreated + int64(rec.call.Number)
	}
	return x
}

// firstCreated is the Unix time that made-up creation times count from.
const firstCreated = 1_700_000_000

// follow takes a rule over into the exchange and names it.
func (x *exchange) follow(rule *rule) string {
	where := ""
	if rule != nil {
		x.plan, x.steps = rule.answer, rule.steps
		where = x.script.name + ":" + strconv.Itoa(rule.line)
	}
	if x.plan.created >= 0 {
		x.vars.created = x.plan.created
	}
	x.speakAs(cmp.Or(x.plan.id, x.script.settings.id), cmp.Or(x.plan.model, x.script.settings.model))
	return where
}

// speakAs gives the answer its id and model and the endpoint's voice.
func (x *exchange) speakAs(id, model *template) {
	prefix := map[endpoint]string{endpointChat: "chatcmpl-", endpointResponses: "resp_", endpointCompletions: "cmpl-", endpointModerations: "modr-"}[x.request.endpoint]
	x.vars.id = prefix + x.provider.name + "-" + strconv.Itoa(x.vars.call)
	if id != nil {
		x.vars.id = id.render(x.vars)
	}
	who := identity{id: x.vars.id, created: x.vars.created, model: x.vars.model}
	if model != nil {
		who.model = model.render(x.vars)
	}
	x.identity = who
	if d := x.script.settings.dialect; d != nil {
		x.voice = d.voice(who)
		return
	}
	x.voice = newVoice(x.request.endpoint, who)
}

func newVoice(e endpoint, who identity) voice {
	switch e {
	case endpointResponses:
		return &responseVoice{identity: who}
	case endpointCompletions:
		return &completionVoice{identity: who}
	default:
		return &chatVoice{identity: who}
	}
}

// wait waits d, or until the peer or the provider ends the connection.
func (c *connection) wait(d time.Duration) error {
	if d <= 0 {
		return nil
	}
	fired, stop := c.provider.clock.After(d)
	defer stop()
	select {
	case <-fired:
		return nil
	case <-c.link.gone:
		return errPeerGone
	case <-c.provider.closing:
		return ErrClosed
	}
}

func (c *connection) stall() error {
	select {
	case <-c.link.gone:
		return errPeerGone
	case <-c.provider.closing:
		return ErrClosed
	}
}

// ending says whose doing a broken read or write was.
func (c *connection) ending(error) error {
	if c.provider.isClosing() {
		return ErrClosed
	}
	return errPeerGone
}
