package openai

// Span is a half-open byte range [From, To) of a body. The zero value is absent.
type Span struct{ From, To int }

// Present says whether the span exists.
func (s Span) Present() bool { return s.To > s.From }

// Of cuts the span out of the body it belongs to; nil when absent.
func (s Span) Of(body []byte) []byte {
	if !s.Present() || s.To > len(body) {
		return nil
	}
	return body[s.From:s.To]
}
