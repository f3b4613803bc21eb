package conformance

import (
	"encoding/json"
	"errors"
	"fmt"

	interlock "github.com/interlock-gateway/interlock/sdk/go"
)

// Caller answers an operation as the ABI has it: in is the input, the result is appended to dst.
// failed says that the result is an error of the plugin's own. err says that there is no result:
// a trap, an exhausted budget, a result out of bounds. That is never right.
type Caller interface {
	Call(op uint32, in, dst []byte) (out []byte, failed bool, err error)
}

// Plugin is what is checked.
type Plugin struct {
	// Manifest is what describe has to answer, JSON.
	Manifest []byte
	// Open returns a new instance, or anything that hands calls to instances, with that
	// configuration. An error that the plugin gave is an *interlock.Error.
	Open func(config []byte) (Caller, error)
}

// Native is a plugin that is linked in.
func Native(manifest string, m interlock.Maker) Plugin {
	return Plugin{
		Manifest: []byte(manifest),
		Open: func(config []byte) (Caller, error) {
			g := native{interlock.NewGuest(manifest, m)}
			in := interlock.Writer(defaultContext().encode(""))
			in.Bytes(config)
			out, failed, err := g.Call(interlock.OpConfigure, in, nil)
			if err != nil {
				return nil, err
			}
			if failed {
				return nil, decodeError(out)
			}
			return g, nil
		},
	}
}

type native struct{ g *interlock.Guest }

func (n native) Call(op uint32, in, dst []byte) (out []byte, failed bool, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	out, failed = n.g.Call(op, in, dst)
	return out, failed, nil
}

var errResult = errors.New("the result is not in the ABI's encoding")

// decodeError reads an error's result.
func decodeError(out []byte) error {
	r := interlock.NewReader(out)
	e := interlock.Error{Code: r.Str(), Message: r.Str(), Param: r.Str(), Status: r.U32()}
	if !r.OK() {
		return errResult
	}
	switch e.Code {
	case interlock.CodeBadRequest, interlock.CodeUnsupportedParameter, interlock.CodeUnsupported,
		interlock.CodeUpstreamMalformed, interlock.CodeConfig, interlock.CodeInternal:
		return &e
	}
	return fmt.Errorf("the error code %q is none of the ABI's", e.Code)
}

// manifest is what the checks need of one.
type manifest struct {
	Name           string                 `json:"name"`
	Version        string                 `json:"version"`
	ABI            string                 `json:"abi"`
	Kind           string                 `json:"kind"`
	Operations     []string               `json:"operations"`
	RequestHeaders []string               `json:"request_headers"`
	Limits         struct{ State string } `json:"limits"`
	ConfigSchema   struct {
		AdditionalProperties *json.RawMessage `json:"additionalProperties"`
	} `json:"config_schema"`
}

var operations = map[string]uint32{
	"request": interlock.OpRequest, "response": interlock.OpResponse, "events": interlock.OpEvents,
	"classify": interlock.OpClassify, "guard_request": interlock.OpGuardRequest,
	"guard_response": interlock.OpGuardResponse, "guard_events": interlock.OpGuardEvents,
}

func (m *manifest) has(op string) bool {
	for _, o := range m.Operations {
		if o == op {
			return true
		}
	}
	return false
}

// maxState is how large a state may be, in bytes.
func (m *manifest) maxState() int {
	n, unit := 0, ""
	if _, err := fmt.Sscanf(m.Limits.State, "%d%s", &n, &unit); err != nil {
		return interlock.MaxState
	}
	switch unit {
	case "KiB":
		n <<= 10
	case "MiB":
		n <<= 20
	case "kB":
		n *= 1000
	}
	return min(n, interlock.MaxState)
}
