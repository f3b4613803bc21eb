package downstream

import (
	"io"
	"time"

	"github.com/interlock-gateway/interlock/gateway/flow"
	"github.com/interlock-gateway/interlock/gateway/openai"
)

// gateway is the data plane as the front sees it. Package flow documents the methods.
type gateway interface {
	Authenticate(flow.Head) (*flow.Caller, *openai.Error)
	Begin(*flow.Caller, openai.Endpoint, flow.Head, []byte, time.Time) exchange
	Models(*flow.Caller) *flow.Reply
	Model(c *flow.Caller, id string) (*flow.Reply, *openai.Error)
	RequestByID(c *flow.Caller, id string) (*flow.Reply, *openai.Error)
	DrainNow()
}

// exchange is one request's life as the front sees it.
type exchange interface {
	Run() *flow.Reply
	WriteTo(io.Writer) (int64, error)
	PeerGone()
	Close()
}

// live is the running gateway.
type live struct{ *flow.Gateway }

func (l live) Begin(c *flow.Caller, e openai.Endpoint, h flow.Head, body []byte, received time.Time) exchange {
	return l.Gateway.Begin(c, e, h, body, received)
}

var (
	_ gateway  = live{}
	_ exchange = (*flow.Exchange)(nil)
)
