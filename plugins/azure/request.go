package azure

import (
	interlock "github.com/interlock-gateway/interlock/sdk/go"
	"github.com/interlock-gateway/interlock/sdk/go/json"
)

// Dates from which the versions of the deployments' API have a parameter, by Microsoft's list of
// changes between versions.
const (
	hasEncodingFormat = "2024-03-01" // encoding_format
	hasStreamOptions  = "2024-09-01" // stream_options, max_completion_tokens, parallel_tool_calls
	hasDeveloper      = "2024-12-01" // the role developer, metadata
)

// chatParameters are those of OpenAI's chat completions. What is not among them is refused: what
// Azure has beside them stands in the extension object.
var chatParameters = [...]string{
	"audio", "frequency_penalty", "function_call", "functions", "logit_bias", "logprobs", "max_completion_tokens",
	"max_tokens", "messages", "metadata", "modalities", "model", "n", "parallel_tool_calls", "prediction",
	"presence_penalty", "prompt_cache_key", "prompt_cache_retention", "reasoning_effort", "response_format",
	"safety_identifier", "seed", "service_tier", "stop", "store", "stream", "stream_options", "temperature",
	"tool_choice", "tools", "top_logprobs", "top_p", "user", "verbosity",
}

var embeddingParameters = [...]string{"dimensions", "encoding_format", "input", "model", "user"}

func isOneOf(key []byte, list []string) bool {
	for _, k := range list {
		if string(key) == k {
			return true
		}
	}
	return false
}

func request(c *interlock.Call, s *settings, body []byte, out *interlock.Request) error {
	root, err := json.Parse(body)
	if err != nil || !root.IsObject() {
		return interlock.BadRequest("the body is not a JSON object")
	}
	w := writer{s: s, c: c, b: append(out.Body, '{')}
	method := ""
	switch c.Endpoint {
	case "chat_completions":
		method, err = "chat/completions", w.chat(root)
	case "embeddings":
		method, err = "embeddings", w.embeddings(root)
	case "completions":
		method, err = "completions", w.others(root)
	default:
		method, err = "responses", w.others(root)
	}
	if err != nil {
		return err
	}
	out.Path = string(s.appendPath(nil, method, c.Model))
	out.Body = append(w.b, '}')
	if c.Stream {
		out.Framing = interlock.SSE
	}
	return nil
}

// writer makes the provider's body.
type writer struct {
	s   *settings
	c   *interlock.Call
	ext json.Value // the extension object, or nil
	b   []byte
}

// member appends a member as it is, unless the extension has one of that name.
func (w *writer) member(key []byte, v json.Value) {
	if w.ext != nil && w.ext.Get(string(key)) != nil {
		return
	}
	w.b = append(append(json.AppendQuote(json.AppendComma(w.b), key), ':'), v...)
}

// begin reads the extension and writes the model's name.
func (w *writer) begin(root json.Value) error {
	if ext := root.Get(name); !ext.IsNull() {
		if !ext.IsObject() {
			return interlock.BadParam(name, "must be an object")
		}
		w.ext = ext
		for _, key := range [...]string{"model", "messages", "input", "prompt", "stream", "stream_options"} {
			if ext.Get(key) != nil {
				return interlock.Unsupported(name+"."+key, "is made of the request itself")
			}
		}
	}
	w.b = json.AppendText(w.b, "model", w.c.Model)
	return nil
}

// end writes what the extension has.
func (w *writer) end() {
	for key, v := range w.ext.Members() {
		if !v.IsNull() {
			w.b = append(append(json.AppendQuote(json.AppendComma(w.b), key), ':'), v...)
		}
	}
}

func (w *writer) chat(root json.Value) error {
	if err := w.begin(root); err != nil {
		return err
	}
	var messages, options json.Value
	longer := !root.Get("max_completion_tokens").IsNull() // goes before max_tokens
	for key, v := range root.Members() {
		switch {
		case v.IsNull() || string(key) == "model" || string(key) == name:
			continue
		case !isOneOf(key, chatParameters[:]):
			if string(key) == "web_search_options" {
				return interlock.Unsupported("web_search_options", "")
			}
			return interlock.Unsupported(string(key), "unknown parameter: "+string(key))
		}
		switch string(key) {
		case "messages":
			messages = v
		case "stream_options":
			options = v
		case "max_completion_tokens":
			if !w.s.since(hasStreamOptions) {
				key = []byte("max_tokens")
			}
			w.member(key, v)
		case "max_tokens":
			if !longer || w.s.since(hasStreamOptions) {
				w.member(key, v)
			}
		case "parallel_tool_calls":
			if w.s.since(hasStreamOptions) {
				w.member(key, v)
			} else if !v.True() && !root.Get("tools").Empty() {
				return interlock.Unsupported("parallel_tool_calls", "the version of the API that is configured does not have it")
			}
		default:
			if !w.idle(key, v) {
				w.member(key, v)
			}
		}
	}
	if !messages.IsArray() || messages.Empty() {
		return interlock.BadParam("messages", "must be an array that is not empty")
	}
	if err := w.messages(messages); err != nil {
		return err
	}
	w.options(options)
	w.end()
	return nil
}

// idle says whether a parameter that changes no answer is unknown to the API that is configured
// and has to be left out: it would refuse the request.
func (w *writer) idle(key []byte, v json.Value) bool {
	if w.s.api == v1 {
		return false
	}
	switch string(key) {
	case "prompt_cache_key", "prompt_cache_retention", "safety_identifier":
		return true
	case "metadata":
		return w.s.api == models || !w.s.since(hasDeveloper)
	case "user":
		return w.s.api == models
	case "store":
		return !v.True()
	case "service_tier":
		return v.Is("auto") || v.Is("default")
	}
	return false
}

// options asks for a stream's usage, where the API can tell it: not before it had the parameter,
// and not beside data_sources.
func (w *writer) options(v json.Value) {
	if !w.s.since(hasStreamOptions) {
		return
	}
	if !w.c.Stream || !v.IsNull() && !v.IsObject() || w.ext.Get("data_sources") != nil {
		if v != nil {
			w.member([]byte("stream_options"), v)
		}
		return
	}
	b := append(json.AppendKey(w.b, "stream_options"), '{')
	for key, v := range v.Members() {
		if string(key) != "include_usage" {
			b = append(append(json.AppendQuote(json.AppendComma(b), key), ':'), v...)
		}
	}
	w.b = append(append(json.AppendComma(b), `"include_usage":true`...), '}')
}

func (w *writer) embeddings(root json.Value) error {
	if err := w.begin(root); err != nil {
		return err
	}
	if root.Get("input").IsNull() {
		return interlock.BadParam("input", "is missing")
	}
	for key, v := range root.Members() {
		switch {
		case v.IsNull() || string(key) == "model" || string(key) == name:
		case !isOneOf(key, embeddingParameters[:]):
			return interlock.Unsupported(string(key), "unknown parameter: "+string(key))
		case string(key) == "encoding_format" && !w.s.since(hasEncodingFormat):
			// the gateway renders it
		default:
			w.member(key, v)
		}
	}
	w.end()
	return nil
}

// others writes the body of responses and completions: all of it passes.
func (w *writer) others(root json.Value) error {
	if w.s.api == models {
		return interlock.Unsupported("model", "Azure's Model Inference API does not serve this endpoint")
	}
	if err := w.begin(root); err != nil {
		return err
	}
	var options json.Value
	for key, v := range root.Members() {
		switch string(key) {
		case "model", name:
			continue
		case "stream_options":
			if w.c.Endpoint == "completions" {
				options = v
				continue
			}
		}
		if !v.IsNull() {
			w.member(key, v)
		}
	}
	if w.c.Endpoint == "completions" {
		w.options(options)
	}
	w.end()
	return nil
}
