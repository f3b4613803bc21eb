package server

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/gateway/fault"
	"github.com/interlock-gateway/interlock/gateway/storage"
	"github.com/interlock-gateway/interlock/gateway/telemetry"
)

// callersKey is the caller's key of every stand; a configuration refers to it as {{key}}.
const callersKey = "ilk-stand-0123456789"

// stand is a running gateway on loopback with scripted providers behind it. In its
// configuration {{url NAME}} is the base URL of a provider and {{key}} the caller's key.
type stand struct {
	*Server
	t         *testing.T
	dir       string
	path      string
	providers map[string]*fault.Provider
	client    *http.Client
	logs      *lockedBuffer
	stop      context.CancelFunc
	ended     chan error
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// setUp starts the providers, by name, with their fault scripts, and then the gateway.
func setUp(t *testing.T, scripts map[string]string, yaml string) *stand {
	t.Helper()
	return setUpIn(t, t.TempDir(), scripts, yaml)
}

// setUpIn does so in a folder that holds something already.
func setUpIn(t *testing.T, dir string, scripts map[string]string, yaml string) *stand {
	t.Helper()
	st := &stand{t: t, dir: dir, providers: map[string]*fault.Provider{}, logs: &lockedBuffer{}}
	for name, text := range scripts {
		st.addProvider(name, text)
	}
	st.path = filepath.Join(st.dir, "interlock.yaml")
	st.configure(yaml)
	st.begin()
	return st
}

func (st *stand) addProvider(name, text string) *fault.Provider {
	st.t.Helper()
	p, err := fault.Start(fault.Options{Name: name, Script: parse(st.t, name, text)})
	require.NoError(st.t, err)
	st.t.Cleanup(func() { _ = p.Close() })
	st.providers[name] = p
	return p
}

func parse(t *testing.T, name, text string) *fault.Script {
	t.Helper()
	script, errs := fault.Parse(name+".fault", text)
	require.Empty(t, errs)
	return script
}

// configure writes the configuration file, with its placeholders filled in.
func (st *stand) configure(yaml string) {
	st.t.Helper()
	for name, p := range st.providers {
		yaml = strings.ReplaceAll(yaml, "{{url "+name+"}}", p.URL())
	}
	yaml = strings.ReplaceAll(yaml, "{{key}}", callersKey)
	yaml = strings.ReplaceAll(yaml, "{{dir}}", st.dir)
	if !strings.Contains(yaml, "listen:") {
		yaml = "listen: {address: 127.0.0.1:0, drain_delay: 0s}\n" + yaml
	}
	if !strings.Contains(yaml, "admin:") {
		yaml = "admin: {listen: 127.0.0.1:0}\n" + yaml
	}
	require.NotContains(st.t, yaml, "{{", "a placeholder without a provider")
	require.NoError(st.t, os.WriteFile(st.path, []byte(yaml), 0o600))
}

// begin starts the gateway on the stand's file.
func (st *stand) begin() {
	st.t.Helper()
	log, err := telemetry.NewLog(telemetry.LogOptions{Output: st.logs, Level: "debug"})
	require.NoError(st.t, err)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	st.Server, err = New(ctx, Options{Path: st.path, Log: log})
	require.NoError(st.t, err)
	var running context.Context
	running, st.stop = context.WithCancel(context.Background())
	st.ended = make(chan error, 1)
	s := st.Server
	go func() { st.ended <- s.Run(running, nil) }()
	transport := &http.Transport{DisableCompression: true}
	st.client = &http.Client{Transport: transport}
	st.t.Cleanup(func() { transport.CloseIdleConnections(); st.end(); _ = log.Close() })
}

// end stops the gateway and waits for it. It may be called again.
func (st *stand) end() {
	st.stop()
	select {
	case err := <-st.ended:
		st.ended <- nil
		require.NoError(st.t, err)
	case <-time.After(30 * time.Second):
		st.t.Error("the gateway did not stop")
	}
}

// answer is what a caller saw.
type answer struct {
	Status int
	Header http.Header
	Body   string
	Err    error // of reading the body
}

// ID is the request's ID.
func (a *answer) ID() string { return a.Header.Get("x-request-id") }

// errorCode is error.code of an error's body, "" if it is none.
func (a *answer) errorCode() string {
	var e struct {
		Error struct {
			Code string `json:"code"`
		} `json:"error"`
	}
	_ = json.Unmarshal([]byte(a.Body), &e)
	return e.Error.Code
}

// post calls the gateway as a caller would; headers are name, value pairs.
func (st *stand) post(ctx context.Context, path, body string, headers ...string) (*answer, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+st.Addr().String()+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+callersKey)
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := st.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return &answer{Status: resp.StatusCode, Header: resp.Header, Body: string(b), Err: err}, nil
}

// chat posts to /v1/chat/completions and fails the test if no answer comes within 30 s.
func (st *stand) chat(body string, headers ...string) *answer {
	st.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	a, err := st.post(ctx, "/v1/chat/completions", body, headers...)
	require.NoError(st.t, err)
	return a
}

// record reads the caller's own ledger record of a request.
func (st *stand) record(id string) *record {
	st.t.Helper()
	return st.recordOf(id, "Bearer "+callersKey)
}

// recordOf reads the record of a request that was made with that Authorization.
func (st *stand) recordOf(id, authorization string) *record {
	st.t.Helper()
	req, err := http.NewRequest(http.MethodGet, "http://"+st.Addr().String()+"/interlock/v1/requests/"+id, nil)
	require.NoError(st.t, err)
	req.Header.Set("Authorization", authorization)
	resp, err := st.client.Do(req)
	require.NoError(st.t, err)
	defer resp.Body.Close()
	require.Equal(st.t, 200, resp.StatusCode)
	r := &record{}
	require.NoError(st.t, json.NewDecoder(resp.Body).Decode(r))
	return r
}

// record is the part of the ledger's JSON that tests look at.
type record struct {
	RequestID string  `json:"request_id"`
	Terminal  string  `json:"terminal"`
	Status    int     `json:"status"`
	Cause     *string `json:"cause"`
	Answered  *string `json:"answered_model"`
	Usage     *struct {
		Input     *int64 `json:"input_tokens"`
		Output    *int64 `json:"output_tokens"`
		Estimated bool   `json:"estimated"`
	} `json:"usage"`
	OutputStarted bool `json:"output_started"`
	Attempts      []struct {
		Number        int      `json:"number"`
		Cause         string   `json:"cause"`
		Group         string   `json:"group"`
		Channel       string   `json:"channel"`
		Model         string   `json:"model"`
		UpstreamModel string   `json:"upstream_model"`
		Reason        string   `json:"reason"`
		DelayMS       int64    `json:"delay_ms"`
		Circuit       string   `json:"circuit"`
		Status        *int     `json:"status"`
		Class         string   `json:"class"`
		Phase         string   `json:"phase"`
		OutputStarted bool     `json:"output_started"`
		Cancelled     bool     `json:"cancelled"`
		Cost          *float64 `json:"cost_usd"`
		Billable      string   `json:"billable"`
		Skipped       int      `json:"skipped_events"`
		RetryAfterMS  *int64   `json:"retry_after_ms"`
		Terminal      string   `json:"terminal"`
	} `json:"attempts"`
	Decisions []struct {
		Attempt  *int            `json:"attempt"`
		Point    string          `json:"point"`
		Input    json.RawMessage `json:"input"`
		Output   json.RawMessage `json:"output"`
		Revision string          `json:"revision"`
	} `json:"decisions"`
}

// switchOff sets a kill switch.
func (st *stand) switchOff(kind, name string) {
	st.t.Helper()
	_, err := st.state.Switches().Put(st.t.Context(), storage.Switch{Kind: kind, Name: name, Reason: "test", Who: "test"},
		st.gateway.Generation().Table, time.Now())
	require.NoError(st.t, err)
}
