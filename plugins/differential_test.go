package plugins_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/gateway/adapter"
	"github.com/interlock-gateway/interlock/gateway/openai"
	"github.com/interlock-gateway/interlock/gateway/wasm"
	"github.com/interlock-gateway/interlock/plugins"
	"github.com/interlock-gateway/interlock/plugins/plugintest"
)

// recorded are the folders of recordings that an adapter reads, and the endpoints in them that it
// does not: those are in another format.
var recorded = map[string]struct {
	folders []string
	but     []string
}{
	"anthropic": {folders: []string{"anthropic", "vertex-anthropic"}},
	"azure":     {folders: []string{"azure"}},
	"bedrock": {
		folders: []string{"bedrock"},
		but:     []string{"invoke", "invoke-with-response-stream", "responses", "chat.completions", "models"},
	},
	"cohere":  {folders: []string{"cohere"}, but: []string{"chat.v1", "embed.v1", "models", "rerank.v1", "rerank.v2"}},
	"gemini":  {folders: []string{"gemini", "vertex-gemini"}, but: []string{"models"}},
	"mistral": {folders: []string{"mistral"}},
	"ollama":  {folders: []string{"ollama"}, but: []string{"chat.completions"}},
}

// both runs every call on the native build and on the module, and fails the test where they
// differ in a byte.
type both struct {
	t            *testing.T
	native, wasm adapter.Runner
	calls        map[wasm.Op]int
}

// Call implements adapter.Runner.
func (b *both) Call(w wasm.Wait, op wasm.Op, in, dst []byte) ([]byte, error) {
	b.t.Helper()
	b.calls[op]++
	want, wantErr := b.native.Call(w, op, in, nil)
	got, err := b.wasm.Call(w, op, in, dst)
	require.Equal(b.t, wantErr, err, op.String())
	require.Equal(b.t, string(want), string(got[len(dst):]), op.String())
	return got, err
}

// Every recording and every request of the cases goes through the native build of each adapter
// and through its module: what comes of them is the same, byte for byte.
func TestTheModuleAnswersAsTheNativeBuild(t *testing.T) {
	cases := casesFolder(t)
	cache, err := wasm.NewCache("")
	require.NoError(t, err)
	for _, name := range plugins.Names() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := differ(t, name, cache)
			d.requests(t, filepath.Join(cases, "request_pairs"))
			for _, folder := range recorded[name].folders {
				d.recordings(t, filepath.Join(cases, "recordings", folder), recorded[name].but)
			}
			d.errors(t)
			t.Log("calls compared:", d.both.calls)
			for _, op := range []wasm.Op{wasm.OpRequest, wasm.OpResponse, wasm.OpEvents, wasm.OpClassify} {
				require.Positive(t, d.both.calls[op], op.String())
			}
		})
	}
}

type difference struct {
	both  *both
	guest *adapter.Guest
}

func differ(t *testing.T, name string, cache *wasm.Cache) *difference {
	t.Helper()
	src, ok := plugins.Native(name)
	require.True(t, ok)
	native, err := adapter.NewNative(name, src.Manifest, src.New, nil)
	require.NoError(t, err)
	loaded, err := wasm.Load(context.Background(), wasm.Options{Name: name, Module: plugintest.Module(t, name), Cache: cache})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, loaded.Close(context.Background())) })
	b := &both{native: native, wasm: loaded, calls: map[wasm.Op]int{}}
	return &difference{b, adapter.NewGuest("plugin:"+name, b, loaded.Manifest(), 0)}
}

// begin makes a call of a request in OpenAI's format. One that the adapter refuses is one too.
func (d *difference) begin(t *testing.T, endpoint openai.Endpoint, stream bool, body string) (*adapter.Call, error) {
	t.Helper()
	d.both.t = t
	c := &adapter.Call{
		Request: &openai.Request{Endpoint: endpoint, Stream: stream}, Body: []byte(body),
		Model: "us.anthropic.claude-sonnet-4-5-20250929-v1:0", ID: "req_01-1", Now: time.UnixMilli(1_800_000_000_000),
	}
	_, err := d.guest.Request(nil, c)
	return c, err
}

// requests translates every request in OpenAI's format that the cases have.
func (d *difference) requests(t *testing.T, dir string) {
	var files []string
	for _, pattern := range []string{"*chat_completions.json", "*embeddings.json"} {
		found, err := filepath.Glob(filepath.Join(dir, "*", "*", pattern))
		require.NoError(t, err)
		files = append(files, found...)
	}
	require.NotEmpty(t, files)
	refused := 0
	for _, file := range files {
		var pair struct{ Body json.RawMessage }
		read(t, file, &pair)
		endpoint := openai.ChatCompletions
		if strings.HasSuffix(file, "embeddings.json") {
			endpoint = openai.Embeddings
		}
		if !d.guest.Serves(endpoint) {
			continue
		}
		for _, stream := range []bool{false, true} {
			c, err := d.begin(t, endpoint, stream, string(pair.Body))
			if err != nil {
				refused++
				var refusal *adapter.Refusal
				require.ErrorAs(t, err, &refusal, file)
			}
			c.Release()
		}
	}
	t.Logf("%d requests, %d of them refused", 2*len(files), refused)
}

// errors classifies what providers and what stands before them say of a failure. There are
// recordings of the errors of some only.
func (d *difference) errors(t *testing.T) {
	c, err := d.begin(t, openai.ChatCompletions, false, `{"model":"m","messages":[{"role":"user","content":"hi"}]}`)
	require.NoError(t, err)
	defer c.Release()
	for _, status := range []int{400, 401, 403, 404, 408, 422, 429, 500, 503, 529} {
		for _, body := range []string{
			``, `<html>`, `[{"error":{"message":"m"}}]`, `{"error":{"type":"t","code":"c","message":"m","status":"UNAVAILABLE"}}`, `{"error":"m"}`,
			`{"message":"The model m has a maximum context length"}`, `{"detail":[{"loc":["body","n",0],"msg":"m"}]}`, `{"object":"error","message":"m","code":1}`,
		} {
			d.guest.Classify(c, answerHead{status, map[string]string{"retry-after": "7"}}, []byte(body))
		}
	}
}

type answerHead struct {
	status int
	header map[string]string
}

func (h answerHead) Status() int { return h.status }

func (h answerHead) Header(name string) []byte {
	if v, ok := h.header[name]; ok {
		return []byte(v)
	}
	return nil
}

// recordings has every recorded answer read, whole or as a stream that comes in pieces.
func (d *difference) recordings(t *testing.T, dir string, but []string) {
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		at := filepath.Join(dir, e.Name())
		var meta struct {
			Endpoint string
			Stream   bool
		}
		read(t, filepath.Join(at, "meta.json"), &meta)
		if slices.Contains(but, meta.Endpoint) {
			continue
		}
		t.Run(e.Name(), func(t *testing.T) {
			head := answerHead{header: map[string]string{}}
			read(t, filepath.Join(at, "response.status"), &head.status)
			var header map[string]any
			read(t, filepath.Join(at, "response.headers.json"), &header)
			for k, v := range header {
				head.header[strings.ToLower(k)] = fmt.Sprint(v)
			}
			body, err := os.ReadFile(filepath.Join(at, "response.body"))
			require.NoError(t, err)
			d.answer(t, meta.Endpoint, meta.Stream, head, body)
		})
	}
}

func (d *difference) answer(t *testing.T, endpoint string, stream bool, head answerHead, body []byte) {
	asked, text := openai.ChatCompletions, `{"model":"m","messages":[{"role":"user","content":"hi"}],
		"tools":[{"type":"function","function":{"name":"get_weather","parameters":{"type":"object"}}}]}`
	if strings.Contains(strings.ToLower(endpoint), "embed") {
		asked, text = openai.Embeddings, `{"model":"m","input":["a"]}`
		if !d.guest.Serves(asked) {
			return
		}
	} else if endpoint == "responses" {
		asked, text = openai.Responses, `{"model":"m","input":"a"}`
	}
	for cut := range 5 {
		c, err := d.begin(t, asked, stream, text)
		require.NoError(t, err)
		switch {
		case head.status >= 300:
			d.guest.Classify(c, head, body)
		case !stream:
			_, _ = d.guest.Response(nil, c, head, body) // its errors are compared like its bytes
		default:
			d.stream(c, body, cut)
		}
		c.Release()
	}
}

// stream feeds a body in one piece, byte by byte or in pieces of another size each.
func (d *difference) stream(c *adapter.Call, body []byte, cut int) {
	random := rand.New(rand.NewPCG(1, uint64(cut)))
	events := d.guest.Events(c)
	defer events.Release()
	var ev openai.Event
	for len(body) > 0 {
		n := len(body)
		switch {
		case cut == 1 && n < 20_000:
			n = 1
		case cut > 0:
			n = min(n, 1+random.IntN(300*cut))
		}
		events.Feed(body[:n])
		body = body[n:]
		for {
			if ok, err := events.Next(&ev); err != nil {
				return
			} else if !ok {
				break
			}
		}
	}
	for {
		if ok, err := events.Flush(&ev); err != nil || !ok {
			return
		}
	}
}

func casesFolder(t *testing.T) string {
	dir := os.Getenv("INTERLOCK_CASES")
	if dir == "" {
		dir = filepath.Join("..", "..", "shared", "cases")
	}
	if _, err := os.Stat(filepath.Join(dir, "recordings")); err != nil {
		t.Skip("no recordings of real providers here: set INTERLOCK_CASES to a folder that has them")
	}
	return dir
}

func read(t *testing.T, file string, into any) {
	t.Helper()
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(b, into), file)
}
