package fault

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// Options configure a provider.
type Options struct {
	Script  *Script     // nil: a healthy provider
	Addr    string      // default "127.0.0.1:0"
	TLS     *tls.Config // nil: plain HTTP/1.1
	Name    string      // in ids and the default text; default "provider"
	Clock   Clock       // nil: the wall clock
	MaxBody int         // bytes of each request body kept in Call.Body; default 64 KiB
}

const defaultMaxBody = 64 << 10

// Provider is a running scripted provider. All methods may be called from any
// goroutine.
type Provider struct {
	name     string
	clock    Clock
	maxBody  int
	tls      *tls.Config
	listener net.Listener
	closing  chan struct{}
	closed   sync.Once
	finished chan struct{} // closed when every goroutine has ended
	finish   sync.Once
	running  sync.WaitGroup

	mu       sync.Mutex
	state    *state
	journal  journal
	links    map[*link]struct{}
	accepted int
	waiting  int
	changed  chan struct{} // closed and replaced when a waiter may find news
}

// state is one script's life in one provider.
type state struct {
	script *Script
	since  time.Time
	calls  int
	conns  int
	spent  []spent
}

// Start listens and serves until Close.
func Start(o Options) (*Provider, error) {
	p := &Provider{
		name: o.Name, clock: o.Clock, maxBody: o.MaxBody,
		closing: make(chan struct{}), finished: make(chan struct{}), changed: make(chan struct{}),
		links: map[*link]struct{}{},
	}
	if p.name == "" {
		p.name = "provider"
	}
	if p.clock == nil {
		p.clock = wallClock{}
	}
	if p.maxBody <= 0 {
		p.maxBody = defaultMaxBody
	}
	if o.Addr == "" {
		o.Addr = "127.0.0.1:0"
	}
	if o.TLS != nil {
		p.tls = o.TLS.Clone()
		if len(p.tls.NextProtos) == 0 {
			p.tls.NextProtos = []string{"http/1.1"}
		}
	}
	p.SetScript(o.Script)
	listener, err := net.Listen("tcp", o.Addr)
	if err != nil {
		return nil, fmt.Errorf("fault: provider %s: %w", p.name, err)
	}
	p.listener = listener
	p.running.Add(1)
	go p.accept()
	return p, nil
}

// URL is "http://127.0.0.1:PORT", or https with TLS; no path, no final slash.
// The OpenAI base URL is URL() + "/v1".
func (p *Provider) URL() string {
	if p.tls != nil {
		return "https://" + p.Addr()
	}
	return "http://" + p.Addr()
}

// Addr is "host:port" as listened on.
func (p *Provider) Addr() string { return p.listener.Addr().String() }

// Name is Options.Name.
func (p *Provider) Name() string { return p.name }

// Calls are the requests read so far in the order of their numbers: the last
// 10,000 of them.
func (p *Provider) Calls() []Call {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.journal.calls()
}

// Count is how many requests were read since Start, malformed ones included.
func (p *Provider) Count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.journal.count
}

// Connections are how many connections are open and how many were accepted.
func (p *Provider) Connections() (open, accepted int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.links), p.accepted
}

// WaitCalls waits until at least n requests were read whole, or ended before,
// and returns the calls. The error is the context's, or ErrClosed.
func (p *Provider) WaitCalls(ctx context.Context, n int) ([]Call, error) {
	var calls []Call
	err := p.await(ctx, func() bool {
		if p.journal.read < n {
			return false
		}
		calls = p.journal.calls()
		return true
	})
	return calls, err
}

// WaitEnd waits until the call with that number has ended.
func (p *Provider) WaitEnd(ctx context.Context, number int) (Call, error) {
	return p.awaitCall(ctx, number, func(r *record) bool { return r.call.End != EndRunning })
}

// WaitStalled waits until the script stalls the call with that number, or it
// has ended.
func (p *Provider) WaitStalled(ctx context.Context, number int) (Call, error) {
	return p.awaitCall(ctx, number, func(r *record) bool { return r.call.Stalled || r.call.End != EndRunning })
}

// WaitClosed waits until the connection of the call with that number is
// closed, by the peer, by the script or by Close.
func (p *Provider) WaitClosed(ctx context.Context, number int) (Call, error) {
	return p.awaitCall(ctx, number, func(r *record) bool { return r.connClosed })
}

func (p *Provider) awaitCall(ctx context.Context, number int, ready func(*record) bool) (Call, error) {
	var call Call
	err := p.await(ctx, func() bool {
		r := p.journal.find(number)
		if r == nil || !ready(r) {
			return false
		}
		call = r.call
		return true
	})
	if err != nil {
		return call, fmt.Errorf("fault: provider %s, call %d: %w", p.name, number, err)
	}
	return call, nil
}

// await waits until ready, which is called under the lock, is true.
func (p *Provider) await(ctx context.Context, ready func() bool) error {
	for {
		p.mu.Lock()
		done := ready()
		changed := p.changed
		if !done {
			p.waiting++
		}
		p.mu.Unlock()
		if done {
			return nil
		}
		err := waitFor(ctx, changed, p.finished)
		p.mu.Lock()
		p.waiting--
		done = err != nil && ready()
		p.mu.Unlock()
		if done {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func waitFor(ctx context.Context, changed, finished <-chan struct{}) error {
	select {
	case <-changed:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-finished:
		return ErrClosed
	}
}

// news wakes the waits. The lock is held.
func (p *Provider) news() {
	if p.waiting > 0 {
		close(p.changed)
		p.changed = make(chan struct{})
	}
}

// SetScript replaces the script: calls already begun go on under the old one,
// budgets and "for" clocks of the new one start at zero. nil is healthy.
func (p *Provider) SetScript(s *Script) {
	if s == nil {
		s = healthyScript
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state = &state{script: s, since: p.clock.Now(), spent: make([]spent, len(s.rules))}
}

// Close stops listening, cuts every connection and returns when all goroutines
// have ended, at most a few seconds later.
func (p *Provider) Close() error {
	var err error
	p.closed.Do(func() {
		close(p.closing)
		err = p.listener.Close()
		p.mu.Lock()
		for l := range p.links {
			_ = l.Close()
		}
		p.mu.Unlock()
	})
	p.running.Wait()
	p.finish.Do(func() { close(p.finished) })
	return err
}

func (p *Provider) isClosing() bool {
	select {
	case <-p.closing:
		return true
	default:
		return false
	}
}

func (p *Provider) accept() {
	defer p.running.Done()
	for {
		c, err := p.listener.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) || p.isClosing() {
				return
			}
			select { // out of descriptors, or the peer left first
			case <-p.closing:
				return
			case <-time.After(hangupPeriod):
			}
			continue
		}
		p.open(c)
	}
}

func (p *Provider) open(c net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.isClosing() {
		_ = c.Close()
		return
	}
	p.accepted++
	conn := &connection{provider: p, number: p.accepted, state: p.state}
	p.state.conns++
	conn.inScript = p.state.conns
	conn.link = newLink(c, conn.peerGone)
	conn.Conn = conn.link
	p.links[conn.link] = struct{}{}
	p.running.Add(2)
	go func() {
		defer p.running.Done()
		conn.link.pump()
	}()
	go func() {
		defer p.running.Done()
		conn.serve()
	}()
}

// pick chooses the first rule that takes a call. early decides before the
// request's body is read, and only for a rule that does not wait for it.
func (p *Provider) pick(st *state, r *request, call int, early bool) *rule {
	p.mu.Lock()
	defer p.mu.Unlock()
	m := moment{call: call, now: p.clock.Now(), since: st.since, seed: st.script.settings.seed}
	for i := range st.script.rules {
		rule := &st.script.rules[i]
		m.rule = i
		if rule.connection || !rule.match.takesHead(r) || !rule.limit.open(st.spent[i], m) {
			continue
		}
		if early && !rule.answer.readHead {
			return nil
		}
		if !early && !rule.match.takesBody(r) {
			continue
		}
		if rule.limit.take(&st.spent[i], m) {
			return rule
		}
	}
	return nil
}

// pickConnection chooses the first rule that takes a connection.
func (p *Provider) pickConnection(st *state, connection int) *rule {
	p.mu.Lock()
	defer p.mu.Unlock()
	m := moment{call: connection, now: p.clock.Now(), since: st.since, seed: st.script.settings.seed}
	for i := range st.script.rules {
		m.rule = i
		if st.script.rules[i].connection && st.script.rules[i].limit.take(&st.spent[i], m) {
			return &st.script.rules[i]
		}
	}
	return nil
}
