package openai

// Complete says whether nothing of the answer's substance is missing any more: every choice
// has its finish reason, or the terminal event has come. The usage chunk and the end marker
// may still follow.
func (s *Stream) Complete() bool {
	ending := Cut
	if s.endpoint == Responses {
		ending = s.responseEnding()
	} else if !s.broken {
		ending = s.record.ending()
	}
	return ending == Whole
}
