package embedding

import (
	"strconv"

	interlock "github.com/interlock-gateway/interlock/sdk/go"
	"github.com/interlock-gateway/interlock/sdk/go/json"
)

// Request is a view of an embeddings body. A json.Value is nil where the parameter is absent or
// null. Everything aliases the body.
type Request struct {
	Model      json.Value   // a string; the provider's name of it is in interlock.Call
	Input      []json.Value // at least one string, none of them empty
	Dimensions json.Value   // a whole number above 0
	User       json.Value   // a string
	Others     []Member     // members that OpenAI does not have, in order, without nulls
}

// Member is a member of an object.
type Member struct {
	Key   string
	Value json.Value
}

// Other returns the value of one of Others, nil when it is not there.
func (r *Request) Other(key string) (v json.Value) {
	for i := range r.Others {
		if r.Others[i].Key == key {
			v = r.Others[i].Value
		}
	}
	return v
}

// Supports returns unsupported_parameter for the first parameter that would change the answer
// and is not among the names: "dimensions" and Others.
func (r *Request) Supports(names ...string) error {
	if r.Dimensions != nil && !contains(names, "dimensions") {
		return interlock.Unsupported("dimensions", "")
	}
	for i := range r.Others {
		if key := r.Others[i].Key; !contains(names, key) {
			return interlock.Unsupported(key, "unknown parameter: "+key)
		}
	}
	return nil
}

func contains(names []string, name string) bool {
	for _, n := range names {
		if n == name {
			return true
		}
	}
	return false
}

// Read reads the body of an embeddings request. An error is bad_request and names the part of the
// body that is wrong; input that is given as tokens is an unsupported_parameter, since tokens mean
// nothing to another provider.
func Read(body []byte) (*Request, error) {
	root, err := json.Parse(body)
	if err != nil || !root.IsObject() {
		return nil, interlock.BadRequest("the body is not a JSON object")
	}
	r := &Request{}
	var input json.Value
	for key, v := range root.Members() {
		if v.IsNull() {
			continue
		}
		switch string(key) {
		case "model":
			if r.Model = v; !v.IsString() {
				return nil, interlock.BadParam("model", "must be a string")
			}
		case "input":
			input = v
		case "dimensions":
			if n, ok := v.Uint(); !ok || n == 0 {
				return nil, interlock.BadParam("dimensions", "must be a whole number above 0")
			}
			r.Dimensions = v
		case "encoding_format":
			if !v.Is("float") && !v.Is("base64") {
				return nil, interlock.BadParam("encoding_format", `must be "float" or "base64"`)
			}
		case "user":
			if r.User = v; !v.IsString() {
				return nil, interlock.BadParam("user", "must be a string")
			}
		default:
			r.Others = append(r.Others, Member{string(key), v})
		}
	}
	if err := r.input(input); err != nil {
		return nil, err
	}
	return r, nil
}

func (r *Request) input(v json.Value) error {
	switch v.Kind() {
	case json.Absent:
		return interlock.BadParam("input", "is missing")
	case json.String:
		r.Input = []json.Value{v}
	case json.Array:
		for item := range v.Items() {
			switch item.Kind() {
			case json.String:
				r.Input = append(r.Input, item)
			case json.Number, json.Array:
				return interlock.Unsupported("input", "this model's provider does not take tokens as input")
			default:
				return interlock.BadParam("input["+strconv.Itoa(len(r.Input))+"]", "must be a string")
			}
		}
	default:
		return interlock.BadParam("input", "must be a string or an array of strings")
	}
	if len(r.Input) == 0 {
		return interlock.BadParam("input", "must not be empty")
	}
	for i, text := range r.Input {
		if text.Empty() {
			return interlock.BadParam("input["+strconv.Itoa(i)+"]", "must not be empty")
		}
	}
	return nil
}
