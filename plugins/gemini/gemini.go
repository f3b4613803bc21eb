// Package gemini is the adapter for Google's Gemini models: the Gemini API (generateContent,
// streamGenerateContent, embedContent) and, with a parent, the same methods of Vertex AI. It owns
// the mapping between OpenAI's format and that of these methods, and nothing else: the gateway
// frames answers, holds states and adds credentials. README.md says what maps to what.
package gemini

import (
	interlock "github.com/interlock-gateway/interlock/sdk/go"
	"github.com/interlock-gateway/interlock/sdk/go/json"
)

// name is the adapter's: of the extension object in a request, and the provider in provider_data.
const name = "gemini"

// settings is the configuration.
type settings struct {
	version   string // of the API, the path's first segment
	parent    string // the path's segments between the version and the model's: Vertex AI
	reasoning style
	thoughts  toggle // whether thoughts are asked for
	openapi   bool   // schemas in the provider's own dialect
	safety    json.Value
}

// toggle is a boolean that may be absent.
type toggle uint8

const (
	unset toggle = iota
	off
	on
)

// New makes the plugin.
func New(config []byte) (interlock.Plugin, error) {
	s, err := readConfig(config)
	if err != nil {
		return interlock.Plugin{}, err
	}
	return interlock.Plugin{
		Request: func(c *interlock.Call, body []byte, out *interlock.Request) error {
			if c.Endpoint == "embeddings" {
				return embed(c, s, body, out)
			}
			return request(c, s, body, out)
		},
		Response: response,
		Events:   events,
		Classify: classify,
	}, nil
}

func readConfig(config []byte) (*settings, error) {
	root, err := json.Parse(config)
	if err != nil || !root.IsObject() {
		return nil, badConfig("the configuration is not a JSON object")
	}
	s := &settings{version: "v1beta"}
	for key, v := range root.Members() {
		ok, text := true, v.String()
		switch string(key) {
		case "api_version":
			s.version = text
			ok = isVersion(text)
		case "parent":
			s.parent = text
			ok = isParent(text)
		case "reasoning":
			s.reasoning, ok = styleNamed(text)
		case "include_thoughts":
			if s.thoughts, ok = off, v.Kind() == json.Bool; v.True() {
				s.thoughts = on
			}
		case "schema":
			s.openapi = text == "openapi"
			ok = s.openapi || text == "json"
		case "safety_settings":
			ok = v.IsArray()
			s.safety = append(json.Value(nil), v...)
		default:
			return nil, badConfig("unknown key: " + string(key))
		}
		if !ok {
			return nil, badConfig(string(key) + " is not what the manifest's schema says")
		}
	}
	return s, nil
}

// isVersion wants v and a digit first, then small letters and digits: "v1", "v1beta1".
func isVersion(s string) bool {
	if len(s) < 2 || s[0] != 'v' || !isDigit(s[1]) {
		return false
	}
	for i := 2; i < len(s); i++ {
		if !isDigit(s[i]) && s[i]-'a' > 25 {
			return false
		}
	}
	return true
}

// isParent wants segments that begin with a letter or a digit, so that none is a dot or two.
func isParent(s string) bool {
	first := true
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case isDigit(c) || (c|0x20)-'a' < 26:
			first = false
		case first:
			return false
		case c == '/':
			first = true
		case c != '.' && c != '_' && c != ':' && c != '-':
			return false
		}
	}
	return !first
}

func isDigit(c byte) bool { return c-'0' <= 9 }

func hasPrefix(s, prefix string) bool { return len(s) >= len(prefix) && s[:len(prefix)] == prefix }

// appendPath appends the path of a method of the model.
func appendPath(b []byte, s *settings, model, method string) []byte {
	b = raw(char(b, '/'), s.version)
	if s.parent != "" {
		b = raw(char(b, '/'), s.parent)
	}
	b = char(b, '/')
	b = appendResource(b, model)
	return raw(char(b, ':'), method)
}

// resource is the model's name as a resource: models/NAME, unless it says a collection itself.
func resource(model string) string {
	if hasPrefix(model, "models/") || hasPrefix(model, "tunedModels/") {
		return model
	}
	return "models/" + model
}

// appendResource appends the model's resource with all but the collection's slash escaped.
func appendResource(b []byte, model string) []byte {
	slash := false
	for _, c := range []byte(resource(model)) {
		if isDigit(c) || (c|0x20)-'a' < 26 || c == '-' || c == '_' || c == '.' || c == '~' || c == '@' || c == '/' && !slash {
			slash = slash || c == '/'
			b = append(b, c)
		} else {
			const hex = "0123456789ABCDEF"
			b = append(b, '%', hex[c>>4], hex[c&15])
		}
	}
	return b
}
