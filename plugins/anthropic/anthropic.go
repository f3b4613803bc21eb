// Package anthropic is the adapter for Anthropic's Messages API. It owns the mapping between
// OpenAI's chat completions and that API, and what its errors mean. It must not frame or send
// anything: the host does, and no credential ever comes here.
package anthropic

import (
	interlock "github.com/interlock-gateway/interlock/sdk/go"
	"github.com/interlock-gateway/interlock/sdk/go/json"
)

// name is the adapter's: of the extension object in requests, and in provider_data.
const name = "anthropic"

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
	version   string
	beta      string // a list with commas, "" without
	maxTokens uint64 // 0 = by the model
	viaTool   bool   // a JSON schema is given as a tool that the model has to call
	auto      bool   // the style goes by the model's name
	style     style  // otherwise
}

func readSettings(config []byte) (*settings, error) {
	root, err := json.Parse(config)
	if err != nil || !root.IsObject() {
		return nil, interlock.Config("the configuration is not a JSON object")
	}
	s := &settings{version: "2023-06-01", auto: true}
	for key, v := range root.Members() {
		switch string(key) {
		case "version":
			if s.version = v.String(); !isToken(s.version, 64) {
				return nil, interlock.Config("version must be letters, digits, points and dashes")
			}
		case "beta":
			if s.beta, err = readBeta(v); err != nil {
				return nil, err
			}
		case "max_tokens":
			n, ok := v.Uint()
			if !ok || n == 0 || n > 1<<32 {
				return nil, interlock.Config("max_tokens must be a whole number above 0")
			}
			s.maxTokens = n
		case "structured_output":
			if s.viaTool = v.Is("tool"); !s.viaTool && !v.Is("native") {
				return nil, interlock.Config("structured_output must be native or tool")
			}
		case "reasoning":
			if s.style, s.auto = styleNamed(v.String()); !s.auto && s.style == 0 {
				return nil, interlock.Config("reasoning must be auto, budget, adaptive or none")
			}
		default:
			return nil, interlock.Config("unknown key: " + string(key))
		}
	}
	return s, nil
}

func readBeta(v json.Value) (list string, err error) {
	if !v.IsArray() {
		return "", interlock.Config("beta must be an array of strings")
	}
	for item := range v.Items() {
		word := item.String()
		if !isToken(word, 128) {
			return "", interlock.Config("beta must be an array of names such as files-api-2025-04-14")
		}
		if list != "" {
			list += ","
		}
		list += word
	}
	return list, nil
}

// isToken says whether s may stand in a header: 1 to most letters, digits, points, dashes and
// underscores.
func isToken(s string, most int) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; !isWord(c) && c != '-' && c != '_' && c != '.' {
			return false
		}
	}
	return s != "" && len(s) <= most
}

func isWord(c byte) bool { return c-'0' <= 9 || c-'a' < 26 || c-'A' < 26 }

// isID says whether c may stand in the ID of a call.
func isID(c byte) bool { return isWord(c) || c == '_' || c == '-' }
