// Package bedrock is the adapter for Amazon Bedrock's Converse and ConverseStream. It owns the
// mapping between OpenAI's chat completions and that API, and what its errors mean. It must not
// sign, frame or send anything: the host does, and no credential ever comes here. Models that
// Bedrock offers in other formats (InvokeModel, the OpenAI-compatible endpoint) are not its matter.
package bedrock

import (
	interlock "github.com/interlock-gateway/interlock/sdk/go"
	"github.com/interlock-gateway/interlock/sdk/go/json"
)

// name is the adapter's: of the extension object in requests, and in provider_data.
const name = "bedrock"

// New makes the plugin. README.md describes the configuration.
func New(config []byte) (interlock.Plugin, error) {
	s, err := readSettings(config)
	if err != nil {
		return interlock.Plugin{}, err
	}
	return interlock.Plugin{
		Request: func(c *interlock.Call, body []byte, out *interlock.Request) error {
			return request(c, s, body, out)
		},
		Response: response,
		Events:   events,
		Classify: classify,
	}, nil
}

// settings are the operator's.
type settings struct {
	maxTokens json.Value // a number, or nil
	reasoning string     // a key of reasoningStyles, "" = by the model's name
	viaTool   bool       // a JSON schema is given as a tool that the model has to call
	guardrail json.Value // an object, or nil
}

func readSettings(config []byte) (*settings, error) {
	root, err := json.Parse(append([]byte(nil), config...))
	if err != nil || !root.IsObject() {
		return nil, interlock.Config("the configuration is not a JSON object")
	}
	s := &settings{}
	for key, v := range root.Members() {
		switch string(key) {
		case "max_tokens":
			if n, ok := v.Uint(); !ok || n == 0 {
				return nil, interlock.Config("max_tokens must be a whole number above 0")
			}
			s.maxTokens = v
		case "reasoning":
			s.reasoning = v.String()
			if s.reasoning == "auto" {
				s.reasoning = ""
			} else if _, ok := styleNamed(s.reasoning); !ok {
				return nil, interlock.Config("reasoning must be auto, budget, adaptive, nova, config, effort or none")
			}
		case "structured_output":
			s.viaTool = v.Is("tool")
			if !s.viaTool && !v.Is("native") {
				return nil, interlock.Config("structured_output must be native or tool")
			}
		case "guardrail_config":
			if s.guardrail = v; !v.IsObject() {
				return nil, interlock.Config("guardrail_config must be an object")
			}
		default:
			return nil, interlock.Config("unknown key: " + string(key))
		}
	}
	return s, nil
}
