package main

import (
	interlock "github.com/interlock-gateway/interlock/sdk/go"
	"github.com/interlock-gateway/interlock/sdk/go/json"
)

// New makes the plugin for one configuration, a JSON object: what the operator wrote under
// `config`, {} where there is nothing. Refuse what you do not know, so that a misspelt key is
// found before the first request.
func New(config []byte) (interlock.Plugin, error) {
	root, err := json.Parse(config)
	if err != nil || !root.IsObject() {
		return interlock.Plugin{}, interlock.Config("the configuration is not a JSON object")
	}
	a := adapter{version: "2026-01"}
	for key, v := range root.Members() {
		switch {
		case string(key) == "version" && v.IsString() && !v.Empty():
			a.version = v.String()
		case string(key) == "version":
			return interlock.Plugin{}, interlock.Config("version must be a string such as 2026-01")
		default:
			return interlock.Plugin{}, interlock.Config("unknown key: " + string(key))
		}
	}
	return interlock.Plugin{
		Request:  a.request,
		Response: response,
		Events:   events,
		Classify: classify,
	}, nil
}

// adapter holds what the configuration says. Nothing of it changes afterwards.
type adapter struct{ version string }
