package openai

import "github.com/interlock-gateway/interlock/gateway/openai/jsonx"

// Edit says what to change in a caller's body on its way to a provider.
type Edit struct {
	Model    string // the upstream's name of the model; "" leaves what the caller wrote
	AskUsage bool   // ask for a stream's usage chunk where the caller did not
}

const (
	usageMember  = `"include_usage":true`
	usageOptions = `{` + usageMember + `}`
)

// AppendUpstream appends the body for a provider: body with the edits made, without the
// provider_data of its messages, and every other byte as it came. r must be what ScanRequest filled from the same body. Usage is asked for on streams
// of chat completions and completions; a responses stream always tells it.
func (r *Request) AppendUpstream(dst, body []byte, e Edit) []byte {
	edits := [2]splice{{at: r.modelAt, text: e.Model, quote: true}}
	if e.Model == string(r.Model) {
		edits[0].text = ""
	}
	edits[1].at, edits[1].text = r.usageEdit(body, e)
	if edits[1].at.From < edits[0].at.From {
		edits[0], edits[1] = edits[1], edits[0]
	}
	from, private := 0, r.private
	before := func(at int) { // what is private is cut out on the way
		for len(private) > 0 && private[0].From < at {
			dst = append(dst, body[from:private[0].From]...)
			from, private = private[0].To, private[1:]
		}
	}
	for _, x := range edits {
		if x.text == "" {
			continue
		}
		before(x.at.From)
		dst = append(dst, body[from:x.at.From]...)
		if x.quote {
			dst = jsonx.AppendString(dst, x.text)
		} else {
			dst = append(dst, x.text...)
		}
		from = x.at.To
	}
	before(len(body))
	return append(dst, body[from:]...)
}

// splice is text for a range of a body; empty text changes nothing.
type splice struct {
	at    Span
	text  string
	quote bool // as a JSON string
}

// usageEdit is where to ask for usage and with what text; "" when there is nothing to do.
func (r *Request) usageEdit(body []byte, e Edit) (at Span, text string) {
	if !e.AskUsage || !r.Stream || r.IncludeUsage || r.Endpoint == Responses {
		return Span{}, ""
	}
	switch {
	case r.usageAt.Present(): // false or null
		return r.usageAt, "true"
	case !r.optionsAt.Present():
		return Span{r.lastValue, r.lastValue}, `,"stream_options":` + usageOptions
	case body[r.optionsAt.From] == 'n': // null
		return r.optionsAt, usageOptions
	}
	var j jsonx.Reader
	j.ResetAt(body, r.optionsAt.From)
	j.Enter()
	at = Span{r.optionsAt.From + 1, r.optionsAt.From + 1}
	if _, _, more := j.Key(); more {
		return at, usageMember + ","
	}
	return at, usageMember
}
