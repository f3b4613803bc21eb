package fault

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"net/http"
	"strings"
)

// bedrockDialect is Amazon Bedrock's Converse and ConverseStream.
var bedrockDialect = &dialect{
	chat: func(path string) (string, bool, bool) {
		if model, ok := between(path, "/model/", "/converse"); ok {
			return model, false, true
		}
		model, ok := between(path, "/model/", "/converse-stream")
		return model, true, ok
	},
	tools: "toolConfig",
	voice: func(who identity) voice { return &bedrockVoice{identity: who} },
	trouble: func(_ int, t trouble, message string) (string, []string) {
		return `{"message":` + quoted(message) + `}`, []string{"x-amzn-errortype", bedrockType(t) + ":http://internal.amazon.com/coral/com.amazon.bedrock/"}
	},
	words:       map[trouble]string{troubleTooLong: "Input is too long for requested model", troubleNoModel: "%m is not found"},
	frame:       awsFrame,
	contentType: "application/vnd.amazon.eventstream",
}

func bedrockType(t trouble) string {
	switch t {
	case troubleAuth:
		return "UnrecognizedClientException"
	case troubleNoModel:
		return "ResourceNotFoundException"
	case troubleRateLimited:
		return "ThrottlingException"
	case troubleOverloaded:
		return "ServiceUnavailableException"
	case troubleServer:
		return "InternalServerException"
	case troubleTimeout:
		return "ModelTimeoutException"
	default:
		return "ValidationException"
	}
}

// bedrockVoice speaks Converse. A block of text has no start, and the usage comes behind the
// message's end.
type bedrockVoice struct {
	identity
	blocks  []string // closed content blocks, as JSON
	kind    string   // of the open block, "" for none
	text    strings.Builder
	finish  string
	count   usage
	failure string
}

func (v *bedrockVoice) say(e event) []sse {
	switch e.kind {
	case eventRole:
		return []sse{{"messageStart", `{"role":"assistant"}`}}
	case eventText, eventRefusal:
		return v.utter("text", e.text, `{"text":`+quoted(e.text)+`}`)
	case eventReasoning:
		return v.utter("reasoning", e.text, `{"reasoningContent":{"text":`+quoted(e.text)+`}}`)
	case eventTool:
		return v.call(e.tool)
	case eventFinish:
		v.finish = e.text
		return v.close()
	case eventUsage:
		v.count = e.usage
		return nil
	case eventDone:
		return append(v.close(), sse{"messageStop", `{"stopReason":` + v.reason() + `}`},
			sse{"metadata", `{"usage":` + v.usage() + `,"metrics":{"latencyMs":1}}`})
	case eventError:
		t, message := spoil(e.text)
		message = bedrockDialect.says(t, message, v.model, http.StatusInternalServerError)
		v.failure = `{"message":` + quoted(message) + `}`
		kind := bedrockType(t)
		return []sse{{"exception:" + strings.ToLower(kind[:1]) + kind[1:], v.failure}}
	default:
		return []sse{{data: e.text}}
	}
}

func (v *bedrockVoice) delta(delta string) sse {
	return sse{"contentBlockDelta", fmt.Sprintf(`{"contentBlockIndex":%d,"delta":%s}`, len(v.blocks), delta)}
}

func (v *bedrockVoice) utter(kind, text, delta string) (out []sse) {
	if v.kind != kind {
		out = v.close()
		v.kind = kind
	}
	v.text.WriteString(text)
	return append(out, v.delta(delta))
}

func (v *bedrockVoice) close() []sse {
	if v.kind == "" {
		return nil
	}
	out := []sse{{"contentBlockStop", fmt.Sprintf(`{"contentBlockIndex":%d}`, len(v.blocks))}}
	block := `{"text":` + quoted(v.text.String()) + `}`
	if v.kind == "reasoning" {
		block = `{"reasoningContent":{"reasoningText":` + block + `}}`
	}
	v.blocks = append(v.blocks, block)
	v.kind = ""
	v.text.Reset()
	return out
}

func (v *bedrockVoice) call(t toolCall) []sse {
	out := v.close()
	i := len(v.blocks)
	if t.id == "" {
		t.id = fmt.Sprintf("tooluse_%s_%d", v.id, i)
	}
	head := fmt.Sprintf(`"toolUseId":%s,"name":%s`, quoted(t.id), quoted(t.name))
	out = append(out, sse{"contentBlockStart", fmt.Sprintf(`{"contentBlockIndex":%d,"start":{"toolUse":{%s}}}`, i, head)})
	for _, piece := range pieces(t.arguments, t.pieces) {
		out = append(out, v.delta(`{"toolUse":{"input":`+quoted(piece)+`}}`))
	}
	v.blocks = append(v.blocks, `{"toolUse":{`+head+`,"input":`+t.arguments+`}}`)
	return append(out, sse{"contentBlockStop", fmt.Sprintf(`{"contentBlockIndex":%d}`, i)})
}

func (v *bedrockVoice) reason() string {
	return quotedOrNull(map[string]string{"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use", "content_filter": "content_filtered"}[v.finish])
}

func (v *bedrockVoice) usage() string {
	cached := max(v.count.cached, 0)
	return fmt.Sprintf(`{"inputTokens":%d,"cacheReadInputTokens":%d,"outputTokens":%d,"totalTokens":%d}`,
		v.count.prompt-cached, cached, v.count.completion, v.count.prompt+v.count.completion)
}

func (v *bedrockVoice) body() string {
	if v.failure != "" {
		return v.failure
	}
	v.close()
	return `{"output":{"message":{"role":"assistant","content":[` + strings.Join(v.blocks, ",") + `]}},"stopReason":` + v.reason() +
		`,"usage":` + v.usage() + `,"metrics":{"latencyMs":1}}`
}

// awsFrame is a message of an AWS event stream.
func awsFrame(e sse) []byte {
	kind, value := ":event-type", e.name
	what := "event"
	if exception, ok := strings.CutPrefix(e.name, "exception:"); ok {
		kind, value, what = ":exception-type", exception, "exception"
	}
	var head []byte
	for _, h := range [][2]string{{kind, value}, {":content-type", "application/json"}, {":message-type", what}} {
		head = append(append(head, byte(len(h[0]))), h[0]...)
		head = append(binary.BigEndian.AppendUint16(append(head, 7), uint16(len(h[1]))), h[1]...)
	}
	out := binary.BigEndian.AppendUint32(nil, uint32(4+4+4+len(head)+len(e.data)+4))
	out = binary.BigEndian.AppendUint32(out, uint32(len(head)))
	out = binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(out))
	out = append(append(out, head...), e.data...)
	return binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(out))
}
