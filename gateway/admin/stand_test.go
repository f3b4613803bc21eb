package admin

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/interlock-gateway/interlock/gateway/catalog"
	"github.com/interlock-gateway/interlock/gateway/config"
	"github.com/interlock-gateway/interlock/gateway/flow"
	"github.com/interlock-gateway/interlock/gateway/key"
	"github.com/interlock-gateway/interlock/gateway/ledger"
	"github.com/interlock-gateway/interlock/gateway/policy"
	"github.com/interlock-gateway/interlock/gateway/route"
	"github.com/interlock-gateway/interlock/gateway/route/switches"
	"github.com/interlock-gateway/interlock/gateway/storage"
	"github.com/interlock-gateway/interlock/gateway/telemetry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const conf = `
version: 1
providers:
  p: {adapter: openai, base_url: "http://127.0.0.1:1/v1"}
groups:
  - name: g
    channels:
      - {name: c, provider: p, account: acc, credential: sk-canary-0001, models: {org/m: {}, plain: {}}}
      - {name: d, provider: p, credential: sk-canary-0002, models: {plain: {}}}
aliases:
  agent: {version: 1, model: plain}
keys:
  - {name: web, key: caller-canary-1, groups: [g]}
`

const tokens = `
admin:
  token: tok-root
  tokens:
    - {name: eyes, token: tok-viewer, role: viewer}
    - {name: hands, token: tok-operator, role: operator}
    - {name: boss, token: tok-admin, role: admin}
`

// stand is the operators' side on a real listener over a real database.
type stand struct {
	t          *testing.T
	url        string
	db         *storage.DB
	ledger     *ledger.Ledger
	state      *route.State
	generation *flow.Generation
	condition  Condition
	status     PolicyStatus
	candidate  Candidate
	candErr    error // of changing it
	plugins    []Plugin
	reload     func(context.Context) (uint64, []config.Problem, error)
	keysErr    error
	client     http.Client
	token      string
	now        time.Time
}

func setUp(t *testing.T, more string) *stand {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	st := &stand{t: t, now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), condition: Condition{Ready: true}}
	var err error
	st.db, err = storage.Open(ctx, storage.Options{URL: "sqlite:" + filepath.Join(t.TempDir(), "i.db")})
	require.NoError(t, err)
	st.ledger, err = ledger.Open(ctx, ledger.Options{DB: st.db})
	require.NoError(t, err)
	board := switches.NewBoard(st.db)
	require.NoError(t, board.Load(ctx))
	st.state = route.NewState(route.StateOptions{Store: st.db, Switches: board})
	st.build(ctx, conf+more)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	st.url = "http://" + l.Addr().String()
	s := New(Options{
		Metrics: telemetry.NewMetrics(telemetry.Build{}), DB: st.db, Ledger: st.ledger, State: st.state,
		Generation:   func() *flow.Generation { return st.generation },
		Reload:       func(ctx context.Context) (uint64, []config.Problem, error) { return st.reload(ctx) },
		KeysChanged:  st.keysChanged,
		PolicyStatus: func() PolicyStatus { return st.status },
		Candidate:    func() Candidate { return st.candidate },
		Promote:      func(context.Context, string, string) error { return st.candErr },
		RollBack:     func(context.Context, string) error { return st.candErr },
		Plugins:      func() []Plugin { return st.plugins },
		Condition:    func() Condition { return st.condition },
		Version:      "v-test", Now: func() time.Time { return st.now },
	})
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	transport := &http.Transport{}
	st.client = http.Client{Transport: transport, Timeout: 30 * time.Second}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		end, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		require.NoError(t, s.Shutdown(end))
		require.NoError(t, <-ended)
		require.NoError(t, st.state.Flush(end))
		require.NoError(t, st.ledger.Close(end))
		require.NoError(t, st.db.Close())
	})
	return st
}

// build makes a generation by hand, as far as operators see it.
func (st *stand) build(ctx context.Context, yaml string) {
	r := config.Parse([]byte(yaml), "interlock.yaml", config.Env{})
	require.NoError(st.t, r.Err())
	rev, err := policy.Load(ctx, policy.Builtin(), policy.Options{Timeout: 5 * time.Second})
	require.NoError(st.t, err)
	cat := catalog.New(r.Config)
	st.generation = &flow.Generation{Number: 7, Config: r.Config, Catalog: cat, Policy: rev, Table: route.Build(r.Config, cat, st.state)}
	st.generation.Table.Activate(st.now)
	require.NoError(st.t, st.keysChanged(ctx))
}

func (st *stand) keysChanged(ctx context.Context) error {
	if st.keysErr != nil {
		return st.keysErr
	}
	stored, err := st.db.Keys(ctx)
	if err != nil {
		return err
	}
	g := *st.generation
	g.Keys, err = key.NewTable(g.Config.Keys, stored)
	st.generation = &g
	return err
}

type reply struct {
	status int
	header http.Header
	body   string
}

// call sends a request; headers are name, value pairs.
func (st *stand) call(method, path, body string, headers ...string) reply {
	st.t.Helper()
	r, err := http.NewRequest(method, st.url+path, strings.NewReader(body))
	require.NoError(st.t, err)
	if st.token != "" {
		r.Header.Set("Authorization", "Bearer "+st.token)
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
			continue
		}
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := st.client.Do(r)
	require.NoError(st.t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	require.NoError(st.t, err)
	return reply{resp.StatusCode, resp.Header, string(b)}
}

// ok demands a success and decodes it.
func (st *stand) ok(method, path, body string) map[string]any {
	st.t.Helper()
	r := st.call(method, path, body)
	require.Less(st.t, r.status, 300, "%s %s: %s", method, path, r.body)
	require.Equal(st.t, "application/json", r.header.Get("Content-Type"))
	var v map[string]any
	require.NoError(st.t, json.Unmarshal([]byte(r.body), &v))
	return v
}

// refused demands an error of the one shape.
func (st *stand) refused(status int, code, method, path, body string, headers ...string) string {
	st.t.Helper()
	r := st.call(method, path, body, headers...)
	require.Equal(st.t, status, r.status, "%s %s: %s", method, path, r.body)
	var e struct {
		Error struct {
			Message, Type, Code string
			Param               *string
		}
	}
	require.NoError(st.t, json.Unmarshal([]byte(r.body), &e), r.body)
	require.Equal(st.t, code, e.Error.Code, r.body)
	require.NotEmpty(st.t, e.Error.Type)
	require.NotEmpty(st.t, e.Error.Message)
	return e.Error.Message
}

func (st *stand) lastChange() map[string]any {
	st.t.Helper()
	list := st.ok("GET", "/admin/v1/changes?limit=1", "")["changes"].([]any)
	require.Len(st.t, list, 1)
	return list[0].(map[string]any)
}

func fill(path string) string {
	return strings.NewReplacer("{id}", "x", "{kind}", "model", "{name...}", "org%2Fm", "{group}", "g", "{channel}", "c", "{model...}", "org%2Fm").Replace(path)
}
