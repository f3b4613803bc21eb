package server

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/gateway/config"
	"github.com/interlock-gateway/interlock/gateway/telemetry"
)

// A module behind a URL is the one that the configuration pins, is kept on disk, and is tried
// again where it was out of reach.
func TestFetchedPlugins(t *testing.T) {
	t.Parallel()
	if testing.Short() || raceDetector { // ten times slower to compile
		t.Skip("it builds a guest with the Go toolchain")
	}
	module, err := watchman()
	require.NoError(t, err)
	var status, asked atomic.Int64
	status.Store(503)
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.WriteHeader(int(status.Load()))
		if status.Load() == 200 {
			_, _ = w.Write(module)
		}
	}))
	t.Cleanup(srv.Close)
	log, err := telemetry.NewLog(telemetry.LogOptions{Output: &lockedBuffer{}})
	require.NoError(t, err)
	t.Cleanup(func() { _ = log.Close() })
	dir := t.TempDir()
	host := func() *pluginHost {
		h, err := newPluginHost(log, telemetry.NewMetrics(telemetry.Build{}), dir)
		require.NoError(t, err)
		h.client = srv.Client()
		t.Cleanup(func() { h.close(t.Context()) })
		return h
	}
	load := func(h *pluginHost, digest string) *plugin {
		cfg := &config.Config{Plugins: []config.Plugin{{
			Name: "far", Source: srv.URL + "/far.wasm", SHA256: digest,
			Limits: config.PluginLimits{Memory: 32 << 20, CallTimeout: 100 * time.Millisecond},
		}}}
		set := h.of(t.Context(), cfg)
		h.swap(set, func() <-chan struct{} { return closedChannel() })
		return set.byName["far"]
	}
	h := host()
	p := load(h, digestOf(module))
	require.Nil(t, p.loaded)
	require.ErrorContains(t, p.err, "status 503")
	require.True(t, h.wants())

	status.Store(200)
	p = load(h, digestOf(bytes.Repeat([]byte("x"), 10)))
	require.ErrorContains(t, p.err, "the configuration pins")
	p = load(h, digestOf(module))
	require.NoError(t, p.err)
	require.NotNil(t, p.loaded)
	require.False(t, h.wants())

	before := asked.Load()
	status.Store(503)
	require.NotNil(t, load(host(), digestOf(module)).loaded, "another start has it from disk")
	require.Equal(t, before, asked.Load())
}

func closedChannel() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

func TestRetriesOfPlugins(t *testing.T) {
	t.Parallel()
	var r retry
	now := time.Unix(0, 0)
	require.False(t, r.due(now, false))
	var at []int
	for s := range 60 {
		if r.due(now.Add(time.Duration(s)*time.Second), true) {
			at = append(at, s)
		}
	}
	require.Equal(t, []int{5, 15, 35}, at)
	require.False(t, r.due(now, false))
	require.False(t, r.due(now.Add(time.Hour), true), "it begins anew")
}
