package fault

import (
	"encoding/json"
	"net/http"
	"strings"
)

// endpoint is what a request asks for. Any prefix before the names of OpenAI's
// paths is accepted, so that one script serves several base URLs.
type endpoint string

const (
	endpointChat        endpoint = "chat"
	endpointResponses   endpoint = "responses"
	endpointCompletions endpoint = "completions"
	endpointEmbeddings  endpoint = "embeddings"
	endpointModerations endpoint = "moderations"
	endpointModels      endpoint = "models"
	endpointOther       endpoint = "" // any other path
)

// endpointWords are the endpoints a rule may name, "any" and "connection"
// apart.
var endpointWords = []string{"chat", "completions", "embeddings", "models", "moderations", "responses"}

func endpointOf(path string) endpoint {
	switch {
	case strings.HasSuffix(path, "/chat/completions"):
		return endpointChat
	case strings.HasSuffix(path, "/responses"):
		return endpointResponses
	case strings.HasSuffix(path, "/completions"):
		return endpointCompletions
	case strings.HasSuffix(path, "/embeddings"):
		return endpointEmbeddings
	case strings.HasSuffix(path, "/moderations"):
		return endpointModerations
	case strings.HasSuffix(path, "/models") || strings.Contains(path, "/models/"):
		return endpointModels
	default:
		return endpointOther
	}
}

// speaks reports whether the endpoint answers with events of the language.
func (e endpoint) speaks() bool {
	return e == endpointChat || e == endpointResponses || e == endpointCompletions
}

// request is what rules look at.
type request struct {
	endpoint endpoint
	method   string
	path     string
	header   http.Header
	body     []byte
	asked    asked
}

// asked are the facts of a request's body. A body that is no JSON object has
// none of them.
type asked struct {
	valid     bool
	model     string
	stream    bool
	usage     bool // stream_options.include_usage
	choices   int  // n
	tools     bool
	schema    json.RawMessage // of structured output, nil for none
	hasSchema bool
	prefill   bool // the last message is the assistant's
	inputs    []json.RawMessage
	base64    bool
	dimension int
}

func readAsked(body []byte) asked {
	var raw struct {
		Model         json.RawMessage   `json:"model"`
		Stream        json.RawMessage   `json:"stream"`
		StreamOptions json.RawMessage   `json:"stream_options"`
		N             json.RawMessage   `json:"n"`
		Tools         []json.RawMessage `json:"tools"`
		Format        json.RawMessage   `json:"response_format"`
		Text          json.RawMessage   `json:"text"`
		Messages      json.RawMessage   `json:"messages"`
		Input         json.RawMessage   `json:"input"`
		Encoding      json.RawMessage   `json:"encoding_format"`
		Dimensions    json.RawMessage   `json:"dimensions"`
	}
	a := asked{choices: 1}
	if json.Unmarshal(body, &raw) != nil {
		return a
	}
	a.valid = true
	a.model = decoded[string](raw.Model)
	a.stream = decoded[bool](raw.Stream)
	a.usage = decoded[struct {
		IncludeUsage bool `json:"include_usage"`
	}](raw.StreamOptions).IncludeUsage
	a.choices = min(max(decoded[int](raw.N), 1), 128) // OpenAI's own limit
	a.tools = len(raw.Tools) > 0
	a.readSchema(raw.Format, raw.Text)
	if m := decoded[[]struct {
		Role string `json:"role"`
	}](raw.Messages); len(m) > 0 {
		a.prefill = m[len(m)-1].Role == "assistant"
	}
	a.inputs = inputs(raw.Input)
	a.base64 = decoded[string](raw.Encoding) == "base64"
	a.dimension = decoded[int](raw.Dimensions)
	return a
}

// decoded is the value, or the zero value where it is absent or of another
// type: a provider in a test does not judge its caller.
func decoded[T any](raw json.RawMessage) T {
	var v T
	if len(raw) > 0 && json.Unmarshal(raw, &v) != nil {
		var zero T
		return zero
	}
	return v
}

// readSchema finds the schema in chat's response_format or in responses'
// text.format.
func (a *asked) readSchema(format, text json.RawMessage) {
	type shape struct {
		Type       string          `json:"type"`
		Schema     json.RawMessage `json:"schema"`
		JSONSchema struct {
			Schema json.RawMessage `json:"schema"`
		} `json:"json_schema"`
	}
	f := decoded[shape](format)
	if t := decoded[struct {
		Format shape `json:"format"`
	}](text); t.Format.Type != "" {
		f = t.Format
	}
	a.hasSchema = f.Type == "json_schema"
	if a.schema = f.JSONSchema.Schema; a.schema == nil {
		a.schema = f.Schema
	}
}

// inputs are the things to embed or moderate: a text, a list of texts, a list
// of tokens (one input) or a list of those.
func inputs(raw json.RawMessage) []json.RawMessage {
	list := decoded[[]json.RawMessage](raw)
	if len(list) == 0 {
		if raw == nil {
			return nil
		}
		return []json.RawMessage{raw}
	}
	if c := list[0][0]; c == '"' || c == '[' || c == '{' {
		return list
	}
	return []json.RawMessage{raw}
}
