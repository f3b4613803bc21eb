package main

import (
	"strconv"

	interlock "github.com/interlock-gateway/interlock/sdk/go"
	"github.com/interlock-gateway/interlock/sdk/go/chat"
	"github.com/interlock-gateway/interlock/sdk/go/json"
)

// request turns the caller's body into the provider's request.
func (a *adapter) request(c *interlock.Call, body []byte, out *interlock.Request) error {
	r, err := chat.Read(body) // its errors name the part of the body that is wrong
	if err != nil {
		return err
	}
	// All that the provider has an equivalent for. A caller who sends another parameter that would
	// change the answer gets 400 unsupported_parameter: nothing is dropped silently.
	if err := r.Supports("tools", "tool_choice", "max_tokens", "temperature", "stop"); err != nil {
		return err
	}
	// Method POST and content type application/json are set already. The host joins the path to the
	// base URL, and adds the credential.
	out.Path = "/v2/generate"
	out.Set("acme-version", a.version)

	// Strings go over as they are written in the caller's JSON: nothing is decoded and quoted again.
	b := append(out.Body, '{')
	b = json.AppendText(b, "model", c.Model) // what this provider calls the model
	b = append(json.AppendKey(b, "turns"), '[')
	for i := range r.Messages {
		if b, err = turn(json.AppendComma(b), &r.Messages[i], i); err != nil {
			return err
		}
	}
	b = append(b, ']')
	if b, err = tools(b, r); err != nil {
		return err
	}
	b = json.AppendMember(b, "limit", r.MaxTokens) // nothing where the caller said nothing
	b = json.AppendMember(b, "temperature", r.Temperature)
	if len(r.Stop) > 0 {
		b = append(json.AppendKey(b, "stop"), '[')
		for _, text := range r.Stop {
			b = append(json.AppendComma(b), text...)
		}
		b = append(b, ']')
	}
	if c.Stream {
		b = json.AppendBool(b, "stream", true)
	}
	out.Body = append(b, '}')
	return nil
}

var speakers = [...]string{
	chat.System: "system", chat.Developer: "system", chat.User: "user", chat.Assistant: "model", chat.ToolRole: "tool",
}

// turn appends one message.
func turn(b []byte, m *chat.Message, index int) ([]byte, error) {
	at := "messages[" + strconv.Itoa(index) + "]"
	b = json.AppendText(append(b, '{'), "from", speakers[m.Role])
	b = append(json.AppendKey(b, "text"), '[')
	for i := range m.Parts {
		p := &m.Parts[i]
		if p.Kind != chat.Text {
			return nil, interlock.Unsupported(at+".content", "this provider takes text only")
		}
		// A large string is a handle here, for which the host puts the text back. It has to be all of
		// a string: never join it to another, and never look inside.
		b = append(json.AppendComma(b), p.Text...)
	}
	b = append(b, ']')
	b = json.AppendMember(b, "call", m.ToolCallID) // with the role tool only
	if len(m.ToolCalls) > 0 {
		b = append(json.AppendKey(b, "calls"), '[')
		for i := range m.ToolCalls {
			t := &m.ToolCalls[i]
			input, ok := t.ArgumentsJSON() // OpenAI's are a string that holds JSON
			if !ok {
				return nil, interlock.BadParam(at+".tool_calls", "the arguments are not a JSON object")
			}
			b = append(json.AppendComma(b), '{')
			b = json.AppendMember(b, "id", t.ID)
			b = json.AppendMember(b, "name", t.Name)
			b = append(json.AppendMember(b, "input", input), '}')
		}
		b = append(b, ']')
	}
	return append(b, '}'), nil
}

// tools appends the functions that the model may call, and whether it must.
func tools(b []byte, r *chat.Request) ([]byte, error) {
	if len(r.Tools) == 0 {
		return b, nil
	}
	b = append(json.AppendKey(b, "tools"), '[')
	for i := range r.Tools {
		t := &r.Tools[i]
		b = append(json.AppendComma(b), '{')
		b = json.AppendMember(b, "name", t.Name)
		b = json.AppendMember(b, "about", t.Description)
		b = append(json.AppendMember(b, "input", t.Parameters), '}')
	}
	b = append(b, ']')
	switch r.Choice.Mode {
	case chat.ToolsRequired:
		b = json.AppendText(b, "choose", "always")
	case chat.ToolsNone:
		b = json.AppendText(b, "choose", "never")
	case chat.ToolsNamed:
		return nil, interlock.Unsupported("tool_choice", "this provider cannot be told which tool to call")
	}
	return b, nil
}
