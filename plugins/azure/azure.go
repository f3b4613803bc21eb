// Package azure is the adapter for Azure OpenAI and the other models of Azure AI Foundry that
// answer in OpenAI's format. It owns what Azure adds to that format: paths with deployments and
// versions, what a version does not know yet, the results of content filters, and what Azure's
// errors mean. Requests and answers otherwise pass as they are. It must not send or sign anything:
// the host does, and no credential ever comes here.
package azure

import (
	interlock "github.com/interlock-gateway/interlock/sdk/go"
	"github.com/interlock-gateway/interlock/sdk/go/json"
)

// name is the adapter's: of the extension object in requests.
const name = "azure"

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

// surface is one of the ways in which Azure serves OpenAI's format.
type surface uint8

const (
	v1          surface = iota // /openai/v1/…, whose version is optional
	deployments                // /openai/deployments/NAME/…, with a dated version
	models                     // /models/…, the Model Inference API, with a dated version
)

// settings are the operator's.
type settings struct {
	api     surface
	version string // of the API, "" for none
}

// inference is the version of the Model Inference API.
const inference = "2024-05-01-preview"

func readSettings(config []byte) (*settings, error) {
	root, err := json.Parse(config)
	if err != nil || !root.IsObject() {
		return nil, interlock.Config("the configuration is not a JSON object")
	}
	s := &settings{}
	for key, v := range root.Members() {
		switch string(key) {
		case "api":
			switch {
			case v.Is("v1"):
				s.api = v1
			case v.Is("deployments"):
				s.api = deployments
			case v.Is("models"):
				s.api = models
			default:
				return nil, interlock.Config("api must be v1, deployments or models")
			}
		case "api_version":
			s.version = v.String()
			if s.version == "" {
				return nil, interlock.Config("api_version must be a string that is not empty")
			}
		default:
			return nil, interlock.Config("unknown key: " + string(key))
		}
	}
	named := s.version == "preview" || s.version == "latest" || s.version == "v1"
	switch {
	case s.version != "" && !named && !isDated(s.version):
		return nil, interlock.Config("api_version must be a date such as 2024-10-21 or 2025-04-01-preview, or, with api v1, preview, latest or v1")
	case s.api == v1 && isDated(s.version):
		return nil, interlock.Config("api_version is a date: that goes with api deployments or models")
	case s.api != v1 && named:
		return nil, interlock.Config("api_version " + s.version + " goes with api v1: here it must be a date")
	case s.api == deployments && s.version == "":
		return nil, interlock.Config("api deployments needs an api_version, such as 2024-10-21")
	case s.api == models && s.version == "":
		s.version = inference
	}
	return s, nil
}

// isDated wants YYYY-MM-DD, or that and -preview.
func isDated(v string) bool {
	const date = len("2024-10-21")
	if len(v) < date || v[date:] != "" && v[date:] != "-preview" {
		return false
	}
	for i := range date {
		if i == 4 || i == 7 {
			if v[i] != '-' {
				return false
			}
		} else if v[i]-'0' > 9 {
			return false
		}
	}
	return true
}

// since says whether the API that is configured has what came with that date. Only deployments
// are served by versions that were frozen.
func (s *settings) since(date string) bool { return s.api != deployments || s.version >= date }

// appendPath appends the path of a method, "chat/completions", of a deployment.
func (s *settings) appendPath(b []byte, method, deployment string) []byte {
	switch {
	case s.api == v1:
		b = append(b, "/openai/v1/"...)
	case s.api == models:
		b = append(b, "/models/"...)
	case method == "responses": // the deployment is in the body
		b = append(b, "/openai/"...)
	default:
		b = append(b, "/openai/deployments/"...)
		b = append(appendEscaped(b, deployment), '/')
	}
	b = append(b, method...)
	if s.version != "" {
		b = append(append(b, "?api-version="...), s.version...)
	}
	return b
}

// appendEscaped appends a segment of a path.
func appendEscaped(b []byte, segment string) []byte {
	const hex = "0123456789ABCDEF"
	dots := segment == "." || segment == ".."
	for i := range len(segment) {
		c := segment[i]
		if c-'0' <= 9 || (c|0x20)-'a' < 26 || c == '-' || c == '_' || c == '~' || c == '.' && !dots {
			b = append(b, c)
		} else {
			b = append(b, '%', hex[c>>4], hex[c&15])
		}
	}
	return b
}
