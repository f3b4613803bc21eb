// Package clients_test holds the Go SDK's tests against a running gateway; ../run.sh starts it.
package clients_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/ssestream"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"
)

const (
	greeting = "Hello from the provider."
	partial  = "These words are already out"
)

func connect(t *testing.T, more ...option.RequestOption) openai.Client {
	t.Helper()
	url := os.Getenv("INTERLOCK_URL")
	if url == "" {
		t.Skip("no gateway: run make -C examples/clients test BIN=/absolute/path/to/interlock")
	}
	return openai.NewClient(append([]option.RequestOption{
		option.WithBaseURL(url), option.WithAPIKey(os.Getenv("INTERLOCK_KEY")), option.WithMaxRetries(0),
	}, more...)...)
}

func bounded(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func ask(model, text string) openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{Model: model, Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(text)}}
}

func askResponse(model string) responses.ResponseNewParams {
	return responses.ResponseNewParams{Model: model, Input: responses.ResponseNewParamsInputUnion{OfString: openai.String("Hello?")}}
}

func withTools(model string) openai.ChatCompletionNewParams {
	p := ask(model, "Weather?")
	p.Tools = []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{
		Name: "get_weather", Parameters: shared.FunctionParameters{"type": "object", "properties": map[string]any{"city": map[string]any{"type": "string"}}},
	})}
	return p
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func equal[T comparable](t *testing.T, got, want T) {
	t.Helper()
	if got != want {
		t.Fatalf("got %v, want %v", got, want)
	}
}

// fails demands the SDK's own error with that status and code.
func fails(t *testing.T, err error, status int, code string) *openai.Error {
	t.Helper()
	var e *openai.Error
	if !errors.As(err, &e) {
		t.Fatalf("want an *openai.Error with %d %s, got %v", status, code, err)
	}
	if e.StatusCode != status || e.Code != code {
		t.Fatalf("got %d %s, want %d %s", e.StatusCode, e.Code, status, code)
	}
	return e
}

type count struct{ Calls, Left int }

func counts(t *testing.T, model string) (n count) {
	t.Helper()
	resp, err := http.Get(os.Getenv("PROVIDERS_CONTROL") + "/calls?model=" + model)
	ok(t, err)
	defer resp.Body.Close()
	ok(t, json.NewDecoder(resp.Body).Decode(&n))
	return n
}

// read joins the text of a stream's events.
func read[E any](s *ssestream.Stream[E], text func(E) string) (string, error) {
	defer s.Close()
	var b strings.Builder
	for s.Next() {
		b.WriteString(text(s.Current()))
	}
	return b.String(), s.Err()
}

func content(c openai.ChatCompletionChunk) string {
	if len(c.Choices) == 0 {
		return ""
	}
	return c.Choices[0].Delta.Content
}

func delta(e responses.ResponseStreamEventUnion) string {
	if e.Type != "response.output_text.delta" {
		return ""
	}
	return e.Delta
}

func TestChat(t *testing.T) {
	var resp *http.Response
	client := connect(t)
	c, err := client.Chat.Completions.New(bounded(t), ask("gpt-4o", "Hello?"), option.WithResponseInto(&resp))
	ok(t, err)
	equal(t, c.Choices[0].Message.Content, greeting)
	equal(t, c.Usage.TotalTokens, 13)
	equal(t, resp.Header.Get("interlock-cause"), "initial")
	text, err := read(client.Chat.Completions.NewStreaming(bounded(t), ask("gpt-4o", "Hello?")), content)
	ok(t, err)
	equal(t, text, greeting)
}

func TestTools(t *testing.T) {
	client := connect(t)
	whole, err := client.Chat.Completions.New(bounded(t), withTools("gpt-4o"))
	ok(t, err)
	stream := client.Chat.Completions.NewStreaming(bounded(t), withTools("gpt-4o"))
	defer stream.Close()
	acc := openai.ChatCompletionAccumulator{}
	for stream.Next() {
		if !acc.AddChunk(stream.Current()) {
			t.Fatal("the SDK's accumulator refused a chunk")
		}
	}
	ok(t, stream.Err())
	for _, c := range []openai.ChatCompletion{*whole, acc.ChatCompletion} {
		equal(t, c.Choices[0].FinishReason, "tool_calls")
		call := c.Choices[0].Message.ToolCalls[0]
		equal(t, call.ID, "call_1")
		equal(t, call.Function.Name, "get_weather")
		var args struct{ City, Unit string }
		ok(t, json.Unmarshal([]byte(call.Function.Arguments), &args))
		equal(t, args.City+" "+args.Unit, "Seoul celsius")
	}
}

func TestStructuredOutput(t *testing.T) {
	client := connect(t)
	p := ask("gpt-4o", "Weather?")
	p.ResponseFormat.OfJSONSchema = &shared.ResponseFormatJSONSchemaParam{JSONSchema: shared.ResponseFormatJSONSchemaJSONSchemaParam{
		Name: "weather", Strict: openai.Bool(true),
		Schema: map[string]any{
			"type": "object", "required": []string{"city", "celsius"}, "additionalProperties": false,
			"properties": map[string]any{"city": map[string]any{"type": "string"}, "celsius": map[string]any{"type": "number"}},
		},
	}}
	c, err := client.Chat.Completions.New(bounded(t), p)
	ok(t, err)
	equal(t, c.Choices[0].Message.Content, `{"city":"Seoul","celsius":21}`)
}

func TestResponses(t *testing.T) {
	client := connect(t)
	r, err := client.Responses.New(bounded(t), askResponse("gpt-4o"))
	ok(t, err)
	equal(t, r.OutputText(), greeting)
	text, err := read(client.Responses.NewStreaming(bounded(t), askResponse("gpt-4o")), delta)
	ok(t, err)
	equal(t, text, greeting)
}

func TestEmbeddingsAndModerations(t *testing.T) {
	client := connect(t)
	e, err := client.Embeddings.New(bounded(t), openai.EmbeddingNewParams{
		Model: "text-embedding-3-small", Input: openai.EmbeddingNewParamsInputUnion{OfString: openai.String("Hello?")},
	})
	ok(t, err)
	equal(t, len(e.Data[0].Embedding), 8)
	var sum float64
	for _, x := range e.Data[0].Embedding {
		sum += math.Abs(x)
	}
	if sum == 0 {
		t.Fatal("an embedding of zeros")
	}
	m, err := client.Moderations.New(bounded(t), openai.ModerationNewParams{
		Model: "omni-moderation-latest", Input: openai.ModerationNewParamsInputUnion{OfString: openai.String("Hello?")},
	})
	ok(t, err)
	equal(t, m.Results[0].Flagged, false)
}

func TestModels(t *testing.T) {
	client := connect(t)
	page, err := client.Models.List(bounded(t))
	ok(t, err)
	seen := map[string]bool{}
	for _, m := range page.Data {
		seen[m.ID] = true
	}
	equal(t, seen["gpt-4o"] && seen["assistant"], true)
	m, err := client.Models.Get(bounded(t), "assistant")
	ok(t, err)
	equal(t, m.ID, "assistant")
	_, err = client.Models.Get(bounded(t), "nobody-serves-this")
	fails(t, err, 404, "model_not_found")
}

func TestErrors(t *testing.T) {
	client := connect(t)
	chat := func(p openai.ChatCompletionNewParams, o ...option.RequestOption) error {
		_, err := client.Chat.Completions.New(bounded(t), p, o...)
		return err
	}
	fails(t, chat(ask("gpt-4o", "Hello?"), option.WithAPIKey("ilk-nobody-0123456789")), 401, "invalid_api_key")
	fails(t, chat(ask("gpt-4o", "Hello?"), option.WithHeader("interlock-budget", "nobodys")), 403, "permission_denied")
	fails(t, chat(ask("nobody-serves-this", "Hello?")), 404, "model_not_found")
	e := fails(t, chat(openai.ChatCompletionNewParams{Model: "gpt-4o", Messages: []openai.ChatCompletionMessageParamUnion{}}), 400, "invalid_request")
	equal(t, e.Param, "messages")
	fails(t, chat(ask("gpt-4o", strings.Repeat("x", 70_000))), 413, "request_too_large")
	fails(t, chat(ask("down", "Hello?")), 502, "routes_exhausted")
	fails(t, chat(ask("silent", "Hello?"), option.WithHeader("interlock-deadline", "400")), 504, "deadline_exceeded")
	// The first call with a dead credential takes its account out; then no route is left.
	_ = chat(ask("unpaid", "Hello?"))
	fails(t, chat(ask("unpaid", "Hello?")), 503, "no_eligible_route")
	limited := fails(t, chat(ask("limited", "Hello?")), 429, "routes_exhausted")
	seconds, err := strconv.Atoi(limited.Response.Header.Get("retry-after"))
	if err != nil || seconds < 1 || seconds > 7 {
		t.Fatalf("retry-after: %q", limited.Response.Header.Get("retry-after"))
	}
	equal(t, limited.Response.Header.Get("x-should-retry"), "true")
}

func TestLeavingClosesTheProvidersCall(t *testing.T) {
	client := connect(t)
	before := counts(t, "halting")
	ctx, leave := context.WithCancel(bounded(t))
	stream := client.Chat.Completions.NewStreaming(ctx, ask("halting", "Hello?"))
	defer stream.Close()
	got := ""
	for got == "" && stream.Next() {
		got = content(stream.Current())
	}
	equal(t, got, "one ")
	leave()
	for end := time.Now().Add(10 * time.Second); ; {
		now := counts(t, "halting")
		if now.Left == before.Left+1 {
			equal(t, now.Calls, before.Calls+1)
			return
		}
		if time.Now().After(end) {
			t.Fatal("the provider's call went on")
		}
	}
}

func TestPartialStreamsRaise(t *testing.T) {
	client := connect(t)
	for _, model := range []string{"cut", "short"} {
		t.Run(model, func(t *testing.T) {
			before := counts(t, model)
			text, err := read(client.Chat.Completions.NewStreaming(bounded(t), ask(model, "Hello?")), content)
			equal(t, text, partial)
			if err == nil || !strings.Contains(err.Error(), "partial_stream") {
				t.Fatalf("chat: %v", err)
			}
			text, err = read(client.Responses.NewStreaming(bounded(t), askResponse(model)), delta)
			equal(t, text, partial)
			if err == nil || errors.Is(err, io.ErrUnexpectedEOF) {
				t.Fatalf("responses: %v", err)
			}
			equal(t, counts(t, model).Calls, before.Calls+2)
		})
	}
}

func TestHeartbeatsDoNotDisturb(t *testing.T) {
	client := connect(t)
	text, err := read(client.Chat.Completions.NewStreaming(bounded(t), ask("late", "Hello?")), content)
	ok(t, err)
	equal(t, text, "Late, but whole.")
}

func TestSubstitutionIsDisclosed(t *testing.T) {
	client := connect(t)
	var resp *http.Response
	c, err := client.Chat.Completions.New(bounded(t), ask("assistant", "Hello?"), option.WithResponseInto(&resp))
	ok(t, err)
	equal(t, c.Model, "gpt-4o-mini")
	equal(t, resp.Header.Get("interlock-cause"), "model_substitution")
	equal(t, resp.Header.Get("interlock-requested-model"), "gpt-4.1-mini")
	equal(t, resp.Header.Get("interlock-model"), "gpt-4o-mini")
	_, err = client.Chat.Completions.New(bounded(t), ask("assistant", "Hello?"), option.WithHeader("interlock-substitution", "deny"))
	fails(t, err, 502, "routes_exhausted")
}

// In an outage the SDK's own retries, on by default, add no call: x-should-retry is false.
func TestOutageIsNotMultiplied(t *testing.T) {
	for _, retries := range []int{0, 2} {
		t.Run(fmt.Sprint("retries ", retries), func(t *testing.T) {
			client := connect(t, option.WithMaxRetries(retries))
			before := counts(t, "down")
			_, err := client.Chat.Completions.New(bounded(t), ask("down", "Hello?"))
			fails(t, err, 502, "routes_exhausted")
			equal(t, counts(t, "down").Calls, before.Calls+2) // the budget's max_attempts_per_route
		})
	}
}
