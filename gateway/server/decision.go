package server

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/interlock-gateway/interlock/gateway/config"
	"github.com/interlock-gateway/interlock/gateway/telemetry"
)

// decisionFiles are the files that policy decisions are logged to. One stays open until the
// server stops: requests of an older generation may still write to it.
type decisionFiles struct {
	mu   sync.Mutex
	open map[string]*decisionFile
}

type decisionFile struct {
	file *os.File
	log  *telemetry.Log
}

// of returns the logs that a configuration asks for.
func (d *decisionFiles) of(s *Server, cfg *config.Config) ([]*telemetry.Log, error) {
	var logs []*telemetry.Log
	if cfg.Policy.DecisionLog.Console {
		logs = append(logs, s.log)
	}
	path := cfg.Policy.DecisionLog.File
	if path == "" {
		return logs, nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if f := d.open[path]; f != nil {
		return append(logs, f.log), nil
	}
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("policy.decision_log.file: %w", err)
	}
	log, err := telemetry.NewLog(telemetry.LogOptions{Output: file})
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	if d.open == nil {
		d.open = map[string]*decisionFile{}
	}
	d.open[path] = &decisionFile{file, log}
	return append(logs, log), nil
}

func (d *decisionFiles) close() (err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, f := range d.open {
		err = errors.Join(err, f.log.Close(), f.file.Close())
	}
	d.open = nil
	return err
}
