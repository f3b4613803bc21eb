package server

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"

	"github.com/interlock-gateway/interlock/gateway/config"
	"github.com/interlock-gateway/interlock/gateway/policy/decisionlog"
	"github.com/interlock-gateway/interlock/gateway/policy/peer"
)

// decisionLogs is the decision log in use, and those that requests of older generations may
// still write to.
type decisionLogs struct {
	instance string // of this process, in every event

	mu      sync.Mutex
	current *decisionlog.Log // nil: decisions are not logged
	as      config.DecisionLog
	open    map[*decisionlog.Log]bool
}

func newDecisionLogs() *decisionLogs {
	return &decisionLogs{instance: rand.Text(), open: map[*decisionlog.Log]bool{}}
}

// of returns the log that a configuration asks for, nil where it asks for none: the one in use
// where that is the same.
func (d *decisionLogs) of(s *Server, cfg *config.Config) (*decisionlog.Log, error) {
	want := cfg.Policy.DecisionLog
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.as == want {
		return d.current, nil
	}
	if want == (config.DecisionLog{}) {
		return nil, nil
	}
	o := decisionlog.Options{
		File: want.File, URL: want.URL, Instance: d.instance, Version: s.options.Version,
		Peer: peer.Options{Token: want.Token.Reveal(), ClientCert: want.ClientCert, ClientKey: want.ClientKey, CAFile: want.CAFile},
		Log:  s.log.Logger, Dropped: s.metrics.CountDroppedDecisions,
	}
	if want.Console {
		o.Console = s.log.Logger
	}
	log, err := decisionlog.Open(o)
	if err != nil {
		return nil, fmt.Errorf("policy.decision_log: %w", err)
	}
	d.open[log] = true
	return log, nil
}

// swap makes log the one in use. The one before is closed once no request can write to it.
func (d *decisionLogs) swap(log *decisionlog.Log, cfg *config.Config, drained func() <-chan struct{}) {
	d.mu.Lock()
	before := d.current
	d.current, d.as = log, cfg.Policy.DecisionLog
	d.mu.Unlock()
	if before == nil || before == log {
		return
	}
	over := drained()
	go func() {
		<-over
		d.mu.Lock()
		delete(d.open, before)
		d.mu.Unlock()
		_ = before.Close(context.Background()) // its losses are told
	}()
}

// forget closes a log that was opened for a generation that is not used.
func (d *decisionLogs) forget(log *decisionlog.Log) {
	d.mu.Lock()
	used := log == nil || log == d.current
	if !used {
		delete(d.open, log)
	}
	d.mu.Unlock()
	if !used {
		_ = log.Close(context.Background()) // nothing is in it
	}
}

func (d *decisionLogs) close(ctx context.Context) (err error) {
	d.mu.Lock()
	open := d.open
	d.open, d.current = map[*decisionlog.Log]bool{}, nil
	d.mu.Unlock()
	for log := range open {
		err = errors.Join(err, log.Close(ctx))
	}
	return err
}
