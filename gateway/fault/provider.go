package fault

import (
	"context"
	"crypto/tls"
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

// Provider is a running scripted provider. All methods may be called from any
// goroutine.
type Provider struct{}

// Start listens and serves until Close.
func Start(o Options) (*Provider, error) { panic("not yet") }

// URL is "http://127.0.0.1:PORT", or https with TLS; no path, no final slash.
// The OpenAI base URL is URL() + "/v1".
func (p *Provider) URL() string { panic("not yet") }

// Addr is "host:port" as listened on.
func (p *Provider) Addr() string { panic("not yet") }

// Name is Options.Name.
func (p *Provider) Name() string { panic("not yet") }

// Calls are the requests read so far in the order of their numbers: the last
// 10,000 of them.
func (p *Provider) Calls() []Call { panic("not yet") }

// Count is how many requests were read since Start, malformed ones included.
func (p *Provider) Count() int { panic("not yet") }

// Connections are how many connections are open and how many were accepted.
func (p *Provider) Connections() (open, accepted int) { panic("not yet") }

// WaitCalls waits until at least n requests were read and returns the calls.
// The error is the context's, or ErrClosed.
func (p *Provider) WaitCalls(ctx context.Context, n int) ([]Call, error) { panic("not yet") }

// WaitEnd waits until the call with that number has ended.
func (p *Provider) WaitEnd(ctx context.Context, number int) (Call, error) { panic("not yet") }

// WaitClosed waits until the connection of the call with that number is
// closed, by the peer, by the script or by Close.
func (p *Provider) WaitClosed(ctx context.Context, number int) (Call, error) { panic("not yet") }

// SetScript replaces the script: calls already begun go on under the old one,
// budgets and "for" clocks of the new one start at zero. nil is healthy.
func (p *Provider) SetScript(s *Script) { panic("not yet") }

// Close stops listening, cuts every connection and returns when all goroutines
// have ended, at most a few seconds later.
func (p *Provider) Close() error { panic("not yet") }
