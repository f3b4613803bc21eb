package chat

import (
	"strconv"

	interlock "github.com/interlock-gateway/interlock/sdk/go"
	"github.com/interlock-gateway/interlock/sdk/go/json"
)

// Read reads the body of a chat completion. An error is bad_request and names the part of the
// body that is wrong, or unsupported_parameter for what OpenAI knows and nobody else does.
func Read(body []byte) (*Request, error) {
	rd := reader{r: &Request{N: 1}, w: json.Walk(body)}
	if rd.w.Object() {
		rd.request(len(body))
	}
	if !rd.w.End() && (rd.err == nil || !json.Valid(body)) {
		return nil, interlock.BadRequest("the body is not a JSON object")
	}
	if rd.err != nil {
		return nil, rd.err
	}
	return rd.r, nil
}

// reader reads the body in one pass and keeps the first error.
type reader struct {
	r   *Request
	w   json.Walker
	err *interlock.Error

	// Where it is: list[index] and what[at] inside of it; "" for neither.
	list  string
	index int
	what  string
	at    int

	parts []Part // room for those of the next messages
}

// path is the place's with a tail. It is put together for an error only.
func (rd *reader) path(tail string) string {
	if rd.list == "" {
		return tail
	}
	s := rd.list + "[" + strconv.Itoa(rd.index) + "]"
	if rd.what != "" {
		s += rd.what + "[" + strconv.Itoa(rd.at) + "]"
	}
	return s + tail
}

func (rd *reader) bad(tail, message string) {
	if rd.err == nil {
		rd.err = interlock.BadParam(rd.path(tail), message)
	}
}

func (rd *reader) unsupported(tail, message string) {
	if rd.err == nil {
		rd.err = interlock.Unsupported(rd.path(tail), message)
	}
}

// want returns the value if it is of that kind, nil if it is absent or null.
func (rd *reader) want(k json.Kind, v json.Value, tail string) json.Value {
	if v.IsNull() {
		return nil
	}
	if v.Kind() != k {
		rd.bad(tail, "must be "+kindWords[k])
		return nil
	}
	return v
}

// must is want for a value that has to be there, and not to be "".
func (rd *reader) must(k json.Kind, v json.Value, tail string) json.Value {
	if v.IsNull() {
		rd.bad(tail, "is missing")
		return nil
	}
	if k == json.String && len(v) == 2 {
		rd.bad(tail, "must not be empty")
		return nil
	}
	return rd.want(k, v, tail)
}

var kindWords = [...]string{
	json.Bool: "true or false", json.Number: "a number", json.String: "a string",
	json.Array: "an array", json.Object: "an object",
}

// request reads the body, of so many bytes, whose object was entered. An error inside a list ends
// it in the middle.
func (rd *reader) request(size int) {
	r := rd.r
	var choice, format, stop, options, maxTokens, n json.Value
	said := false
	for rd.w.Member() {
		switch string(rd.w.Key) {
		case "messages":
			said = true
			rd.messages(size)
			rd.list, rd.what = "", ""
			if rd.err != nil {
				return
			}
			continue
		case "tools":
			rd.tools()
			rd.list = ""
			if rd.err != nil {
				return
			}
			continue
		}
		key := rd.w.Key
		v := rd.w.Value()
		known := true
		switch string(key) {
		case "model":
			r.Model = rd.want(json.String, v, "model")
		case "stream":
			r.Stream = rd.want(json.Bool, v, "stream").True()
		case "stream_options":
			options = rd.want(json.Object, v, "stream_options")
		case "tool_choice":
			choice = v
		case "parallel_tool_calls":
			r.ParallelToolCalls = Unset
			if on, ok := rd.want(json.Bool, v, "parallel_tool_calls").Bool(); ok {
				r.ParallelToolCalls = Off
				if on {
					r.ParallelToolCalls = On
				}
			}
		case "response_format":
			format = rd.want(json.Object, v, "response_format")
		case "n":
			n = v
		case "max_completion_tokens":
			r.MaxTokens = rd.whole(1, v, "max_completion_tokens")
		case "max_tokens":
			maxTokens = rd.whole(1, v, "max_tokens")
		case "stop":
			stop = v
		case "temperature":
			r.Temperature = rd.want(json.Number, v, "temperature")
		case "top_p":
			r.TopP = rd.want(json.Number, v, "top_p")
		case "presence_penalty":
			r.PresencePenalty = rd.want(json.Number, v, "presence_penalty")
		case "frequency_penalty":
			r.FrequencyPenalty = rd.want(json.Number, v, "frequency_penalty")
		case "seed":
			if r.Seed = rd.want(json.Number, v, "seed"); r.Seed != nil {
				if _, ok := r.Seed.Int(); !ok {
					rd.bad("seed", "must be a whole number")
				}
			}
		case "logprobs":
			r.Logprobs = rd.want(json.Bool, v, "logprobs").True()
		case "top_logprobs":
			r.TopLogprobs = rd.whole(0, v, "top_logprobs")
		case "logit_bias":
			r.LogitBias = rd.want(json.Object, v, "logit_bias")
		case "reasoning_effort":
			r.ReasoningEffort = rd.want(json.String, v, "reasoning_effort")
		case "user":
			r.User = rd.want(json.String, v, "user")
		case "service_tier":
			r.ServiceTier = rd.want(json.String, v, "service_tier")
		case "verbosity":
			r.Verbosity = rd.want(json.String, v, "verbosity")
		case "prompt_cache_key":
			r.PromptCacheKey = rd.want(json.String, v, "prompt_cache_key")
		case "safety_identifier":
			r.SafetyIdentifier = rd.want(json.String, v, "safety_identifier")
		case "metadata":
			r.Metadata = rd.want(json.Object, v, "metadata")
		case "modalities":
			r.Modalities = rd.want(json.Array, v, "modalities")
		case "audio":
			r.Audio = rd.want(json.Object, v, "audio")
		case "prediction":
			r.Prediction = rd.want(json.Object, v, "prediction")
		case "web_search_options":
			r.WebSearchOptions = rd.want(json.Object, v, "web_search_options")
		case "store":
			r.Store = rd.want(json.Bool, v, "store").True()
		default:
			known = false
		}
		if !known && !v.IsNull() {
			r.Others = append(r.Others, Member{string(key), v})
		}
	}
	r.IncludeUsage = options.Get("include_usage").True()
	if r.MaxTokens == nil {
		r.MaxTokens = maxTokens
	}
	if n = rd.whole(1, n, "n"); n != nil {
		count, _ := n.Uint()
		r.N = int(min(count, 1<<20))
	}
	rd.stop(stop)
	rd.choice(choice)
	rd.format(format)
	if !said {
		rd.bad("messages", "is missing")
	}
}

// whole wants a whole number that is at least least.
func (rd *reader) whole(least uint64, v json.Value, name string) json.Value {
	if v = rd.want(json.Number, v, name); v == nil {
		return nil
	}
	if n, ok := v.Uint(); !ok || n < least {
		if least == 0 {
			rd.bad(name, "must be a whole number, not negative")
		} else {
			rd.bad(name, "must be a whole number above 0")
		}
		return nil
	}
	return v
}

func (rd *reader) stop(v json.Value) {
	switch v.Kind() {
	case json.Absent, json.Null:
	case json.String:
		rd.r.Stop = []json.Value{v}
	case json.Array:
		for s := range v.Items() {
			if !s.IsString() {
				rd.bad("stop["+strconv.Itoa(len(rd.r.Stop))+"]", "must be a string")
				return
			}
			rd.r.Stop = append(rd.r.Stop, s)
		}
	default:
		rd.bad("stop", "must be a string or an array of strings")
	}
}

// tools reads the list at hand.
func (rd *reader) tools() {
	rd.r.Tools = nil
	if rd.w.Kind() != json.Array {
		rd.want(json.Array, rd.w.Value(), "tools")
		return
	}
	rd.list, rd.index = "tools", 0
	for rd.w.Array(); rd.w.Item(); rd.index++ {
		if !rd.w.Object() {
			rd.bad("", "must be an object")
			return
		}
		var tool Tool
		if rd.tool(&tool); rd.err != nil {
			return
		}
		rd.r.Tools = append(rd.r.Tools, tool)
	}
}

// tool reads the members of a tool that was entered.
func (rd *reader) tool(tool *Tool) {
	var kind, function json.Value
	var inner []Member
	entered := false
	for rd.w.Member() {
		switch key := rd.w.Key; string(key) {
		case "type":
			kind = rd.w.Value()
		case "function":
			if entered = rd.w.Object(); entered {
				*tool = Tool{Others: tool.Others}
				inner = rd.function(tool)
			} else {
				function = rd.w.Value()
			}
		default:
			tool.Others = append(tool.Others, Member{string(key), rd.w.Value()})
		}
	}
	if !kind.IsNull() && !kind.Is("function") {
		rd.unsupported(".type", "only tools of type function are supported")
		return
	}
	if !entered {
		rd.must(json.Object, function, ".function")
	}
	tool.Others = append(tool.Others, inner...)
	tool.Name = rd.must(json.String, tool.Name, ".function.name")
}

// function reads the members of a function that was entered, and returns those that OpenAI does
// not have.
func (rd *reader) function(tool *Tool) (others []Member) {
	for rd.w.Member() {
		key := rd.w.Key
		switch v := rd.w.Value(); string(key) {
		case "name":
			tool.Name = v
		case "description":
			tool.Description = rd.want(json.String, v, ".function.description")
		case "parameters":
			tool.Parameters = rd.want(json.Object, v, ".function.parameters")
		case "strict":
			tool.Strict = rd.want(json.Bool, v, ".function.strict").True()
		default:
			others = append(others, Member{string(key), v})
		}
	}
	return others
}

func (rd *reader) choice(v json.Value) {
	c := &rd.r.Choice
	switch v.Kind() {
	case json.Absent, json.Null:
	case json.String:
		switch word := v.Text(); string(word) {
		case "auto":
			c.Mode = ToolsAuto
		case "none":
			c.Mode = ToolsNone
		case "required":
			c.Mode = ToolsRequired
		default:
			rd.bad("tool_choice", `must be "auto", "none", "required" or an object`)
		}
	case json.Object:
		if kind := v.Get("type"); !kind.IsNull() && !kind.Is("function") {
			rd.unsupported("tool_choice.type", "only a choice of type function is supported")
			return
		}
		c.Mode = ToolsNamed
		f := rd.must(json.Object, v.Get("function"), "tool_choice.function")
		c.Name = rd.must(json.String, f.Get("name"), "tool_choice.function.name")
	default:
		rd.bad("tool_choice", "must be a string or an object")
	}
}

func (rd *reader) format(v json.Value) {
	if v == nil {
		return
	}
	f := &rd.r.Format
	kind := rd.must(json.String, v.Get("type"), "response_format.type")
	switch {
	case kind.Is("text"):
	case kind.Is("json_object"):
		f.Kind = ObjectFormat
	case kind.Is("json_schema"):
		f.Kind = SchemaFormat
		s := rd.must(json.Object, v.Get("json_schema"), "response_format.json_schema")
		for key, v := range s.Members() {
			switch string(key) {
			case "name":
				f.Name = v
			case "description":
				f.Description = rd.want(json.String, v, "response_format.json_schema.description")
			case "schema":
				f.Schema = rd.want(json.Object, v, "response_format.json_schema.schema")
			case "strict":
				f.Strict = rd.want(json.Bool, v, "response_format.json_schema.strict").True()
			}
		}
		f.Name = rd.must(json.String, f.Name, "response_format.json_schema.name")
	default:
		rd.bad("response_format.type", `must be "text", "json_object" or "json_schema"`)
	}
}
