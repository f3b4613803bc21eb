package server

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// speakers are the recorded providers whose wire format is OpenAI's.
var speakers = []string{
	"openai", "azure", "groq", "mistral", "deepseek", "xai", "openrouter", "perplexity",
	"zai", "huggingface", "together", "cerebras", "gpustack", "avian",
}

var recordedPaths = map[string]string{
	"chat.completions": "/v1/chat/completions", "responses": "/v1/responses",
	"completions": "/v1/completions", "embeddings": "/v1/embeddings",
}

// cutsPerRecording is how many ways each recording is cut: 0 in one piece and with the caller's
// request as recorded, 1 at random places, 2 byte by byte where it is small. From 1 on the caller
// of a chat stream asks for its usage.
const cutsPerRecording = 3

type recording struct {
	provider, name, endpoint, model string
	adapter                         string // as the configuration has it; "plugin:NAME" translates
	stream                          bool
	status                          int
	header                          map[string]any
	request                         map[string]json.RawMessage
	body                            []byte
	expect                          *recordedExpectation
}

type recordedExpectation struct {
	Text      *string `json:"text"`
	ToolCalls []struct {
		Name      string `json:"name"`
		Arguments any    `json:"arguments"`
	} `json:"tool_calls"`
	FinishReason *string `json:"finish_reason"`
	Usage        *struct {
		Prompt     int64  `json:"prompt_tokens"`
		Completion int64  `json:"completion_tokens"`
		Cached     *int64 `json:"cached_tokens"`
		Reasoning  *int64 `json:"reasoning_tokens"`
	} `json:"usage"`
	ReasoningText *string `json:"reasoning_text"`
	Error         *struct {
		MessageContains string `json:"message_contains"`
		Type            any    `json:"provider_type"`
		Code            any    `json:"provider_code"`
	} `json:"error"`
	StreamError     bool   `json:"stream_error"`
	MessageContains string `json:"message_contains"`
}

func recordingsFolder(t *testing.T) string {
	dir := os.Getenv("INTERLOCK_CASES")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "cases")
	}
	dir = filepath.Join(dir, "recordings")
	if _, err := os.Stat(dir); err != nil {
		t.Skip("no recordings of real providers here: set INTERLOCK_CASES to a folder that has them")
	}
	return dir
}

func loadRecording(t *testing.T, provider, dir string) *recording {
	t.Helper()
	read := func(name string, into any) bool {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if os.IsNotExist(err) {
			return false
		}
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(b, into), "%s/%s", dir, name)
		return true
	}
	var meta struct {
		Endpoint string
		Stream   bool
	}
	require.True(t, read("meta.json", &meta))
	r := &recording{provider: provider, name: provider + "/" + filepath.Base(dir), endpoint: meta.Endpoint, stream: meta.Stream, model: "recorded-model", adapter: "openai"}
	require.True(t, read("response.status", &r.status))
	read("response.headers.json", &r.header)
	if e := (recordedExpectation{}); read("expect.json", &e) {
		r.expect = &e
	}
	if !read("request.json", &r.request) {
		r.request = madeRequest(meta.Endpoint, meta.Stream)
	}
	if m := r.request["model"]; m != nil {
		require.NoError(t, json.Unmarshal(m, &r.model))
	}
	var err error
	r.body, err = os.ReadFile(filepath.Join(dir, "response.body"))
	require.NoError(t, err)
	return r
}

// madeRequest is a request that fits an answer recorded without one.
func madeRequest(endpoint string, stream bool) map[string]json.RawMessage {
	r := map[string]json.RawMessage{"input": json.RawMessage(`"hello"`)}
	switch endpoint {
	case "chat.completions":
		r = map[string]json.RawMessage{"messages": json.RawMessage(`[{"role":"user","content":"hello"}]`)}
	case "completions":
		r = map[string]json.RawMessage{"prompt": json.RawMessage(`"hello"`)}
	}
	if stream {
		r["stream"] = json.RawMessage("true")
	}
	return r
}

// as is the caller's request, for the public model name of one run.
func (r *recording) as(t *testing.T, model string, askUsage bool) string {
	t.Helper()
	out := map[string]json.RawMessage{}
	for k, v := range r.request {
		out[k] = v
	}
	out["model"] = json.RawMessage(fmt.Sprintf("%q", model))
	if askUsage {
		out["stream_options"] = json.RawMessage(`{"include_usage":true}`)
	}
	b, err := json.Marshal(out)
	require.NoError(t, err)
	return string(b)
}

// translated says whether the provider speaks a format of its own.
func (r *recording) translated() bool { return strings.HasPrefix(r.adapter, "plugin:") }

func (r *recording) asksUsage() bool {
	var o struct {
		IncludeUsage bool `json:"include_usage"`
	}
	_ = json.Unmarshal(r.request["stream_options"], &o)
	return o.IncludeUsage
}

// replayer is a bare TCP server that answers /I/CUT/… with recording I, cut in its own way.
type replayer struct {
	ln         net.Listener
	recordings []*recording
}

func replayRecordings(t *testing.T, all []*recording) *replayer {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &replayer{ln: ln, recordings: all}
	t.Cleanup(func() { _ = ln.Close() })
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go p.serve(c)
		}
	}()
	return p
}

func (p *replayer) serve(c net.Conn) {
	defer c.Close()
	in := bufio.NewReader(c)
	for {
		req, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return
		}
		var i, cut int
		if _, err := fmt.Sscanf(req.URL.Path, "/%d/%d/", &i, &cut); err != nil || i >= len(p.recordings) {
			return
		}
		r := p.recordings[i]
		var asked struct{ Model string }
		if err := json.Unmarshal(body, &asked); err != nil || asked.Model != r.model && !strings.Contains(req.URL.Path, "/"+r.model) {
			_, _ = fmt.Fprintf(c, "HTTP/1.1 418 Wrong model\r\nContent-Length: 0\r\n\r\n")
			return
		}
		random := rand.New(rand.NewPCG(uint64(i), uint64(cut)))
		if writeCut(c, r.wire(random, cut), pieceSize(random, cut, len(r.body))) != nil {
			return
		}
	}
}

// wire is the whole HTTP response. Chunk borders are drawn apart from the pieces written.
func (r *recording) wire(random *rand.Rand, cut int) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "HTTP/1.1 %d %s\r\n", r.status, http.StatusText(r.status))
	for k, v := range r.header {
		switch strings.ToLower(k) {
		case "connection", "keep-alive", "transfer-encoding", "content-length", "content-encoding", "trailer", "upgrade":
			continue // of the recorded connection; the body is kept decoded
		}
		fmt.Fprintf(&b, "%s: %s\r\n", k, strings.Join(strings.Fields(fmt.Sprint(v)), " "))
	}
	if cut == 0 && !r.stream {
		fmt.Fprintf(&b, "Content-Length: %d\r\n\r\n%s", len(r.body), r.body)
		return b.Bytes()
	}
	b.WriteString("Transfer-Encoding: chunked\r\n\r\n")
	for rest := r.body; len(rest) > 0; {
		n := min(1+random.IntN(700), len(rest))
		fmt.Fprintf(&b, "%x\r\n%s\r\n", n, rest[:n])
		rest = rest[n:]
	}
	b.WriteString("0\r\n\r\n")
	return b.Bytes()
}

func pieceSize(random *rand.Rand, cut, size int) func() int {
	switch {
	case cut == 0:
		return func() int { return 1 << 30 }
	case cut == 2 && size < 4096:
		return func() int { return 1 }
	case cut == 2:
		return func() int { return 1 + random.IntN(size/200) } // some 400 pieces
	}
	return func() int { return 1 + random.IntN(1500) }
}

// writeCut writes each piece on its own: Go sets TCP_NODELAY, so each leaves by itself.
func writeCut(c net.Conn, b []byte, piece func() int) error {
	for len(b) > 0 {
		n := min(piece(), len(b))
		if _, err := c.Write(b[:n]); err != nil {
			return err
		}
		b = b[n:]
	}
	return nil
}

// Every recording of a provider that speaks OpenAI's format, through the built binary over
// sockets. Each run has a channel of its own, so that a recorded 401 takes out no other.
func TestRecordingsThroughBinary(t *testing.T) {
	dir := recordingsFolder(t)
	var all []*recording
	for _, p := range speakers {
		found, err := filepath.Glob(filepath.Join(dir, p, "*", "meta.json"))
		require.NoError(t, err)
		require.NotEmpty(t, found, p)
		for _, f := range found {
			all = append(all, loadRecording(t, p, filepath.Dir(f)))
		}
	}
	playRecordings(t, speakers, all)
}

// playRecordings starts the gateway before a provider that replays, and asks for each recording in
// each cut.
func playRecordings(t *testing.T, folders []string, all []*recording) {
	gateway := serveProcess(t, recordingConfig(t, all, replayRecordings(t, all).ln.Addr().String()))
	client := &http.Client{Transport: &http.Transport{DisableCompression: true}, Timeout: 30 * time.Second}
	t.Cleanup(client.CloseIdleConnections)

	passed, of := map[string]int{}, map[string]int{}
	for i, r := range all {
		if recordedPaths[r.endpoint] == "" {
			t.Logf("%s: %s is no endpoint that the gateway forwards", r.name, r.endpoint)
			continue
		}
		of[r.provider]++
		ok := t.Run(r.name, func(t *testing.T) {
			for cut := range cutsPerRecording {
				checkRecording(t, client, gateway.addr, r, i, cut)
			}
		})
		if ok {
			passed[r.provider]++
		}
	}
	for _, p := range folders {
		t.Logf("%s: %d of %d recordings, %d cuts each", p, passed[p], of[p], cutsPerRecording)
	}
}

func recordingConfig(t *testing.T, all []*recording, addr string) string {
	var providers, channels strings.Builder
	dir, modules := t.TempDir(), ""
	for i, r := range all {
		for cut := range cutsPerRecording {
			path, auth := "/v1", "bearer"
			if name, ok := strings.CutPrefix(r.adapter, "plugin:"); ok {
				path, auth = "", shipped[name]
				modules = shippedPlugins(t, sortedKeys(shipped)...)
			}
			fmt.Fprintf(&providers, "  p%d-%d: {adapter: %q, auth: %q, base_url: \"http://%s/%d/%d%s\"}\n", i, cut, r.adapter, auth, addr, i, cut, path)
			fmt.Fprintf(&channels, "      - {name: c%d-%d, provider: p%d-%d, credential: sk-replayed, models: {m%d-%d: {upstream_model: %q}}}\n", i, cut, i, cut, i, cut, r.model)
		}
	}
	if modules != "" {
		seed(t, filepath.Join(dir, "data"))
	}
	path := filepath.Join(dir, "interlock.yaml")
	require.NoError(t, os.WriteFile(path, []byte(`listen: {address: 127.0.0.1:0, drain_delay: 0s}
admin: {listen: 127.0.0.1:0}
watch: false
data_dir: data
budgets: {interactive: {max_attempts: 1}}
keys: [{name: caller, key: `+callersKey+`, groups: [all]}]
providers:
`+providers.String()+modules+`groups:
  - name: all
    channels:
`+channels.String()), 0o600))
	return path
}

func checkRecording(t *testing.T, client *http.Client, addr string, r *recording, i, cut int) {
	t.Helper()
	askUsage := cut > 0 && r.stream && (r.endpoint == "chat.completions" || r.endpoint == "completions")
	req, err := http.NewRequest(http.MethodPost, "http://"+addr+recordedPaths[r.endpoint],
		strings.NewReader(r.as(t, fmt.Sprintf("m%d-%d", i, cut), askUsage)))
	require.NoError(t, err)
	req.Header.Set("Authorization", "Bearer "+callersKey)
	req.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(req)
	require.NoError(t, err, "cut %d", cut)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	require.NoError(t, err, "cut %d", cut)
	a := &answer{Status: resp.StatusCode, Header: resp.Header, Body: string(b)}
	switch {
	case r.translated() && r.status >= 400:
		checkTranslatedError(t, r, a)
	case r.translated() && r.expect != nil && r.expect.StreamError:
		checkTranslatedBreak(t, r, a, cut)
	case r.status >= 400:
		checkRecordedError(t, r, a)
	case r.expect != nil && r.expect.StreamError:
		checkRecordedBreak(t, r, a)
	default:
		require.Equal(t, r.status, a.Status, "cut %d: %s", cut, a.Body)
		checkRecordedAnswer(t, r, a, askUsage || r.asksUsage())
	}
}

func checkRecordedAnswer(t *testing.T, r *recording, a *answer, wantUsage bool) {
	t.Helper()
	hear := hearAnswer
	if r.stream {
		hear = hearStream
	} else if r.translated() {
		require.False(t, needsRepair([]byte(a.Body)), a.Body)
	} else if r.endpoint == "chat.completions" && needsRepair(r.body) {
		require.NotEqual(t, string(r.body), a.Body)
		require.False(t, needsRepair([]byte(a.Body)), a.Body)
	} else {
		require.Equal(t, string(r.body), a.Body, "a whole answer passes byte for byte")
	}
	h, err := hear(a.Body, r.endpoint)
	require.NoError(t, err)
	if r.stream && r.endpoint == "responses" {
		sent, err := hearStream(string(r.body), r.endpoint)
		require.NoError(t, err)
		require.Equal(t, sent.streamed, h.streamed)
	}
	require.Nil(t, h.err)
	require.True(t, h.done || !r.stream, "the end of the stream")
	if r.expect == nil {
		require.NotZero(t, h.items, a.Body)
		return
	}
	want := r.expect
	if want.Text != nil {
		require.Equal(t, *want.Text, h.text)
	}
	if want.FinishReason != nil {
		require.Equal(t, *want.FinishReason, h.finish)
	}
	if want.ReasoningText != nil {
		require.Equal(t, strings.TrimSpace(*want.ReasoningText), strings.TrimSpace(h.reasoning))
	}
	checkRecordedCalls(t, r, h)
	if chat := r.stream && r.endpoint != "responses"; chat && !wantUsage {
		require.Zero(t, h.usages, "usage that nobody asked for")
		return
	} else if chat && want.Usage != nil {
		require.Equal(t, 1, h.usages)
	}
	if want.Usage == nil {
		return
	}
	prompt, completion, cached, reasoning := h.tokens()
	require.Equal(t, want.Usage.Prompt, prompt, "prompt tokens")
	require.Equal(t, want.Usage.Completion, completion, "completion tokens")
	if want.Usage.Cached != nil {
		require.Equal(t, *want.Usage.Cached, cached, "cached tokens")
	}
	if want.Usage.Reasoning != nil {
		require.Equal(t, *want.Usage.Reasoning, reasoning, "reasoning tokens")
	}
}

func checkRecordedCalls(t *testing.T, r *recording, h *heard) {
	t.Helper()
	require.Len(t, h.calls, len(r.expect.ToolCalls))
	ids := map[string]bool{}
	for i, want := range r.expect.ToolCalls {
		require.Equal(t, want.Name, h.calls[i].name)
		if r.translated() {
			require.NotEmpty(t, h.calls[i].id)
			require.False(t, ids[h.calls[i].id], "two calls have one ID")
			ids[h.calls[i].id] = true
		}
		if raw, ok := want.Arguments.(string); ok {
			require.Equal(t, raw, h.calls[i].arguments)
			continue
		}
		var got any
		require.NoError(t, json.Unmarshal([]byte(h.calls[i].arguments), &got))
		if want.Arguments != nil {
			require.Equal(t, want.Arguments, got)
		}
	}
}
