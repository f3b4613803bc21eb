package gemini

import (
	"strconv"

	interlock "github.com/interlock-gateway/interlock/sdk/go"
	"github.com/interlock-gateway/interlock/sdk/go/json"
)

// The types of the items of provider_data.
const (
	typeThought  = "thought"       // a signature on a part of the reasoning
	typeUnsigned = "unsigned"      // says whose the reasoning's bytes before a signed part are
	typeText     = "text"          // a signature on a part of the text, which may be empty
	typeCall     = "function_call" // a signature on a call, or that its ID is the provider's
	typePart     = "part"          // a part of the provider's own tools
)

func item(kind string) []byte {
	b := json.AppendText([]byte{'{'}, "provider", name)
	return json.AppendText(b, "type", kind)
}

func reasoningItem(kind string, signature json.Value, size uint64) json.Value {
	b := json.AppendMember(item(kind), "signature", signature)
	return char(json.AppendUint(b, "reasoning_bytes", size), '}')
}

func textItem(signature json.Value, start, size uint64, calls int) json.Value {
	b := json.AppendMember(item(typeText), "signature", signature)
	b = json.AppendUint(b, "text_start", start)
	b = json.AppendUint(b, "text_bytes", size)
	return char(json.AppendUint(b, "calls", uint64(calls)), '}')
}

func partItem(part json.Value, start uint64, calls int) json.Value {
	b := json.AppendMember(item(typePart), "part", part)
	b = json.AppendUint(b, "text_start", start)
	return char(json.AppendUint(b, "calls", uint64(calls)), '}')
}

func callItem(signature, id json.Value, own bool) json.Value {
	b := json.AppendMember(item(typeCall), "tool_call_id", id)
	if own {
		b = json.AppendBool(b, "own_id", true)
	}
	return char(json.AppendMember(b, "signature", signature), '}')
}

// callID makes the ID of a choice's n-th call, a JSON string, for which the provider gave none.
func callID(c *interlock.Call, choice, n int) json.Value {
	b := json.AppendEscaped([]byte(`"call_`), c.RequestID)
	b = strconv.AppendInt(char(b, '_'), int64(choice), 10)
	b = strconv.AppendInt(char(b, '_'), int64(n), 10)
	return char(b, '"')
}
