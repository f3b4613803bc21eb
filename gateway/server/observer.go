package server

import (
	"context"
	"time"

	"github.com/interlock-gateway/interlock/gateway/route"
	"github.com/interlock-gateway/interlock/gateway/route/breaker"
	"github.com/interlock-gateway/interlock/gateway/storage"
)

// observer passes on what the routes learnt: to the log, the metrics and the investigations.
type observer struct{ s *Server }

func (o *observer) CircuitChanged(c breaker.Change) {
	o.s.log.Info("circuit", "scope", c.Key.String(), "from", c.From.String(), "to", c.To.String(),
		"open_ms", c.OpenFor.Milliseconds(), "again", c.Again)
}

func (o *observer) IsolationChanged(c route.IsolationChange) {
	o.s.log.Warn("isolation", "account", c.Account, "isolated", c.Isolated, "reason", c.Reason)
}

// Investigate opens an investigation off the request's path.
func (o *observer) Investigate(i route.Investigation) {
	go func() {
		ctx, cancel := context.WithTimeout(o.s.ctx, 10*time.Second)
		defer cancel()
		_, opened, err := o.s.db.OpenInvestigation(ctx, storage.Investigation{
			Kind: i.Kind, Scope: i.Scope, Cause: i.Cause, OpenedAt: i.At,
		})
		switch {
		case err != nil && ctx.Err() == nil:
			o.s.log.Error("an investigation could not be opened", "kind", i.Kind, "scope", i.Scope, "error", err.Error())
		case opened:
			o.s.log.Warn("investigation opened", "kind", i.Kind, "scope", i.Scope, "cause", i.Cause)
		}
	}()
}

func (o *observer) NotStored(err error) {
	o.s.log.Error("an isolation could not be stored: it holds until the next restart only", "error", err.Error())
}
