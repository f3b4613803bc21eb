package chat

import (
	"strconv"

	interlock "github.com/interlock-gateway/interlock/sdk/go"
	"github.com/interlock-gateway/interlock/sdk/go/json"
)

// Read reads the body of a chat completion. An error is bad_request and names the part of the
// body that is wrong, or unsupported_parameter for what OpenAI knows and nobody else does.
func Read(body []byte) (*Request, error) {
	root, err := json.Parse(body)
	if err != nil || !root.IsObject() {
		return nil, interlock.BadRequest("the body is not a JSON object")
	}
	rd := reader{r: &Request{N: 1}}
	rd.request(root)
	if rd.err != nil {
		return nil, rd.err
	}
	return rd.r, nil
}

// reader keeps the first error.
type reader struct {
	r   *Request
	err *interlock.Error
}

func (rd *reader) bad(param, message string) {
	if rd.err == nil {
		rd.err = interlock.BadParam(param, message)
	}
}

// want returns the value if it is of that kind, nil if it is absent or null.
func (rd *reader) want(k json.Kind, v json.Value, path ...string) json.Value {
	if v.IsNull() {
		return nil
	}
	if v.Kind() != k {
		rd.bad(join(path), "must be "+kindWords[k])
		return nil
	}
	return v
}

// must is want for a value that has to be there, and not to be "".
func (rd *reader) must(k json.Kind, v json.Value, path ...string) json.Value {
	if v.IsNull() {
		rd.bad(join(path), "is missing")
		return nil
	}
	if k == json.String && len(v) == 2 {
		rd.bad(join(path), "must not be empty")
		return nil
	}
	return rd.want(k, v, path...)
}

var kindWords = [...]string{
	json.Bool: "true or false", json.Number: "a number", json.String: "a string",
	json.Array: "an array", json.Object: "an object",
}

func join(path []string) string {
	s := ""
	for _, p := range path {
		s += p
	}
	return s
}

func (rd *reader) request(root json.Value) {
	r := rd.r
	var messages, tools, choice, format, stop, options, maxTokens, n json.Value
	for key, v := range root.Members() {
		known := true
		switch string(key) {
		case "model":
			r.Model = rd.want(json.String, v, "model")
		case "messages":
			messages = v
		case "stream":
			r.Stream = rd.want(json.Bool, v, "stream").True()
		case "stream_options":
			options = rd.want(json.Object, v, "stream_options")
		case "tools":
			tools = rd.want(json.Array, v, "tools")
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
	rd.tools(tools)
	rd.choice(choice)
	rd.format(format)
	rd.messages(messages)
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

func (rd *reader) tools(v json.Value) {
	i := 0
	for t := range v.Items() {
		at := "tools[" + strconv.Itoa(i) + "]"
		i++
		if rd.want(json.Object, t, at) == nil {
			rd.bad(at, "must be an object")
			return
		}
		var kind, f json.Value
		tool := Tool{}
		for key, v := range t.Members() {
			switch string(key) {
			case "type":
				kind = v
			case "function":
				f = v
			default:
				tool.Others = append(tool.Others, Member{string(key), v})
			}
		}
		if !kind.IsNull() && !kind.Is("function") {
			if rd.err == nil {
				rd.err = interlock.Unsupported(at+".type", "only tools of type function are supported")
			}
			return
		}
		f = rd.must(json.Object, f, at, ".function")
		for key, v := range f.Members() {
			switch string(key) {
			case "name":
				tool.Name = v
			case "description":
				tool.Description = rd.want(json.String, v, at, ".function.description")
			case "parameters":
				tool.Parameters = rd.want(json.Object, v, at, ".function.parameters")
			case "strict":
				tool.Strict = rd.want(json.Bool, v, at, ".function.strict").True()
			default:
				tool.Others = append(tool.Others, Member{string(key), v})
			}
		}
		tool.Name = rd.must(json.String, tool.Name, at, ".function.name")
		if rd.err != nil {
			return
		}
		rd.r.Tools = append(rd.r.Tools, tool)
	}
}

func (rd *reader) choice(v json.Value) {
	c := &rd.r.Choice
	switch v.Kind() {
	case json.Absent, json.Null:
	case json.String:
		switch {
		case v.Is("auto"):
			c.Mode = ToolsAuto
		case v.Is("none"):
			c.Mode = ToolsNone
		case v.Is("required"):
			c.Mode = ToolsRequired
		default:
			rd.bad("tool_choice", `must be "auto", "none", "required" or an object`)
		}
	case json.Object:
		if kind := v.Get("type"); !kind.IsNull() && !kind.Is("function") {
			if rd.err == nil {
				rd.err = interlock.Unsupported("tool_choice.type", "only a choice of type function is supported")
			}
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
