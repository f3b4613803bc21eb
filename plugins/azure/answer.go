package azure

import (
	interlock "github.com/interlock-gateway/interlock/sdk/go"
	"github.com/interlock-gateway/interlock/sdk/go/json"
)

// response passes a whole answer as it is. What it looks for is a failure inside of it, and calls
// of tools without arguments.
func response(c *interlock.Call, in *interlock.Answer, dst []byte) ([]byte, error) {
	root, err := json.Parse(in.Body)
	if err != nil || !root.IsObject() {
		return nil, interlock.Malformed("the answer is not a JSON object")
	}
	list := "choices"
	switch c.Endpoint {
	case "embeddings":
		list = "data"
	case "responses":
		list = "output"
	}
	var results, failed json.Value
	for key, v := range root.Members() {
		switch string(key) {
		case list:
			results = v
		case "error":
			if !v.IsNull() {
				failed = v
			}
		}
	}
	if failed != nil {
		f := read(root)
		return nil, &f
	}
	if !results.IsArray() {
		return nil, interlock.Malformed("the answer has no " + list)
	}
	if c.Endpoint != "chat_completions" || !bareWhole(results) {
		return append(dst, root...), nil
	}
	return appendWhole(dst, root), nil
}

// bareWhole says whether a call in one of the choices has "" for arguments.
func bareWhole(choices json.Value) bool {
	for c := range choices.Items() {
		for call := range c.Get("message").Get("tool_calls").Items() {
			if isBare(call) {
				return true
			}
		}
	}
	return false
}

// isBare says whether a call of a function has no arguments, which should be an object.
func isBare(call json.Value) bool {
	f := call.Get("function")
	return f.IsObject() && f.Get("arguments").Empty()
}

// appendWhole appends an answer with `{}` where a call has no arguments.
func appendWhole(b []byte, root json.Value) []byte {
	return edit(b, root, "choices", func(b []byte, choices json.Value) []byte {
		return each(b, choices, func(b []byte, choice json.Value) []byte {
			return edit(b, choice, "message", func(b []byte, m json.Value) []byte {
				return edit(b, m, "tool_calls", appendFilled)
			})
		})
	})
}

// appendFilled appends calls with `{}` where one has no arguments.
func appendFilled(b []byte, calls json.Value) []byte {
	return each(b, calls, func(b []byte, call json.Value) []byte {
		if !isBare(call) {
			return append(b, call...)
		}
		return edit(b, call, "function", func(b []byte, f json.Value) []byte {
			b = append(b, '{')
			for key, v := range f.Members() {
				if string(key) != "arguments" {
					b = append(append(json.AppendQuote(json.AppendComma(b), key), ':'), v...)
				}
			}
			return append(json.AppendText(b, "arguments", "{}"), '}')
		})
	})
}

// edit appends an object with its member key as with appends it. What is no object is appended as
// it is.
func edit(b []byte, v json.Value, key string, with func([]byte, json.Value) []byte) []byte {
	if !v.IsObject() {
		return append(b, v...)
	}
	b = append(b, '{')
	for k, v := range v.Members() {
		b = append(json.AppendQuote(json.AppendComma(b), k), ':')
		if string(k) == key {
			b = with(b, v)
		} else {
			b = append(b, v...)
		}
	}
	return append(b, '}')
}

// each appends an array with its elements as with appends them.
func each(b []byte, v json.Value, with func([]byte, json.Value) []byte) []byte {
	if !v.IsArray() {
		return append(b, v...)
	}
	b = append(b, '[')
	for item := range v.Items() {
		b = with(json.AppendComma(b), item)
	}
	return append(b, ']')
}
