// Package mistral is the adapter for Mistral's API: chat completions and embeddings. It owns what
// that dialect of OpenAI's format has of its own (names, the shape of reasoning, documents, IDs of
// calls, the order of messages), and what its errors mean. It frames, sends and signs nothing: the
// gateway does. README.md says what maps to what.
package mistral

import (
	interlock "github.com/interlock-gateway/interlock/sdk/go"
	"github.com/interlock-gateway/interlock/sdk/go/json"
)

// name is the adapter's: of the extension object in requests, and in provider_data.
const name = "mistral"

// New makes the plugin. README.md describes the configuration.
func New(config []byte) (interlock.Plugin, error) {
	s, err := readSettings(config)
	if err != nil {
		return interlock.Plugin{}, err
	}
	return interlock.Plugin{
		Request: func(c *interlock.Call, body []byte, out *interlock.Request) error {
			if c.Endpoint == "embeddings" {
				return embed(c, body, out)
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
	safePrompt json.Value // true or false, or nil
	guardrails json.Value // an array, or nil
}

func readSettings(config []byte) (*settings, error) {
	root, err := json.Parse(append([]byte(nil), config...))
	if err != nil || !root.IsObject() {
		return nil, interlock.Config("the configuration is not a JSON object")
	}
	s := &settings{}
	for key, v := range root.Members() {
		switch string(key) {
		case "safe_prompt":
			if s.safePrompt = v; v.Kind() != json.Bool {
				return nil, interlock.Config("safe_prompt must be true or false")
			}
		case "guardrails":
			if s.guardrails = v; !v.IsArray() {
				return nil, interlock.Config("guardrails must be an array")
			}
		default:
			return nil, interlock.Config("unknown key: " + string(key))
		}
	}
	return s, nil
}
