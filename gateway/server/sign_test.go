package server

import (
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/gateway/sigv4"
)

// The signature is made of what really goes out, after the adapter has shaped it, and the keys
// themselves go nowhere.
func TestSignedRequests(t *testing.T) {
	t.Parallel()
	type seen struct {
		line, host, body string
		header           http.Header
	}
	got := make(chan seen, 1)
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		got <- seen{r.RequestURI, r.Host, string(b), r.Header}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"output":{"message":{"role":"assistant","content":[{"text":"hello"}]}},"stopReason":"end_turn","usage":{"inputTokens":3,"outputTokens":2,"totalTokens":5}}`)
	}))
	t.Cleanup(upstream.Close)
	const secret, token = "canary/secret+key0123456789", "canary-session-token"
	st := setUp(t, nil, `
providers: {aws: {adapter: "native:bedrock", base_url: "`+upstream.URL+`/below", auth: aws_sigv4}}
groups: [{name: all, channels: [{name: one, provider: aws, region: eu-west-1, credential: "AKIDEXAMPLE:`+secret+`:`+token+`", models: {claude: {upstream_model: "anthropic.claude-v1:0"}}}]}]
keys: [{name: caller, key: "{{key}}", groups: [all]}]
`)
	a := st.chat(`{"model":"claude","messages":[{"role":"user","content":"hi"}]}`)
	require.Equal(t, 200, a.Status, a.Body)
	require.Contains(t, a.Body, `"content":"hello"`)
	s := <-got
	require.Equal(t, "/below/model/anthropic.claude-v1%3A0/converse", s.line)
	at, err := time.Parse("20060102T150405Z", s.header.Get("X-Amz-Date"))
	require.NoError(t, err)
	require.WithinDuration(t, time.Now(), at, time.Minute)
	require.Equal(t, token, s.header.Get("X-Amz-Security-Token"))

	c, err := sigv4.ParseCredential("AKIDEXAMPLE:" + secret + ":" + token)
	require.NoError(t, err)
	signer, err := sigv4.New(c, "eu-west-1", "bedrock")
	require.NoError(t, err)
	want := sigv4.Sign(nil, signer, &sigv4.Request{Method: "POST", Host: s.host, Path: s.line, Body: sha256.Sum256([]byte(s.body)), Time: at},
		[]sigv4.Field{{Name: "content-type", Value: s.header.Get("Content-Type")}})
	require.Equal(t, want[len(want)-1].Value, s.header.Get("Authorization"))
	require.NotContains(t, fmt.Sprint(s), secret)
	require.NotContains(t, st.logs.String(), "canary")
	require.NotContains(t, a.Body, "canary")
	require.False(t, strings.Contains(fmt.Sprint(st.record(a.ID())), "canary"))
}
