package server

import (
	"context"
	"path/filepath"
	"sync"

	"github.com/interlock-gateway/interlock/gateway/config"
	"github.com/interlock-gateway/interlock/gateway/telemetry"
	"github.com/interlock-gateway/interlock/gateway/wasm"
)

// Warmed is what became of one plugin in Warm.
type Warmed struct {
	Name, Source string
	SHA256       string // of its module, in hex; "" where there is none
	Version      string
	WasThere     bool // its code was in the cache already
	Err          error
}

// Warm compiles the plugins that a configuration names into the cache that a gateway with that
// configuration uses, several at a time, and tries each as far as its own configuration, which is
// not needed. The result is in the configuration's order. The error says that there is no place
// for a cache.
func Warm(ctx context.Context, cfg *config.Config, log *telemetry.Log) ([]Warmed, error) {
	dir := filepath.Join(cfg.DataDir, "plugins")
	cache, err := wasm.NewCache(filepath.Join(dir, "cache"))
	if err != nil {
		return nil, err
	}
	h := &pluginHost{log: log, dir: dir, cache: cache}
	list := make([]Warmed, len(cfg.Plugins))
	var wg sync.WaitGroup
	for i, c := range cfg.Plugins {
		wg.Go(func() { list[i] = h.warm(ctx, c) })
	}
	wg.Wait()
	return list, nil
}

func (h *pluginHost) warm(ctx context.Context, c config.Plugin) Warmed {
	w := Warmed{Name: c.Name, Source: c.Source}
	module, sidecar, err := h.module(ctx, c)
	if err != nil {
		w.Err = err
		return w
	}
	w.SHA256, w.WasThere = digestOf(module), h.cache.Has(module)
	m, err := wasm.Prepare(ctx, wasm.Options{
		Name: c.Name, Module: module, SHA256: c.SHA256, Manifest: sidecar, Grants: c.Grants,
		Limits: wasm.Limits{Memory: int64(c.Limits.Memory), CallTimeout: c.Limits.CallTimeout},
		Cache:  h.cache, Log: h.log.Logger,
	})
	if err != nil {
		w.Err = err
		return w
	}
	w.Version = m.Version
	return w
}
