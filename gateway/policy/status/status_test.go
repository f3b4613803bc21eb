package status

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/open-policy-agent/opa/v1/ast"
	opastatus "github.com/open-policy-agent/opa/v1/plugins/status"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/interlock-gateway/interlock/gateway/policy"
	"github.com/interlock-gateway/interlock/gateway/policy/peer"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A collector of OPA's reads what is reported; it has to be shown a token. What a bundle has wrong
// is in the form that OPA gives its own faults.
func TestAStockCollectorReadsIt(t *testing.T) {
	bodies := make(chan string, 10)
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		if r.Header.Get("Authorization") != "Bearer collector-canary" || r.Method+r.URL.Path != "POST/tenant/status" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		bodies <- string(b)
	}))
	defer collector.Close()
	at := time.Date(2026, 5, 4, 3, 2, 1, 0, time.UTC)
	now := make(chan Report, 1)
	give := func(err error) {
		select {
		case <-now:
		default:
		}
		now <- Report{
			Bundles: []Bundle{{Name: "team", Revision: "team@7-0123", Request: at.Add(2), Answered: at.Add(1), Downloaded: at, Activated: at, Size: 9, Err: err}},
			Plugins: map[string]Plugin{"bundle": {State: "OK"}},
		}
	}
	give(nil)
	file := filepath.Join(t.TempDir(), "status.log")
	r, err := Open(Options{
		URL: collector.URL + "/tenant", Peer: peer.Options{Token: "collector-canary"}, File: file, Instance: "gw-1", Version: "v1",
		Log: slog.New(slog.DiscardHandler), Report: func() Report { v := <-now; now <- v; return v },
	})
	require.NoError(t, err)
	r.Changed()
	var got opastatus.UpdateRequestV1
	strict := json.NewDecoder(strings.NewReader(<-bodies))
	strict.DisallowUnknownFields()
	require.NoError(t, strict.Decode(&got))
	require.Equal(t, map[string]string{"app": "interlock", "id": "gw-1", "version": "v1"}, got.Labels)
	b := got.Bundles["team"]
	require.Equal(t, []any{"team", "team@7-0123", 9, "snapshot", ""}, []any{b.Name, b.ActiveRevision, b.Size, b.Type, b.Code})
	require.Equal(t, []time.Time{at.Add(2), at.Add(1), at, at}, []time.Time{b.LastRequest, b.LastSuccessfulRequest, b.LastSuccessfulDownload, b.LastSuccessfulActivation})
	require.EqualValues(t, "OK", got.Plugins["bundle"].State)

	give(errors.New("the server does not answer"))
	r.Changed()
	got = opastatus.UpdateRequestV1{}
	require.NoError(t, json.Unmarshal([]byte(<-bodies), &got))
	require.Equal(t, "bundle_error", got.Bundles["team"].Code)
	require.Equal(t, "the server does not answer", got.Bundles["team"].Message)

	give(fmt.Errorf("refused: %w", policy.Errors{{File: "a.rego", Line: 3, Column: 5, Message: "undefined ref"}}))
	r.Changed()
	var raw struct {
		Bundles map[string]struct{ Errors json.RawMessage }
	}
	require.NoError(t, json.Unmarshal([]byte(<-bodies), &raw))
	theirs, err := json.Marshal([]error{&ast.Error{Code: "bundle_error", Message: "undefined ref", Location: ast.NewLocation(nil, "a.rego", 3, 5)}})
	require.NoError(t, err)
	require.JSONEq(t, string(theirs), string(raw.Bundles["team"].Errors))

	r.Changed() // nothing new
	require.NoError(t, r.Close(context.Background()))
	require.Empty(t, bodies)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, 3, strings.Count(string(text), "\n"))
	require.NotContains(t, string(text), "canary")
}
