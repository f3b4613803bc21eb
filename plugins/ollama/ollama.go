// Package ollama is the adapter for Ollama's own API: /api/chat and /api/embed. It owns the mapping
// between OpenAI's format and that API, and what its errors mean. It must not frame or send
// anything: the host does. Ollama's OpenAI-compatible endpoint is not its matter.
package ollama

import (
	interlock "github.com/interlock-gateway/interlock/sdk/go"
	"github.com/interlock-gateway/interlock/sdk/go/json"
)

// name is the adapter's: of the extension object in requests.
const name = "ollama"

// New makes the plugin. README.md describes the configuration.
func New(config []byte) (interlock.Plugin, error) {
	s, err := readSettings(config)
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

// settings are the operator's.
type settings struct {
	options   json.Value // an object, or nil
	keepAlive json.Value // a string, a number, or nil
	reasoning style
}

// style is how a model is told how much to think.
type style uint8

const (
	auto     style = iota // by the model's name
	switched              // whether
	levelled              // how much
	unable                // not at all
)

func readSettings(config []byte) (*settings, error) {
	root, err := json.Parse(config)
	if err != nil || !root.IsObject() {
		return nil, interlock.Config("the configuration is not a JSON object")
	}
	s := &settings{}
	for key, v := range root.Members() {
		switch string(key) {
		case "options":
			if s.options = v; !v.IsObject() {
				return nil, interlock.Config("options must be an object")
			}
		case "keep_alive":
			if s.keepAlive = v; !v.IsString() && !v.IsNumber() {
				return nil, interlock.Config(`keep_alive must be a duration such as "10m", or a number of seconds`)
			}
		case "reasoning":
			switch {
			case v.Is("auto"):
				s.reasoning = auto
			case v.Is("switch"):
				s.reasoning = switched
			case v.Is("level"):
				s.reasoning = levelled
			case v.Is("none"):
				s.reasoning = unable
			default:
				return nil, interlock.Config("reasoning must be auto, switch, level or none")
			}
		default:
			return nil, interlock.Config("unknown key: " + string(key))
		}
	}
	return s, nil
}

// style is how that model is told how much to think. Of the models that take a level, gpt-oss is
// the one that cannot be switched.
func (s *settings) style(model string) style {
	if s.reasoning != auto {
		return s.reasoning
	}
	if contains(model, "gpt-oss") {
		return levelled
	}
	return switched
}

func contains(s, part string) bool {
	for i := 0; i+len(part) <= len(s); i++ {
		if s[i:i+len(part)] == part {
			return true
		}
	}
	return false
}
