package fault

import (
	"slices"
	"strings"
)

// head reads what follows "on": the endpoints, then the conditions.
func (c *compiler) head(cur *cursor, r *rule) {
	switch {
	case cur.is("any"):
	case cur.is("connection"):
		r.connection = true
		cur.end()
		return
	default:
		c.endpoints(cur, r)
	}
	for len(cur.rest) > 0 && !cur.broken {
		c.condition(cur, &r.match)
	}
}

func (c *compiler) endpoints(cur *cursor, r *rule) {
	for {
		word := cur.peek()
		if !slices.Contains(endpointWords, word) {
			break
		}
		cur.take()
		r.match.endpoints = append(r.match.endpoints, endpoint(word))
	}
	if len(r.match.endpoints) == 0 {
		cur.fail("on is followed by any, connection, or endpoints: %s", strings.Join(endpointWords, ", "))
	}
}

func (c *compiler) condition(cur *cursor, m *match) {
	switch cur.one("stream", "json", "model", "method", "path", "header", "body", "asks") {
	case "stream":
		m.mode = modeStream
	case "json":
		m.mode = modeJSON
	case "model":
		m.model = cur.name("a model, * for anything,")
	case "method":
		m.method = cur.name("a method")
	case "path":
		m.path = cur.name("a path, * for anything,")
	case "header":
		m.headers = append(m.headers, headerMatch{name: cur.name("a header's name"), value: cur.name("a header's value, * for anything,")})
	case "body":
		cur.one("contains")
		m.contains = append(m.contains, cur.name("a text"))
	case "asks":
		m.asks = append(m.asks, cur.one(askWords...))
	}
}

// settingWords are the words that hold for a whole script.
var settingWords = map[string]func(*cursor, *settings){
	"seed": func(cur *cursor, s *settings) { s.seed = uint64(cur.number("a seed", 0, 1<<31-1)) },
	"id": func(cur *cursor, s *settings) {
		t := cur.template("an id")
		s.id = &t
	},
	"model": func(cur *cursor, s *settings) {
		t := cur.template(`a model ("" leaves it out)`)
		s.model = &t
	},
	"created": func(cur *cursor, s *settings) { s.created = int64(cur.number("a Unix time", 0, 1<<31-1)) },
	"models": func(cur *cursor, s *settings) {
		for {
			s.models = append(s.models, cur.name("a model"))
			if len(cur.rest) == 0 || cur.broken {
				return
			}
		}
	},
	"key":        func(cur *cursor, s *settings) { s.key = cur.name("an API key") },
	"dimensions": func(cur *cursor, s *settings) { s.dimensions = cur.number("a number of dimensions", 1, maxDimensions) },
	"idle":       func(cur *cursor, s *settings) { s.idle = cur.duration(1) },
	"healthy":    func(cur *cursor, s *settings) { s.healthy = cur.answer() },
	"dialect": func(cur *cursor, s *settings) {
		if len(cur.c.script.rules) > 0 {
			cur.fail("it stands before the first rule")
		}
		s.dialect = dialects[cur.one(dialectWords...)]
	},
}

// ruleWords are the words that hold for a whole rule: when it acts, and how
// its answer is put on the wire.
var ruleWords = map[string]func(*cursor, *rule){
	"once":  func(_ *cursor, r *rule) { r.limit.times = 1 },
	"times": func(cur *cursor, r *rule) { r.limit.times = cur.number("how often", 1, 1<<31-1) },
	"for":   func(cur *cursor, r *rule) { r.limit.lasts = cur.duration(1) },
	"until": func(cur *cursor, r *rule) {
		if cur.is("call") {
			r.limit.untilCall = cur.number("the last call's number", 1, 1<<31-1)
		} else {
			r.limit.until = cur.duration(1)
		}
	},
	"after": func(cur *cursor, r *rule) {
		if cur.is("call") {
			r.limit.fromCall = cur.number("a call's number", 1, 1<<31-1)
		} else {
			r.limit.from = cur.duration(1)
		}
	},
	"every": func(cur *cursor, r *rule) { r.limit.every = cur.number("every how many calls", 1, 1<<31-1) },
	"chance": func(cur *cursor, r *rule) {
		if text, ok := strings.CutSuffix(cur.peek(), "%"); ok {
			cur.rest[0].text = text
			r.limit.chance = cur.number("a percentage", 1, 99)
			return
		}
		cur.fail("a percentage is needed, 1%% to 99%%")
	},
	"status": readStatus,
	"header": func(cur *cursor, r *rule) {
		h := header{name: cur.name("a header's name")}
		h.value = cur.template("the header's value")
		r.answer.headers = append(r.answer.headers, h)
	},
	"read": func(cur *cursor, r *rule) {
		cur.one("head")
		r.answer.readHead = true
	},
	"as": func(cur *cursor, r *rule) {
		r.answer.as = modeStream
		if cur.one("stream", "json") == "json" {
			r.answer.as = modeJSON
		}
	},
	"chunked": func(cur *cursor, r *rule) { cur.frame(r, framingChunks) },
	"content-length": func(cur *cursor, r *rule) {
		cur.frame(r, framingLength)
		r.answer.length = int64(cur.number("a length", 0, 1<<31-1))
	},
	"close-delimited": func(cur *cursor, r *rule) { cur.frame(r, framingClose) },
	"close":           func(_ *cursor, r *rule) { r.answer.close = true },
	"encoding":        func(cur *cursor, r *rule) { r.answer.encoding = cur.one(codings...) },
	"chunk":           func(cur *cursor, r *rule) { r.answer.chunk = cur.size(1) },
	"trickle": func(cur *cursor, r *rule) {
		r.answer.trickle = cur.size(1)
		if cur.is("every") {
			r.answer.trickleEvery = cur.duration(0)
		}
	},
	"crlf":    func(_ *cursor, r *rule) { r.answer.newline = "\r\n" },
	"no-done": func(_ *cursor, r *rule) { r.answer.noDone = true },
	"id": func(cur *cursor, r *rule) {
		t := cur.template("an id")
		r.answer.id = &t
	},
	"model": func(cur *cursor, r *rule) {
		t := cur.template(`a model ("" leaves it out)`)
		r.answer.model = &t
	},
	"created": func(cur *cursor, r *rule) { r.answer.created = int64(cur.number("a Unix time", 0, 1<<31-1)) },
}

// frame sets how the body's end is told, once.
func (cur *cursor) frame(r *rule, f framing) {
	if r.answer.framing != framingAuto {
		cur.fail("this rule says already how its body ends; allowed: one of chunked, content-length, close-delimited")
	}
	r.answer.framing = f
}

// readStatus reads a status and, for its error object, code, message, param
// and type.
func readStatus(cur *cursor, r *rule) {
	r.answer.status = cur.number("a status", 200, 999)
	for len(cur.rest) > 0 && !cur.broken {
		field := cur.one("code", "message", "param", "type", "reason")
		if field == "reason" {
			r.answer.reason = cur.name("a reason phrase")
			continue
		}
		t := cur.template("its value")
		switch field {
		case "code":
			r.answer.problem.code = &t
		case "message":
			r.answer.problem.message = &t
		case "param":
			r.answer.problem.param = &t
		default:
			r.answer.problem.kind = &t
		}
	}
}
