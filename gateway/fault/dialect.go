package fault

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// dialect is the API of a provider whose wire format is not OpenAI's: how its requests are read,
// how it answers and what it says of its troubles. The nil dialect is OpenAI's.
type dialect struct {
	// chat reads the path of a request for a chat; ok is false for any other path. A model and a
	// wish for a stream that the path does not say are in the body.
	chat  func(path string) (model string, stream, ok bool)
	tools string // the body's member that declares tools
	voice func(identity) voice
	// trouble is the body of an error, and its headers as name, value, ….
	trouble func(status int, t trouble, message string) (body string, headers []string)
	words   map[trouble]string // what it says of a trouble, with %m for the model
	// frame puts an event of a stream on the wire; nil: as a server-sent event.
	frame       func(sse) []byte
	contentType string // of a stream
}

var dialects = map[string]*dialect{
	"anthropic": anthropicDialect, "azure": azureDialect, "bedrock": bedrockDialect, "gemini": geminiDialect,
	"cohere": cohereDialect, "mistral": mistralDialect, "ollama": ollamaDialect,
}

// dialectWords are the names of the dialects, OpenAI's among them.
var dialectWords = append(slices.Sorted(maps.Keys(dialects)), "openai")

// trouble is what is wrong, whatever the provider's words for it.
type trouble uint8

const (
	troubleInvalid trouble = iota
	troubleAuth
	troubleNoModel
	troubleTooLong
	troubleFiltered
	troubleRateLimited
	troubleOverloaded
	troubleServer
	troubleTimeout
)

// troubleOf reads a status and OpenAI's code and type; a status of 0 says nothing.
func troubleOf(status int, code, kind string) trouble {
	switch code {
	case "context_length_exceeded":
		return troubleTooLong
	case "model_not_found":
		return troubleNoModel
	case "content_policy_violation", "content_filter":
		return troubleFiltered
	}
	switch {
	case status == 401 || status == 402:
		return troubleAuth
	case status == 404:
		return troubleNoModel
	case status == 408 || status == 504:
		return troubleTimeout
	case status == 429 || kind == "rate_limit_error":
		return troubleRateLimited
	case status == 503 || status == 529 || kind == "overloaded_error":
		return troubleOverloaded
	case status >= 500 || kind == "server_error":
		return troubleServer
	case status == 0 && kind == "":
		return troubleServer
	}
	return troubleInvalid
}

// endpointOf is what a path asks for in the dialect.
func (d *dialect) endpointOf(path string) endpoint {
	if d == nil {
		return endpointOf(path)
	}
	if _, _, ok := d.chat(path); ok {
		return endpointChat
	}
	return endpointOther
}

// asked reads a request's body, and what the path says of it.
func (d *dialect) asked(path string, body []byte) asked {
	a := readAsked(body)
	if d == nil {
		return a
	}
	var raw map[string]json.RawMessage
	if json.Unmarshal(body, &raw) == nil {
		a.tools = raw[d.tools] != nil
	}
	if model, stream, ok := d.chat(path); ok && model != "" {
		a.model, a.stream = model, stream
	}
	a.choices, a.usage, a.hasSchema = 1, true, false
	return a
}

// problem is the body of an error with a status, and its headers.
func (d *dialect) problem(status int, p problem, v vars) (body string, headers []string) {
	if d == nil {
		return `{"error":` + p.object(status, v) + `}`, nil
	}
	render := func(t *template) string {
		if t == nil {
			return ""
		}
		return t.render(v)
	}
	t := troubleOf(status, render(p.code), render(p.kind))
	return d.trouble(status, t, d.says(t, render(p.message), v.model, status))
}

// says is the message of an error: the provider's own words, and those of the script.
func (d *dialect) says(t trouble, message, model string, status int) string {
	words := strings.ReplaceAll(d.words[t], "%m", model)
	switch {
	case words == "" && message == "":
		return reasonPhrase(status)
	case words == "" || message == "":
		return words + message
	}
	return words + ": " + message
}

// spoil is what an error object of the script, in OpenAI's format, is in a stream.
func spoil(object string) (t trouble, message string) {
	var e struct{ Code, Type, Message string }
	if json.Unmarshal([]byte(object), &e) != nil {
		return troubleServer, strings.Trim(object, `"`)
	}
	return troubleOf(0, e.Code, e.Type), e.Message
}

// between is the text between a prefix somewhere in s and a suffix at its end.
func between(s, prefix, suffix string) (string, bool) {
	s, ok := strings.CutSuffix(s, suffix)
	if !ok {
		return "", false
	}
	i := strings.LastIndex(s, prefix)
	if i < 0 {
		return "", false
	}
	return s[i+len(prefix):], true
}
