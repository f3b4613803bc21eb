package gemini

import (
	"bytes"

	"github.com/interlock-gateway/interlock/sdk/go/chat"
	"github.com/interlock-gateway/interlock/sdk/go/json"
)

// function takes a functionCall: a whole one, or a part of one whose arguments are streamed. Of
// those only the first has a name, and the last has no willContinue.
func (a *answer) function(o *chat.Out, k *candidate, index int, v, signature json.Value) error {
	var id, name, args, parts json.Value
	more := false
	for key, v := range v.Members() {
		switch string(key) {
		case "id":
			id = v
		case "name":
			name = v
		case "args":
			args = v
		case "partialArgs":
			parts = v
		case "willContinue":
			more = v.True()
		}
	}
	if !args.IsNull() && !args.IsObject() {
		return malformed("the arguments of a function call are no object")
	}
	if name.Empty() || !name.IsString() {
		if !k.open {
			if !args.Empty() || !parts.Empty() {
				return malformed("a function call has no name")
			}
			return nil
		}
		if signature != nil {
			o.Opaque(index, callItem(signature, k.id, k.own))
		}
		return k.continueCall(o, index, parts, more)
	}
	if err := k.closeCall(o, index); err != nil {
		return err
	}
	own := id.IsString() && !id.Empty()
	if !own {
		id = callID(a.call, index, calls(o, index))
	}
	o.ToolCall(index, id, name)
	k.said = true
	if own || signature != nil {
		o.Opaque(index, callItem(signature, id, own))
	}
	if parts.Empty() && !more {
		o.ArgumentsJSON(index, args)
		o.EndCall(index)
		return nil
	}
	if !args.Empty() {
		return malformed("a function call has whole arguments and parts of them")
	}
	k.open, k.own = true, own
	k.id = append(k.id[:0:0], id...)
	k.args = arguments{}
	return k.continueCall(o, index, parts, more)
}

func (k *candidate) continueCall(o *chat.Out, index int, parts json.Value, more bool) error {
	var err error
	var b []byte
	for part := range parts.Items() {
		if b, err = k.args.add(b, part); err != nil {
			return err
		}
	}
	emitArguments(o, index, b)
	if more {
		return nil
	}
	return k.closeCall(o, index)
}

// closeCall ends the call whose arguments came in parts, if one is open.
func (k *candidate) closeCall(o *chat.Out, index int) error {
	if !k.open {
		return nil
	}
	emitArguments(o, index, k.args.end(nil))
	o.EndCall(index)
	k.open, k.id, k.args = false, nil, arguments{}
	return nil
}

func emitArguments(o *chat.Out, index int, text []byte) {
	if len(text) > 0 {
		o.Arguments(index, json.AppendQuote(nil, text))
	}
}

const (
	maxLevels = 64
	maxKeys   = 8 << 10 // bytes of all keys of the open objects
)

// arguments writes a JSON object whose values come one after the other, each with its path. What
// is written is never taken back: the values have to come in the order of the text.
type arguments struct {
	levels   []nest // the open objects and arrays, the object of all first
	inString bool   // the last value is a string that goes on
}

// nest is an open object or array.
type nest struct {
	array bool
	next  uint32 // of an array, the index behind the last
	keys  []byte // of an object, the keys so far, each a JSON string with a line feed behind it
	last  []byte // of them the last
}

// step is an element of a path: a key, a JSON string, or where that is nil an index.
type step struct {
	key   []byte
	index uint32
}

var errPath = malformed("the parts of a function call's arguments do not fit together")

// add appends what a PartialArg adds to the text: {jsonPath, stringValue | numberValue |
// boolValue | nullValue, willContinue}.
func (a *arguments) add(b []byte, part json.Value) ([]byte, error) {
	var path, value json.Value
	given, more := false, false
	for key, v := range part.Members() {
		switch string(key) {
		case "jsonPath":
			path = v
		case "stringValue", "numberValue", "boolValue":
			value, given = v, true
		case "nullValue":
			value, given = json.Value("null"), true
		case "willContinue":
			more = v.True()
		}
	}
	if !given {
		return b, nil
	}
	if k := value.Kind(); k == json.Absent || k == json.Object || k == json.Array {
		return nil, errPath
	}
	steps, ok := parsePath(path.Text())
	if !ok {
		return nil, errPath
	}
	if a.inString {
		if value.IsString() && a.at(steps) {
			b = join(b, value.Contents())
			if !more {
				b = char(b, '"')
			}
			a.inString = more
			return b, nil
		}
		b = char(b, '"')
		a.inString = false
	}
	if b, ok = a.moveTo(b, steps); !ok {
		return nil, errPath
	}
	if value.IsString() && more {
		a.inString = true
		return join(char(b, '"'), value.Contents()), nil
	}
	return join(b, value), nil
}

// at says whether the last value is the one with that path.
func (a *arguments) at(steps []step) bool {
	if len(steps) != len(a.levels) {
		return false
	}
	for i := range steps {
		if !a.levels[i].at(steps[i]) {
			return false
		}
	}
	return true
}

// at says whether the step leads to the level's last member.
func (l *nest) at(s step) bool {
	if l.array {
		return s.key == nil && l.next > 0 && s.index == l.next-1
	}
	return s.key != nil && l.last != nil && bytes.Equal(s.key, l.last)
}

// moveTo closes and opens objects and arrays until a value with that path can be written.
func (a *arguments) moveTo(b []byte, steps []step) ([]byte, bool) {
	if len(steps) > maxLevels {
		return nil, false
	}
	if len(a.levels) == 0 {
		a.levels = append(a.levels, nest{})
		b = char(b, '{')
	}
	shared := 0
	for shared < len(steps)-1 && shared < len(a.levels)-1 && a.levels[shared].at(steps[shared]) {
		shared++
	}
	b = a.closeTo(b, shared+1)
	for i := shared; ; i++ {
		var ok bool
		if b, ok = a.levels[i].begin(b, steps[i]); !ok || a.size() > maxKeys {
			return nil, false
		}
		if i == len(steps)-1 {
			return b, true
		}
		array := steps[i+1].key == nil
		if array {
			b = char(b, '[')
		} else {
			b = char(b, '{')
		}
		a.levels = append(a.levels, nest{array: array})
	}
}

// begin writes what stands before a new member's value.
func (l *nest) begin(b []byte, s step) ([]byte, bool) {
	if l.array {
		if s.key != nil || s.index != l.next {
			return nil, false
		}
		if l.next > 0 {
			b = char(b, ',')
		}
		l.next++
		return b, true
	}
	if s.key == nil || l.has(s.key) {
		return nil, false
	}
	if len(l.keys) > 0 {
		b = char(b, ',')
	}
	from := len(l.keys)
	l.keys = char(append(l.keys[:from:from], s.key...), '\n')
	l.last = l.keys[from : len(l.keys)-1]
	return char(join(b, s.key), ':'), true
}

func (l *nest) has(key []byte) bool {
	for rest := l.keys; len(rest) > 0; {
		end := bytes.IndexByte(rest, '\n')
		if end < 0 {
			return false
		}
		if bytes.Equal(rest[:end], key) {
			return true
		}
		rest = rest[end+1:]
	}
	return false
}

func (a *arguments) size() int {
	n := 0
	for i := range a.levels {
		n += len(a.levels[i].keys)
	}
	return n
}

// closeTo closes all but n objects and arrays.
func (a *arguments) closeTo(b []byte, n int) []byte {
	for len(a.levels) > n {
		last := len(a.levels) - 1
		if a.levels[last].array {
			b = char(b, ']')
		} else {
			b = char(b, '}')
		}
		a.levels = a.levels[:last]
	}
	return b
}

// end closes what is open.
func (a *arguments) end(b []byte) []byte {
	if a.inString {
		b = char(b, '"')
		a.inString = false
	}
	return a.closeTo(b, 0)
}

// parsePath reads $.key[0]['other key'], with at least one step.
func parsePath(p []byte) (steps []step, ok bool) {
	if len(p) == 0 || p[0] != '$' {
		return nil, false
	}
	for p = p[1:]; len(p) > 0; {
		var s step
		switch {
		case p[0] == '.':
			end := 1
			for end < len(p) && p[end] != '.' && p[end] != '[' {
				end++
			}
			if end == 1 {
				return nil, false
			}
			s.key, p = json.AppendQuote(nil, p[1:end]), p[end:]
		case len(p) > 2 && p[0] == '[' && (p[1] == '\'' || p[1] == '"'):
			var name []byte
			quote, i := p[1], 2
			for ; i < len(p) && p[i] != quote; i++ {
				if p[i] == '\\' && i+1 < len(p) {
					i++
				}
				name = append(name, p[i])
			}
			if i+1 >= len(p) || p[i+1] != ']' {
				return nil, false
			}
			s.key, p = json.AppendQuote(nil, name), p[i+2:]
		case p[0] == '[':
			i := 1
			for ; i < len(p) && isDigit(p[i]) && s.index < 1<<24; i++ {
				s.index = s.index*10 + uint32(p[i]-'0')
			}
			if i == 1 || i >= len(p) || p[i] != ']' {
				return nil, false
			}
			p = p[i+1:]
		default:
			return nil, false
		}
		steps = append(steps, s)
	}
	return steps, len(steps) > 0
}
