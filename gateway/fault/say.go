package fault

// stepWords are the words that do something, in the order of a rule's lines.
var stepWords = map[string]func(*cursor, *rule) step{
	// events
	"role":      func(cur *cursor, r *rule) step { return cur.say(r, sayStep{event: event{kind: eventRole}}) },
	"text":      func(cur *cursor, r *rule) step { return cur.sayText(r, eventText, false) },
	"tokens":    func(cur *cursor, r *rule) step { return cur.sayText(r, eventText, true) },
	"reasoning": func(cur *cursor, r *rule) step { return cur.sayText(r, eventReasoning, false) },
	"refusal":   func(cur *cursor, r *rule) step { return cur.sayText(r, eventRefusal, false) },
	"tool": func(cur *cursor, r *rule) step {
		s := sayStep{event: event{kind: eventTool}, tool: cur.tool()}
		return cur.say(r, s)
	},
	"delta": func(cur *cursor, r *rule) step {
		cur.c.onlyInStream(cur.word)
		s := sayStep{event: event{kind: eventDelta}, content: content{text: cur.json(), json: true}}
		return cur.say(r, s)
	},
	"finish": func(cur *cursor, r *rule) step {
		s := sayStep{event: event{kind: eventFinish}, content: content{text: cur.template("a finish reason")}}
		return cur.say(r, s)
	},
	"usage": func(cur *cursor, r *rule) step {
		return cur.say(r, sayStep{event: event{kind: eventUsage, usage: cur.usage()}})
	},
	"done": func(cur *cursor, r *rule) step { return cur.say(r, sayStep{event: event{kind: eventDone}}) },
	"error": func(cur *cursor, r *rule) step {
		s := sayStep{event: event{kind: eventError}}
		if len(cur.rest) > 0 && cur.rest[0].kind == tokenText {
			t, _ := cur.take()
			t.kind, t.text = tokenJSON, quoted(t.text) // {"error": "text"}, as some providers have it
			s.content = content{text: cur.places(t), json: true}
		} else {
			s.content = content{text: cur.json(), json: true}
		}
		return cur.say(r, s)
	},
	"event": func(cur *cursor, r *rule) step {
		cur.c.onlyInStream(cur.word)
		s := sayStep{event: event{kind: eventData}, content: cur.content()}
		return cur.say(r, s)
	},
	"comment": func(cur *cursor, r *rule) step {
		cur.c.onlyInStream(cur.word)
		if d := cur.c.script.settings.dialect; d != nil && d.frame != nil {
			cur.failAt(cur.word, "comment is for server-sent events")
		}
		s := commentStep{text: cur.template("a comment's text")}
		s.form = cur.form(nil)
		r.answer.speaks = true
		return s
	},
	"raw": func(cur *cursor, r *rule) step {
		cur.c.onlyInStream(cur.word)
		r.answer.speaks = true
		return rawStep{cur.content()}
	},
	"answer": func(cur *cursor, r *rule) step {
		a := cur.answer()
		cur.c.speaks(cur, r)
		for _, p := range a.parts {
			cur.c.fits(cur, r, p.kind)
		}
		return a
	},

	// whole bodies
	"json": func(cur *cursor, r *rule) step {
		return cur.body(r, &fixed{content: content{text: cur.json(), json: true}, contentType: "application/json"})
	},
	"html": func(cur *cursor, r *rule) step {
		return cur.body(r, &fixed{content: cur.content(), contentType: "text/html"})
	},
	"body": func(cur *cursor, r *rule) step {
		f := &fixed{content: cur.content(), contentType: "application/json"}
		if cur.is("type") {
			f.contentType = cur.name("a content type")
		}
		return cur.body(r, f)
	},
	"empty": func(cur *cursor, r *rule) step { return cur.body(r, &fixed{}) },

	// time and the connection
	"delay": func(cur *cursor, _ *rule) step { return delayStep{cur.duration(0)} },
	"pace":  func(cur *cursor, _ *rule) step { return paceStep{cur.duration(0)} },
	"head": func(cur *cursor, r *rule) step {
		if cur.is("endless") {
			r.answer.writes = true
			return endlessStep{}
		}
		return headStep{}
	},
	"end": func(cur *cursor, _ *rule) step {
		if cur.c.repeats > 1 {
			cur.fail("end stands outside of repeat")
		}
		cur.c.ended = true
		return endStep{}
	},
	"stall": func(cur *cursor, r *rule) step { return cur.trip(r, stallStep{}) },
	"cut": func(cur *cursor, r *rule) step {
		return cur.trip(r, cutStep{reset: cur.one("fin", "reset") == "reset"})
	},
	"wire": func(cur *cursor, r *rule) step {
		r.answer.writes = r.answer.writes || !cur.c.ended
		return wireStep{cur.content()}
	},
	"garbage": func(cur *cursor, r *rule) step {
		r.answer.writes = r.answer.writes || !cur.c.ended
		return garbageStep{cur.size(1)}
	},
}

func (c *compiler) onlyInStream(word token) {
	if c.streamOnly == nil {
		c.streamOnly = &word
	}
}

// speaks notes that the rule's answer is said in events.
func (c *compiler) speaks(cur *cursor, r *rule) {
	r.answer.speaks = true
	if !speakable(r.match.endpoints) {
		cur.failAt(cur.word, `%s needs an endpoint that speaks: "on chat", "on responses" or "on completions", or several of them`, cur.word)
	}
}

// fits refuses what an endpoint has no words for.
func (c *compiler) fits(cur *cursor, r *rule, kind eventKind) {
	if c.script.settings.dialect != nil && kind == eventDelta {
		cur.failAt(cur.word, "%s is OpenAI's alone", cur.word)
	}
	for _, e := range r.match.endpoints {
		alien := e == endpointCompletions && (kind == eventReasoning || kind == eventRefusal || kind == eventTool || kind == eventDelta) ||
			e == endpointResponses && kind == eventDelta
		if alien {
			cur.failAt(cur.word, "%s does not exist for %s", cur.word, e)
		}
	}
}

// say finishes an event: its options, its place in the rule.
func (cur *cursor) say(r *rule, s sayStep) step {
	cur.c.speaks(cur, r)
	cur.c.fits(cur, r, s.event.kind)
	s.form = cur.form(&s.event.choice)
	return s
}

func (cur *cursor) sayText(r *rule, kind eventKind, words bool) step {
	return cur.say(r, sayStep{event: event{kind: kind}, content: cur.content(), words: words})
}

// form reads how an event is framed; with a choice, which of n it is.
func (cur *cursor) form(choice *int) form {
	var f form
	allowed := []string{"tight", "open", "bare"}
	if choice != nil {
		allowed = append(allowed, "split", "named", "choice")
	}
	for len(cur.rest) > 0 && !cur.broken {
		switch cur.one(allowed...) {
		case "tight":
			f.tight = true
		case "split":
			f.split = true
		case "open":
			f.ending = endingOpen
		case "bare":
			f.ending = endingBare
		case "named":
			f.name = cur.name("an event's name")
		default:
			*choice = cur.number("a choice's index", 0, 127)
		}
	}
	return f
}

// tool reads NAME {arguments} [id ID] [pieces N].
func (cur *cursor) tool() toolTemplate {
	t := toolTemplate{name: cur.template("a function's name"), pieces: 1}
	if len(cur.rest) > 0 && cur.rest[0].kind == tokenText {
		t.arguments = cur.template("arguments")
	} else {
		t.arguments, t.argumentsJSON = cur.json(), true
	}
	for {
		switch {
		case cur.is("id"):
			t.id = cur.template("a call's id")
		case cur.is("pieces"):
			t.pieces = cur.number("a number of pieces", 1, 10_000)
		default:
			return t
		}
	}
}

// usage reads PROMPT COMPLETION [cached N] [reasoning N].
func (cur *cursor) usage() usage {
	const most = 1<<31 - 1
	u := usage{cached: -1, reasoning: -1}
	u.prompt = cur.number("the number of prompt tokens", 0, most)
	u.completion = cur.number("the number of completion tokens", 0, most)
	for {
		switch {
		case cur.is("cached"):
			u.cached = cur.number("a number of tokens", 0, most)
		case cur.is("reasoning"):
			u.reasoning = cur.number("a number of tokens", 0, most)
		default:
			return u
		}
	}
}

// answer reads parts, then options. Without a part it is the default text.
func (cur *cursor) answer() answer {
	a := answer{}
	for !cur.broken {
		switch {
		case cur.isContent():
			a.parts = append(a.parts, part{kind: eventText, content: cur.content()})
		case cur.is("reasoning"):
			a.parts = append(a.parts, part{kind: eventReasoning, content: cur.content()})
		case cur.is("refusal"):
			a.parts = append(a.parts, part{kind: eventRefusal, content: cur.content()})
		case cur.is("tool"):
			a.parts = append(a.parts, part{kind: eventTool, tool: cur.tool()})
		case cur.is("usage"):
			u := cur.usage()
			a.usage = &u
		case cur.is("finish"):
			a.finish = cur.name("a finish reason")
		case cur.is("whole"):
			a.whole = true
		case len(cur.rest) == 0:
			if a.parts == nil {
				a.parts = cur.c.script.settings.healthy.parts
			}
			return a
		default:
			cur.fail(`allowed: a "string", {JSON}, words N, fill SIZE "x", reasoning TEXT, refusal TEXT, tool NAME {…}, usage P C, finish REASON, whole`)
		}
	}
	return a
}

// body sets the rule's whole body.
func (cur *cursor) body(r *rule, f *fixed) step {
	switch {
	case r.answer.body != nil:
		cur.failAt(cur.word, "this rule has a body already")
	case cur.c.repeats > 1:
		cur.failAt(cur.word, "a whole body stands outside of repeat")
	}
	r.answer.body = f
	return bodyStep{}
}

// trip makes a cut or stall with "after SIZE" a trigger of the whole rule.
func (cur *cursor) trip(r *rule, act step) step {
	if !cur.is("after") {
		return act
	}
	switch {
	case r.answer.trip != nil:
		cur.failAt(cur.word, "this rule breaks off after some bytes already")
	case r.connection:
		cur.failAt(cur.word, "a connection has no body to count: after is for calls")
	}
	r.answer.trip = &trip{after: int64(cur.size(0)), act: act}
	return nil
}
