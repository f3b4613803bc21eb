package fault

import (
	"net/http"
	"strings"
	"time"
)

// settings hold for a whole script.
type settings struct {
	seed       uint64
	id         *template // nil: made from the endpoint, the provider and the call
	model      *template // nil: as requested
	created    int64     // -1: 1700000000 + the call's number
	models     []string
	key        string
	dimensions int
	idle       time.Duration // 0: connections are kept
	healthy    answer
	dialect    *dialect // nil: OpenAI's
}

func defaultSettings() settings {
	return settings{created: -1, dimensions: 8, healthy: defaultAnswer()}
}

// rule is one "on" of a script: which calls it takes, how often, and what it
// does with them.
type rule struct {
	line       int
	connection bool // it takes connections, not calls
	match      match
	limit      limit
	answer     plan
	steps      []step
}

// match is the head of a rule: all of it must hold.
type match struct {
	endpoints []endpoint // empty: any
	mode      mode
	model     string // with * as wildcard, "" any
	method    string
	path      string // with * as wildcard
	headers   []headerMatch
	contains  []string // in the body
	asks      []string
}

type headerMatch struct {
	name, value string // value with * as wildcard
}

type mode uint8

const (
	modeAny mode = iota
	modeStream
	modeJSON
)

// needsBody reports whether the rule cannot be judged by the head alone.
func (m match) needsBody() bool {
	return m.mode != modeAny || m.model != "" || len(m.contains) > 0 || len(m.asks) > 0
}

func (m match) takesHead(r *request) bool {
	if len(m.endpoints) > 0 {
		found := false
		for _, e := range m.endpoints {
			found = found || e == r.endpoint
		}
		if !found {
			return false
		}
	}
	if m.method != "" && m.method != r.method || m.path != "" && !wildcard(m.path, r.path) {
		return false
	}
	for _, h := range m.headers {
		if !h.takes(r.header) {
			return false
		}
	}
	return true
}

func (h headerMatch) takes(header http.Header) bool {
	for _, v := range header.Values(h.name) {
		if wildcard(h.value, v) {
			return true
		}
	}
	return false
}

func (m match) takesBody(r *request) bool {
	if m.mode == modeStream && !r.asked.stream || m.mode == modeJSON && r.asked.stream {
		return false
	}
	if m.model != "" && !wildcard(m.model, r.asked.model) {
		return false
	}
	for _, s := range m.contains {
		if !strings.Contains(string(r.body), s) {
			return false
		}
	}
	for _, what := range m.asks {
		if !r.asked.asks(what) {
			return false
		}
	}
	return true
}

var askWords = []string{"prefill", "schema", "tools", "usage"}

func (a asked) asks(what string) bool {
	switch what {
	case "tools":
		return a.tools
	case "schema":
		return a.hasSchema
	case "usage":
		return a.usage
	default:
		return a.prefill
	}
}

// wildcard matches a text against a pattern in which * stands for anything.
func wildcard(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 {
		return pattern == text
	}
	first, last := parts[0], parts[len(parts)-1]
	if !strings.HasPrefix(text, first) {
		return false
	}
	text = text[len(first):]
	for _, part := range parts[1 : len(parts)-1] {
		i := strings.Index(text, part)
		if i < 0 {
			return false
		}
		text = text[i+len(part):]
	}
	return strings.HasSuffix(text, last)
}

// limit is how often and when a rule acts: all of it must hold.
type limit struct {
	times               int           // 0: any number
	every               int           // 0: each time
	chance              int           // percent; 0: always
	lasts               time.Duration // from its first act
	fromCall, untilCall int           // calls since the script was set
	from, until         time.Duration // since the script was set
}

// spent is what a provider remembers of one rule.
type spent struct {
	matched int // calls its head took
	acted   int
	first   time.Time // when it first acted
}

// moment is where in a script's life a call stands.
type moment struct {
	call  int // since the script was set, from 1
	now   time.Time
	since time.Time // when the script was set
	seed  uint64
	rule  int // index, so that rules draw apart
}

// open reports whether the limit lets the rule see calls at all now.
func (l limit) open(s spent, m moment) bool {
	elapsed := m.now.Sub(m.since)
	switch {
	case l.times > 0 && s.acted >= l.times,
		l.lasts > 0 && s.acted > 0 && m.now.Sub(s.first) >= l.lasts,
		l.fromCall > 0 && m.call <= l.fromCall,
		l.untilCall > 0 && m.call > l.untilCall,
		l.from > 0 && elapsed < l.from,
		l.until > 0 && elapsed >= l.until:
		return false
	}
	return true
}

// take counts a matching call and reports whether the rule acts on it.
func (l limit) take(s *spent, m moment) bool {
	if !l.open(*s, m) {
		return false
	}
	s.matched++
	if l.every > 0 && s.matched%l.every != 0 {
		return false
	}
	if l.chance > 0 {
		draw := splitmix64(m.seed ^ splitmix64(uint64(m.rule)<<32|uint64(s.matched)))
		if int(draw%100) >= l.chance {
			return false
		}
	}
	if s.acted == 0 {
		s.first = m.now
	}
	s.acted++
	return true
}
