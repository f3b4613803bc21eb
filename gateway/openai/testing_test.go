package openai

import "slices"

func sorted(n []int) []int {
	slices.Sort(n)
	return n
}

// feed puts whole events through a stream and returns what goes downstream.
func feed(s *Stream, events string) (down []byte) {
	var split Splitter
	var ev Event
	split.Feed([]byte(events))
	for {
		if ok, _ := split.Next(&ev); !ok {
			return down
		}
		down, _ = s.Event(down, &ev)
	}
}
