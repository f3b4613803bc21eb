package admin

import (
	"context"
	"net"
	"net/http"
	"time"

	"github.com/interlock-gateway/interlock/gateway/config"
	"github.com/interlock-gateway/interlock/gateway/flow"
	"github.com/interlock-gateway/interlock/gateway/ledger"
	"github.com/interlock-gateway/interlock/gateway/route"
	"github.com/interlock-gateway/interlock/gateway/storage"
	"github.com/interlock-gateway/interlock/gateway/telemetry"
)

var OpenAPI []byte

type (
	PolicyStatus struct {
		Revision, Source string
		LoadedAt         time.Time
		LastError        string
		LastErrorAt      time.Time
	}
	Condition struct {
		Ready, Draining bool
		Degraded        map[string]string
	}
	Options struct {
		Log          *telemetry.Log
		Metrics      *telemetry.Metrics
		DB           *storage.DB
		Ledger       *ledger.Ledger
		State        *route.State
		Generation   func() *flow.Generation
		Reload       func(context.Context) (uint64, []config.Problem, error)
		KeysChanged  func(context.Context) error
		PolicyStatus func() PolicyStatus
		Condition    func() Condition
		OpenAPI      []byte
		Version      string
		Now          func() time.Time
	}
	Server struct{ h http.Server }
)

func New(o Options) *Server                        { return &Server{h: http.Server{Handler: o.Metrics.Handler()}} }
func (s *Server) Serve(l net.Listener) error       { return s.h.Serve(l) }
func (s *Server) Shutdown(c context.Context) error { return s.h.Shutdown(c) }
