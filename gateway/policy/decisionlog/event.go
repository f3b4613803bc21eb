package decisionlog

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/interlock-gateway/interlock/gateway/policy"
)

// Event is one policy decision of a request.
type Event struct {
	At        time.Time
	RequestID string
	Ordinal   int    // of the decision among the request's, from 1: as the ledger lists them
	Attempt   int    // the attempt it was about; 0 = before the first
	Key       string // the caller's key, by name
	Record    *policy.Record
	Took      time.Duration // of the evaluation; 0 where the decision was remembered
	Cached    bool
	Err       error // why the decision failed closed
}

// field is one field of an event: its name and its value as JSON.
type field struct {
	name  string
	value []byte
}

// fields are an event's in the order of OPA's. labels is JSON.
func (e *Event) fields(labels []byte) []field {
	r := e.Record
	list := make([]field, 0, 10)
	put := func(name string, value []byte) { list = append(list, field{name, value}) }
	put("labels", labels)
	put("decision_id", quoted(e.RequestID+"."+strconv.Itoa(e.Ordinal)))
	put("bundles", bundlesOf(r.Revision))
	put("path", quoted("interlock/"+r.Point.String()+"/decision"))
	input, output, masked, erased := r.Masked()
	if input != nil {
		put("input", input)
	}
	if output != nil {
		put("result", output)
	}
	if len(erased) > 0 {
		put("erased", listed(erased))
	}
	if len(masked) > 0 {
		put("masked", listed(masked))
	}
	if e.Key != "" {
		put("requested_by", quoted(e.Key))
	}
	put("timestamp", quoted(e.At.UTC().Format(time.RFC3339Nano)))
	if !e.Cached {
		put("metrics", append(strconv.AppendInt([]byte(`{"timer_rego_query_eval_ns":`), e.Took.Nanoseconds(), 10), '}'))
	}
	put("custom", e.custom())
	return list
}

// custom is what OPA's format has no field for. The error of a decision is here too, and not
// where OPA puts its own: what reads events into OPA's own type fails at any that has one.
func (e *Event) custom() []byte {
	b := append([]byte(`{"request_id":`), quoted(e.RequestID)...)
	b = strconv.AppendInt(append(b, `,"attempt":`...), int64(e.Attempt), 10)
	b = strconv.AppendBool(append(b, `,"cached":`...), e.Cached)
	b = append(append(b, `,"input_hash":`...), quoted(e.Record.Hash)...)
	if e.Err != nil {
		b = append(append(b, `,"error":`...), quoted(e.Err.Error())...)
	}
	return append(b, '}')
}

// appendTo appends the event as one line of JSON, without its end.
func appendTo(b []byte, fields []field) []byte {
	b = append(b, '{')
	for i := range fields {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(append(b, '"'), fields[i].name...), '"', ':')
		b = append(b, fields[i].value...)
	}
	return append(b, '}')
}

// bundlesOf names the bundles of a revision, each with the revision as the ledger has it.
func bundlesOf(revision string) []byte {
	b := []byte{'{'}
	for i, one := range strings.Split(revision, ",") {
		name, _, _ := strings.Cut(one, "@")
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(append(append(b, quoted(name)...), `:{"revision":`...), quoted(one)...), '}')
	}
	return append(b, '}')
}

func quoted(s string) []byte {
	b, _ := json.Marshal(s) // a string always marshals
	return b
}

func listed(s []string) []byte {
	b, _ := json.Marshal(s) // and so does a list of them
	return b
}
