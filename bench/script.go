package main

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// What the streams are made of.
const (
	streamEvents = 20                     // of a stream before its finish and [DONE]
	eightEvents  = 80                     // of one whose events come eight at a time
	paceEvents   = 5 * time.Millisecond   // between the events of a paced stream, and between eights
	paceSlow     = 500 * time.Millisecond // between the events of a slow stream
)

// The models, by which a request says what it wants. What begins so is meant; out- is followed
// by the bytes of the answer's text.
const (
	modelPlain = "bench"
	modelPaced = "bench-paced"
	modelSlow  = "bench-slow"
	modelEight = "bench-eight"
	modelOut   = "bench-out-"
)

// What every answer's text is made of: the load looks for these.
const (
	token   = " token"
	lastTok = "the end."
)

// answerText is half a kilobyte of answer with its envelope, as short answers are, so that
// bytes do not hide the price of a request.
const answerText = "A proxy reads what it is sent, sends what it has read, and is judged by what it costs to stand between. This one is read to " + lastTok

// script holds the bytes of every answer in one dialect, made once.
type script struct {
	answer      []byte
	head, event []byte
	eight       []byte // eight events
	finish      []byte
	usage       []byte // finish with a usage chunk
	answers     map[int][]byte
	wrap        func(text string) string
}

const (
	jsonHead   = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nX-Request-Id: req_123\r\nContent-Length: "
	streamHead = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nX-Request-Id: req_123\r\nTransfer-Encoding: chunked\r\n\r\n"
)

func whole(body string) []byte {
	return []byte(jsonHead + strconv.Itoa(len(body)) + "\r\n\r\n" + body)
}

func chunk(s string) string { return fmt.Sprintf("%x\r\n%s\r\n", len(s), s) }

// sized is the answer whose text has n bytes.
func (s *script) sized(n int) []byte {
	b, ok := s.answers[n]
	if !ok {
		b = whole(s.wrap(strings.Repeat("All work and no play. ", n/22+1)[:max(n-len(lastTok), 0)] + lastTok))
		s.answers[n] = b
	}
	return b
}

// openaiScript is chat completions in OpenAI's format.
func openaiScript() *script {
	const name = `"created":1700000000,"model":"` + modelPlain + `"`
	wrap := func(text string) string {
		return `{"id":"chatcmpl-123","object":"chat.completion",` + name + `,"choices":[{"index":0,"message":{"role":"assistant","content":"` + text + `"},"finish_reason":"stop"}],"usage":{"prompt_tokens":29,"completion_tokens":47,"total_tokens":76}}`
	}
	event := func(delta, finish string) string {
		return chunk(`data: {"id":"chatcmpl-123","object":"chat.completion.chunk",` + name + `,"choices":[{"index":0,"delta":` + delta + `,"finish_reason":` + finish + `}]}` + "\n\n")
	}
	one := event(`{"content":"`+token+`"}`, "null")
	end, done := event(`{}`, `"stop"`), chunk("data: [DONE]\n\n")+"0\r\n\r\n"
	usage := chunk(`data: {"id":"chatcmpl-123","object":"chat.completion.chunk",` + name + `,"choices":[],"usage":{"prompt_tokens":29,"completion_tokens":20,"total_tokens":49}}` + "\n\n")
	return &script{
		answer: whole(wrap(answerText)), head: []byte(streamHead), event: []byte(one), eight: []byte(strings.Repeat(one, 8)),
		finish: []byte(end + done), usage: []byte(end + usage + done), answers: map[int][]byte{}, wrap: wrap,
	}
}

// anthropicScript is the Messages API in Anthropic's format.
func anthropicScript() *script {
	wrap := func(text string) string {
		return `{"id":"msg_123","type":"message","role":"assistant","model":"` + modelPlain + `","content":[{"type":"text","text":"` + text + `"}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":29,"output_tokens":47}}`
	}
	event := func(kind, rest string) string {
		return chunk("event: " + kind + "\ndata: {\"type\":\"" + kind + `"` + rest + "}\n\n")
	}
	begin := event("message_start", `,"message":{"id":"msg_123","type":"message","role":"assistant","model":"`+modelPlain+`","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":29,"output_tokens":1}}`) +
		event("content_block_start", `,"index":0,"content_block":{"type":"text","text":""}`)
	one := event("content_block_delta", `,"index":0,"delta":{"type":"text_delta","text":"`+token+`"}`)
	end := event("content_block_stop", `,"index":0`) +
		event("message_delta", `,"delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":20}`) +
		event("message_stop", "") + "0\r\n\r\n"
	return &script{
		answer: whole(wrap(answerText)), head: []byte(streamHead + begin), event: []byte(one), eight: []byte(strings.Repeat(one, 8)),
		finish: []byte(end), usage: []byte(end), answers: map[int][]byte{}, wrap: wrap,
	}
}

var unavailable = []byte("HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nContent-Length: 68\r\n\r\n" +
	`{"error":{"message":"down for the benchmark","type":"server_error"}}`)

// wish is what a request asks of the upstream.
type wish struct {
	model  string
	stream bool
	usage  bool
}

// readWish finds model, stream and include_usage in the bytes of a body: by eye, not by JSON,
// since the load's bodies are known and the upstream is to be cheap. A proxy may have put a
// blank behind the colons.
func readWish(body []byte, w *wish) {
	if rest, ok := member(body, `"model":`); ok && w.model == "" && len(rest) > 0 {
		name, _, _ := bytes.Cut(rest[1:min(len(rest), 64)], []byte(`"`))
		w.model = string(name)
	}
	isTrue := func(name string) bool {
		rest, ok := member(body, name)
		return ok && bytes.HasPrefix(rest, []byte("true"))
	}
	w.stream = w.stream || isTrue(`"stream":`)
	w.usage = w.usage || isTrue(`"include_usage":`)
}

func member(body []byte, name string) ([]byte, bool) {
	_, rest, ok := bytes.Cut(body, []byte(name))
	return bytes.TrimPrefix(rest, []byte(" ")), ok
}
