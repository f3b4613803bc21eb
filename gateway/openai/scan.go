package openai

import (
	"strconv"

	"github.com/interlock-gateway/interlock/gateway/openai/jsonx"
)

// maxModelName is the longest model name that a caller may send, in bytes.
const maxModelName = 512

// bytesPerToken is the usual rough ratio for English text.
const bytesPerToken = 4

// member is a top-level member of a request that the gateway reads.
type member uint8

const (
	unread member = iota
	modelMember
	streamMember
	streamOptionsMember
	messagesMember
	inputMember
	promptMember
	instructionsMember
	toolsMember
	functionsMember
	webSearchMember
	parallelMember
	responseFormatMember
	textMember
	backgroundMember
	conversationMember
	storeMember
	previousResponseMember
	encodingMember
	choicesMember
	maxTokensMember
	maxCompletionTokensMember
	maxOutputTokensMember
	userMember
	promptCacheKeyMember
	modalitiesMember
)

func memberOf(key []byte) member {
	switch string(key) {
	case "model":
		return modelMember
	case "stream":
		return streamMember
	case "stream_options":
		return streamOptionsMember
	case "messages":
		return messagesMember
	case "input":
		return inputMember
	case "prompt":
		return promptMember
	case "instructions":
		return instructionsMember
	case "tools":
		return toolsMember
	case "functions":
		return functionsMember
	case "web_search_options":
		return webSearchMember
	case "parallel_tool_calls":
		return parallelMember
	case "response_format":
		return responseFormatMember
	case "text":
		return textMember
	case "background":
		return backgroundMember
	case "conversation":
		return conversationMember
	case "store":
		return storeMember
	case "previous_response_id":
		return previousResponseMember
	case "encoding_format":
		return encodingMember
	case "n":
		return choicesMember
	case "max_tokens":
		return maxTokensMember
	case "max_completion_tokens":
		return maxCompletionTokensMember
	case "max_output_tokens":
		return maxOutputTokensMember
	case "user":
		return userMember
	case "prompt_cache_key":
		return promptCacheKeyMember
	case "modalities":
		return modalitiesMember
	}
	return unread
}

// scan is one walk over a body.
type scan struct {
	r    *Request
	json jsonx.Reader
	seen uint32 // members so far, one bit each
	// filled are the members that hold something: not null, not empty.
	filled    uint32
	textBytes int64
	tokens    int64
}

// ScanRequest validates a caller's whole body and fills r, in one pass and without allocating.
// The error, nil when the body is acceptable, has code InvalidRequest and names the field in
// Param:
//
//   - the body is one JSON object, nested at most jsonx.MaxDepth deep;
//   - no member that the gateway reads stands in it twice, escapes decoded: a provider might take
//     the other one;
//   - model is a string that is not empty;
//   - messages (chat completions) is an array that is not empty; input (responses, embeddings,
//     moderations) and prompt (completions) are text or an array. Responses may do without input
//     where they name a prompt, a conversation or a previous response;
//   - every other member that the gateway reads has its type, or is null: what is made of another
//     here is not what a provider makes of it.
//
// Everything else is the provider's to judge.
func ScanRequest(e Endpoint, body []byte, r *Request) *Error {
	*r = Request{Endpoint: e, Choices: 1}
	s := scan{r: r}
	s.json.Reset(body)
	if k := s.json.Peek(); k != jsonx.Object {
		if k == jsonx.None {
			s.json.Skip()
			return s.malformed()
		}
		return invalid("", "the body must be a JSON object")
	}
	s.json.Enter()
	for {
		key, _, ok := s.json.Key()
		if !ok {
			break
		}
		if err := s.member(key); err != nil {
			return err
		}
		r.lastValue = s.json.Pos()
	}
	if !s.json.End() {
		return s.malformed()
	}
	r.Stream = r.Stream && e.Streams()
	r.InputTokens = (s.textBytes+bytesPerToken-1)/bytesPerToken + s.tokens
	return s.complete()
}

func invalid(param, message string) *Error {
	e := NewError(InvalidRequest, message)
	e.Param = param
	return e
}

func (s *scan) malformed() *Error {
	f, at := s.json.Fault()
	return invalid("", "the body is not valid JSON: "+f.String()+" at byte "+strconv.Itoa(at))
}

// member reads the value of one member.
func (s *scan) member(key []byte) *Error {
	m := memberOf(key)
	if m == unread {
		s.json.Skip()
		return nil
	}
	if s.seen&(1<<m) != 0 {
		name := string(key)
		return invalid(name, "the body names "+name+" twice")
	}
	s.seen |= 1 << m
	if k := s.json.Peek(); k != jsonx.Null && k != jsonx.None {
		s.filled |= 1 << m
		if want := shapeOf(m, s.r.Endpoint); want.kinds != 0 && want.kinds&(1<<k) == 0 {
			name := string(key)
			return s.unless(name, name+" must be "+want.words)
		}
	}
	switch m {
	case modelMember:
		return s.model()
	case streamOptionsMember:
		return s.streamOptions()
	case messagesMember:
		return s.messages()
	case inputMember:
		if e := s.r.Endpoint; e == Responses || e == Embeddings || e == Moderations {
			return s.input("input")
		}
	case promptMember:
		if s.r.Endpoint == Completions {
			return s.input("prompt")
		}
	}
	s.fact(m)
	return nil
}

// shape is what a member may be besides null, and how an error says so.
type shape struct {
	kinds uint8 // a bit for each jsonx.Kind; 0 = not checked here
	words string
}

var (
	aString        = shape{1 << jsonx.String, "a string"}
	aNumber        = shape{1 << jsonx.Number, "a number"}
	aBoolean       = shape{1 << jsonx.Bool, "true or false"}
	anArray        = shape{1 << jsonx.Array, "an array"}
	anObject       = shape{1 << jsonx.Object, "an object"}
	stringOrArray  = shape{1<<jsonx.String | 1<<jsonx.Array, "a string or an array"}
	stringOrObject = shape{1<<jsonx.String | 1<<jsonx.Object, "a string or an object"}
)

// shapeOf is the shape of a member. Model, messages, input and the prompt of completions are not
// here: more is checked of them, by their own readers. The names that mean something on one
// endpoint only are free on the others.
func shapeOf(m member, e Endpoint) shape {
	switch m {
	case streamMember, parallelMember, backgroundMember, storeMember:
		return aBoolean
	case streamOptionsMember, webSearchMember, responseFormatMember:
		return anObject
	case toolsMember, functionsMember, modalitiesMember:
		return anArray
	case previousResponseMember, encodingMember, userMember, promptCacheKeyMember:
		return aString
	case choicesMember, maxTokensMember, maxCompletionTokensMember, maxOutputTokensMember:
		return aNumber
	case conversationMember:
		return stringOrObject
	case textMember, promptMember:
		if e == Responses {
			return anObject
		}
	case instructionsMember:
		if e == Responses {
			return stringOrArray
		}
	}
	return shape{}
}

// fact reads a member whose type is right.
func (s *scan) fact(m member) {
	r := s.r
	switch m {
	case streamMember:
		r.Stream = s.json.TrueOrSkip()
	case instructionsMember:
		s.content()
	case toolsMember:
		s.tools()
	case functionsMember:
		r.functionsAt = s.span()
		r.Tools = r.Tools || r.functionsAt.Present()
		s.textBytes += int64(r.functionsAt.To - r.functionsAt.From)
	case webSearchMember:
		r.HostedTools = r.HostedTools || s.named()
	case parallelMember:
		r.ParallelToolCalls = s.json.TrueOrSkip()
	case responseFormatMember:
		s.responseFormat()
	case textMember:
		s.textConfig()
	case backgroundMember:
		r.Background = s.json.TrueOrSkip()
	case conversationMember:
		r.Conversation = s.named()
	case storeMember:
		r.Store = s.json.TrueOrSkip()
	case previousResponseMember:
		r.PreviousResponse = s.named()
	case encodingMember:
		raw, escaped, _ := s.json.StrOrSkip()
		r.Base64 = !escaped && string(raw) == "base64"
	case choicesMember:
		if n, ok := s.json.IntOrSkip(); ok && n > 0 {
			r.Choices = int(min(n, 1<<20))
		}
	case maxTokensMember, maxCompletionTokensMember, maxOutputTokensMember:
		if n, ok := s.json.IntOrSkip(); ok {
			r.MaxOutputTokens = max(r.MaxOutputTokens, n)
		}
	case userMember:
		r.User = s.str()
	case promptCacheKeyMember:
		r.PromptCacheKey = s.str()
	case modalitiesMember:
		s.modalities()
	default:
		s.json.Skip()
	}
}

// span is the range of a value, absent for null.
func (s *scan) span() Span {
	null := s.json.Peek() == jsonx.Null
	from, to := s.json.Skip()
	if null {
		return Span{}
	}
	return Span{from, to}
}

// str is the range of a string, absent for anything else.
func (s *scan) str() Span {
	if s.json.Peek() != jsonx.String {
		s.json.Skip()
		return Span{}
	}
	return s.span()
}

// named says whether a value is neither null nor empty text.
func (s *scan) named() bool {
	switch s.json.Peek() {
	case jsonx.Null:
		s.json.Skip()
		return false
	case jsonx.String:
		raw, _ := s.json.Str()
		return len(raw) > 0
	}
	s.json.Skip()
	return true
}

func (s *scan) model() *Error {
	if s.json.Peek() != jsonx.String {
		return s.unless("model", "model must be a string")
	}
	from := s.json.Pos()
	raw, escaped := s.json.Str()
	r := s.r
	r.modelAt = Span{from, s.json.Pos()}
	r.Model = raw
	if escaped && len(raw) <= 6*maxModelName {
		r.Model = jsonx.AppendDecoded(r.scratch[:0], raw)
	}
	switch {
	case !s.json.OK():
		return s.malformed()
	case len(r.Model) == 0:
		return invalid("model", "model is empty: name the model to use")
	case len(r.Model) > maxModelName:
		return invalid("model", "model is longer than "+strconv.Itoa(maxModelName)+" bytes")
	}
	return nil
}

// unless is the error that a field has the wrong shape, or that its value is not JSON at all.
func (s *scan) unless(param, message string) *Error {
	if s.json.Skip(); !s.json.OK() {
		return s.malformed()
	}
	return invalid(param, message)
}

func (s *scan) streamOptions() *Error {
	r := s.r
	if s.json.Peek() != jsonx.Object { // null, or no JSON at all
		from, to := s.json.Skip()
		r.optionsAt = Span{from, to}
		return nil
	}
	from := s.json.Pos()
	s.json.Enter()
	for {
		key, _, ok := s.json.Key()
		if !ok {
			break
		}
		if string(key) != "include_usage" {
			s.json.Skip()
			continue
		}
		const name = "stream_options.include_usage"
		if r.usageAt.Present() {
			return invalid(name, "the body names "+name+" twice")
		}
		if k := s.json.Peek(); k != jsonx.Bool && k != jsonx.Null {
			return s.unless(name, name+" must be true or false")
		}
		a, b := s.json.Skip()
		r.usageAt = Span{a, b}
		r.IncludeUsage = b-a == len("true") && s.json.Bytes(a, b)[0] == 't'
	}
	r.optionsAt = Span{from, s.json.Pos()}
	return nil
}

// complete checks that what the endpoint needs was there.
func (s *scan) complete() *Error {
	if s.seen&(1<<modelMember) == 0 {
		return invalid("model", "model is missing: name the model to use")
	}
	switch s.r.Endpoint {
	case ChatCompletions:
		return s.need(messagesMember, "messages", "an array of messages")
	case Completions:
		return s.need(promptMember, "prompt", "text or an array")
	case Embeddings, Moderations:
		return s.need(inputMember, "input", "text or an array")
	case Responses:
		if s.filled&(1<<promptMember) != 0 || s.r.Conversation || s.r.PreviousResponse {
			return nil
		}
		return s.need(inputMember, "input", "text or an array of items")
	}
	return nil
}

func (s *scan) need(m member, name, shape string) *Error {
	if s.filled&(1<<m) == 0 {
		return invalid(name, name+" is missing: send "+shape)
	}
	return nil
}
