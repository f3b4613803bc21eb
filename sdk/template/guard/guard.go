package main

import (
	"bytes"

	interlock "github.com/interlock-gateway/interlock/sdk/go"
	"github.com/interlock-gateway/interlock/sdk/go/json"
)

// New makes the guard for one configuration, a JSON object: {"words": ["…"]}. Refuse what you do
// not know, so that a misspelt key is found before the first request.
func New(config []byte) (interlock.Plugin, error) {
	root, err := json.Parse(config)
	if err != nil || !root.IsObject() {
		return interlock.Plugin{}, interlock.Config("the configuration is not a JSON object")
	}
	var g guard
	for key, v := range root.Members() {
		if string(key) != "words" || !v.IsArray() {
			return interlock.Plugin{}, interlock.Config("only words, a list of strings, is known: " + string(key))
		}
		for word := range v.Items() {
			if !word.IsString() || word.Empty() || word.DecodedLen() > maxWord {
				return interlock.Plugin{}, interlock.Config("a word is a string of at most 256 bytes")
			}
			g.words = append(g.words, bytes.Clone(word.Text()))
		}
	}
	return interlock.Plugin{GuardRequest: g.body, GuardResponse: g.body, GuardEvents: g.events}, nil
}

const maxWord = 256

// guard holds what the configuration says. Nothing of it changes afterwards.
type guard struct{ words [][]byte }

// The reason is a code, for the log and the ledger; the message is for the caller.
const (
	reason  = "word_not_allowed"
	message = "this text is not allowed here"
)

// body looks at a whole request or answer. It passes (the zero verdict), or refuses; with
// out.Action = interlock.Use and a body appended to out.Body it would replace it.
func (g *guard) body(_ *interlock.Call, _ *interlock.Subject, body []byte, out *interlock.Verdict) error {
	root, err := json.Parse(body)
	if err != nil {
		return interlock.BadRequest("the body is not JSON")
	}
	if g.in(root) {
		out.Action, out.Reason, out.Message = interlock.Refuse, reason, message
	}
	return nil
}

// in says whether any string in v holds one of the words.
func (g *guard) in(v json.Value) bool {
	switch v.Kind() {
	case json.String:
		return g.said(v.Text())
	case json.Array:
		for item := range v.Items() {
			if g.in(item) {
				return true
			}
		}
	case json.Object:
		for _, member := range v.Members() {
			if g.in(member) {
				return true
			}
		}
	}
	return false
}

func (g *guard) said(text []byte) bool {
	for _, word := range g.words {
		if bytes.Contains(text, word) {
			return true
		}
	}
	return false
}

// events looks at the chunks of a stream before they reach the caller. A word may be cut in two
// by them, so the end of the text so far is kept in the state. What was let through before stays
// said: hold text back (answer with Use and no events) where that is not enough.
func (g *guard) events(c *interlock.Call, _ *interlock.Subject, in []interlock.Frame, _ bool, out *interlock.EventsVerdict) error {
	text := bytes.Clone(c.State)
	for i := range in {
		root, err := json.Parse(in[i].Data)
		if err != nil {
			return interlock.Malformed("an event is not JSON")
		}
		for choice := range root.Get("choices").Items() {
			text = choice.At("delta", "content").AppendDecoded(text)
		}
	}
	if g.said(text) {
		out.Action, out.Reason, out.Message = interlock.Refuse, reason, message
	}
	out.State = append(out.State[:0], text[max(0, len(text)-maxWord):]...)
	return nil
}
