// Package cohere is the adapter for Cohere's API of version 2: chat and embed. It owns the mapping
// between OpenAI's format and that API, and what its errors mean. It frames, sends and signs
// nothing: the gateway does. Version 1 and reranking are not its matter. README.md says what maps
// to what.
package cohere

import (
	interlock "github.com/interlock-gateway/interlock/sdk/go"
	"github.com/interlock-gateway/interlock/sdk/go/json"
)

// name is the adapter's: of the extension object in requests, and in provider_data.
const name = "cohere"

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
	reasoning  string     // "auto", "thinking" or "none"
	safetyMode json.Value // a string, or nil
	inputType  json.Value // a string: of embeddings
}

func readSettings(config []byte) (*settings, error) {
	root, err := json.Parse(append([]byte(nil), config...))
	if err != nil || !root.IsObject() {
		return nil, interlock.Config("the configuration is not a JSON object")
	}
	s := &settings{reasoning: "auto", inputType: json.Value(`"search_document"`)}
	for key, v := range root.Members() {
		text := v.String()
		switch string(key) {
		case "reasoning":
			if s.reasoning = text; text != "auto" && text != "thinking" && text != "none" {
				return nil, interlock.Config("reasoning must be auto, thinking or none")
			}
		case "safety_mode":
			if s.safetyMode = v; text != "CONTEXTUAL" && text != "STRICT" && text != "OFF" {
				return nil, interlock.Config("safety_mode must be CONTEXTUAL, STRICT or OFF")
			}
		case "input_type":
			if s.inputType = v; !isInputType(text) {
				return nil, interlock.Config("input_type must be search_document, search_query, classification or clustering")
			}
		default:
			return nil, interlock.Config("unknown key: " + string(key))
		}
	}
	return s, nil
}

func isInputType(word string) bool {
	switch word {
	case "search_document", "search_query", "classification", "clustering":
		return true
	}
	return false
}
