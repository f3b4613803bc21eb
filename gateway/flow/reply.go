package flow

import (
	"strconv"
	"time"

	"github.com/interlock-gateway/interlock/gateway/failure"
	"github.com/interlock-gateway/interlock/gateway/openai"
)

const (
	typeJSON = "application/json"
	typeSSE  = "text/event-stream"
)

// small holds the numbers that headers need, as strings.
var small = func() (s [100]string) {
	for i := range s {
		s[i] = strconv.Itoa(i)
	}
	return s
}()

func itoa(n int) string {
	if n >= 0 && n < len(small) {
		return small[n]
	}
	return strconv.Itoa(n)
}

// begin starts the reply anew with the headers that every answer has.
func (x *Exchange) begin(status int, contentType string) *Reply {
	r := &x.reply
	*r = Reply{Status: status, ContentType: contentType, Header: r.Header[:0]}
	r.add("x-request-id", x.id)
	if x.correlation != "" {
		r.add("interlock-correlation-id", x.correlation)
	}
	r.add("interlock-attempts", itoa(x.m.Made()))
	return r
}

func (r *Reply) add(name, value string) { r.Header = append(r.Header, Field{name, value}) }

// answerHeaders adds who answered and why.
func (x *Exchange) answerHeaders(r *Reply) {
	t := x.at.target
	r.add("interlock-cause", x.at.cause.String())
	r.add("interlock-route", t.link.label)
	r.add("interlock-model", t.route.Model)
	if t.substitute > 0 {
		r.add("interlock-requested-model", x.model)
		r.add("interlock-substitution", "approved; reason="+t.disclosure)
	}
}

// disclosure is the JSON object that tells in the body of a substitution.
func (x *Exchange) disclosure(cause failure.Cause, t *target) []byte {
	if t.substitute == 0 {
		return nil
	}
	b := append(x.disclosed[:0], `{"requested_model":`...)
	b = strconv.AppendQuote(b, x.model)
	b = append(b, `,"cause":"`...)
	b = append(b, failure.ModelSubstitution.String()...)
	b = append(b, `","reason":`...)
	b = strconv.AppendQuote(b, t.disclosure)
	b = append(b, '}')
	x.disclosed = b
	return b
}

// refuse answers with an error. The request's end is settled by the caller of refuse.
func (x *Exchange) refuse(e *openai.Error) *Reply {
	r := x.begin(e.Status, typeJSON)
	x.identify(e)
	r.add("x-should-retry", strconv.FormatBool(e.ShouldRetry))
	if e.HasRetryAfter {
		addRetryAfter(r, e.RetryAfter)
	}
	x.body = e.AppendJSON(x.body[:0])
	r.Body = x.body
	return r
}

func addRetryAfter(r *Reply, d time.Duration) {
	r.add("retry-after", strconv.FormatInt(openai.RetryAfterSeconds(d), 10))
	r.add("retry-after-ms", strconv.FormatInt(openai.RetryAfterMillis(d), 10))
}

// identify fills the interlock block of an error.
func (x *Exchange) identify(e *openai.Error) {
	e.RequestID = x.id
	e.Terminal = x.terminal.String()
	e.Attempts = x.m.Made()
	if x.last.class != failure.None {
		e.Class, e.Phase = x.last.class.String(), x.last.phase.String()
	}
}
