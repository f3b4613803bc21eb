package admin

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/interlock-gateway/interlock/gateway/route"
	"github.com/interlock-gateway/interlock/gateway/route/breaker"
)

func (s *Server) health(w http.ResponseWriter, _ *call) error {
	return writeJSON(w, http.StatusOK, struct {
		Status  string  `json:"status"`
		Version *string `json:"version"`
	}{"ok", textOrNull(s.Version)})
}

// ready says whether new callers should be sent here. What is degraded does not take a
// gateway out: the others share most of it, and would all be out.
func (s *Server) ready(w http.ResponseWriter, _ *call) error {
	c := s.Condition()
	status, word := http.StatusOK, "ready"
	switch {
	case c.Draining:
		status, word = http.StatusServiceUnavailable, "draining"
	case !c.Ready:
		status, word = http.StatusServiceUnavailable, "not_ready"
	}
	if c.Degraded == nil {
		c.Degraded = map[string]string{}
	}
	return writeJSON(w, status, struct {
		Status     string            `json:"status"`
		Generation uint64            `json:"generation"`
		Degraded   map[string]string `json:"degraded"`
	}{word, s.Generation().Number, c.Degraded})
}

func (s *Server) document(w http.ResponseWriter, _ *call) error {
	return write(w, http.StatusOK, "application/json", s.OpenAPI)
}

// shownKinds are the kinds of investigations that a gauge exists for: one that has none open
// any more goes to 0.
type shownKinds struct {
	mu    sync.Mutex
	kinds map[string]bool
}

// refreshTimeout bounds what a scrape waits for the storage. Beyond it the figures of the
// scrape before stand.
const refreshTimeout = 2 * time.Second

// showMetrics serves the metrics. What is a state, not a count, is read at the scrape.
func (s *Server) showMetrics(w http.ResponseWriter, c *call) error {
	if _, err := c.query(); err != nil {
		return err
	}
	s.Metrics.SetLedgerQueue(s.Ledger.Status().Queued)
	s.showCircuits()
	s.showInvestigations(c.Context())
	s.metrics.ServeHTTP(w, c.Request)
	return nil
}

func (s *Server) showCircuits() {
	s.Metrics.ShowCircuits(func(show func(group, channel, model, state string)) {
		s.Generation().Table.Circuits(s.Now(), func(group, channel, model string, st breaker.State) {
			show(group, channel, model, st.String())
		})
	})
}

func (s *Server) showInvestigations(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, refreshTimeout)
	defer cancel()
	list, err := s.DB.Investigations(ctx, true)
	if err != nil {
		s.log.Warn("open investigations could not be counted", "error", err.Error())
		return
	}
	open := map[string]int{}
	for i := range list {
		open[list[i].Kind]++
	}
	s.shown.mu.Lock()
	defer s.shown.mu.Unlock()
	if s.shown.kinds == nil {
		s.shown.kinds = map[string]bool{route.IsolatedAccount: true, route.CircuitReopened: true}
	}
	for kind := range open {
		s.shown.kinds[kind] = true
	}
	for kind := range s.shown.kinds {
		s.Metrics.SetInvestigations(kind, open[kind])
	}
}
