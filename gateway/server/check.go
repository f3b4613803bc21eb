package server

import (
	"github.com/interlock-gateway/interlock/gateway/config"
	"github.com/interlock-gateway/interlock/gateway/upstream"
)

// CheckProviders finds what a start would find wrong with the way to each provider: its URL,
// its certificates, its proxy. Nothing is dialled.
func CheckProviders(cfg *config.Config) map[string]error {
	wrong := map[string]error{}
	for name, p := range cfg.Providers {
		if !p.Served() {
			continue
		}
		target, err := targetOf(&p, "")
		if err == nil {
			var pool *upstream.Pool
			if pool, err = upstream.NewPool(upstream.Options{Target: target}); err == nil {
				pool.Close()
			}
		}
		if err != nil {
			wrong[name] = err
		}
	}
	return wrong
}
