package fault

import "strings"

// answer is a whole healthy answer in one line of a script: role, what is
// said, finish, usage, done.
type answer struct {
	parts  []part
	usage  *usage // nil: counted
	finish string // "": what the parts call for
	whole  bool   // a text is one event rather than one per word
}

// part is one thing an answer says.
type part struct {
	kind    eventKind // eventText, eventReasoning, eventRefusal or eventTool
	content content
	tool    toolTemplate
}

type toolTemplate struct {
	name, arguments, id template
	argumentsJSON       bool
	pieces              int
}

func (t toolTemplate) call(v vars) toolCall {
	c := toolCall{name: t.name.render(v), id: t.id.render(v), pieces: t.pieces}
	if t.argumentsJSON {
		c.arguments = t.arguments.renderJSON(v)
	} else {
		c.arguments = t.arguments.render(v)
	}
	return c
}

func defaultAnswer() answer {
	return answer{parts: []part{{kind: eventText, content: content{
		text: template{pieces: []templatePiece{{literal: "Hello from "}, {name: "name"}, {literal: "."}}},
	}}}}
}

// events are the answer as events, as the request asks for them: each of its
// n choices, and usage in a stream only where include_usage is set.
func (a answer) events(x *exchange) []event {
	var out []event
	words := 0
	for choice := range x.request.asked.choices {
		out = append(out, event{kind: eventRole, choice: choice})
		for _, p := range a.parts {
			said := a.say(p, choice, x.vars)
			for _, e := range said {
				words += len(strings.Fields(e.text + e.tool.arguments))
			}
			out = append(out, said...)
		}
		out = append(out, event{kind: eventFinish, choice: choice, text: a.reason()})
	}
	if !x.streaming || x.request.asked.usage || x.request.endpoint == endpointResponses {
		out = append(out, event{kind: eventUsage, usage: a.count(x, words)})
	}
	if !x.plan.noDone {
		out = append(out, event{kind: eventDone})
	}
	return out
}

func (a answer) say(p part, choice int, v vars) []event {
	if p.kind == eventTool {
		return []event{{kind: eventTool, choice: choice, tool: p.tool.call(v)}}
	}
	if a.whole {
		return []event{{kind: p.kind, choice: choice, text: p.content.render(v)}}
	}
	var out []event
	for _, word := range p.content.tokens(v) {
		out = append(out, event{kind: p.kind, choice: choice, text: word})
	}
	return out
}

func (a answer) reason() string {
	if a.finish != "" {
		return a.finish
	}
	for _, p := range a.parts {
		if p.kind == eventTool {
			return "tool_calls"
		}
	}
	return "stop"
}

// count is the usage: as the script says, else one token per word of the
// answer and one per four bytes of the request.
func (a answer) count(x *exchange, words int) usage {
	if a.usage != nil {
		return *a.usage
	}
	return usage{prompt: (len(x.request.body) + 3) / 4, completion: words, cached: -1, reasoning: -1}
}
