package openai

import (
	"cmp"
	"crypto/sha256"
	"slices"

	"github.com/interlock-gateway/interlock/gateway/openai/jsonx"
)

// maxCalls is how many tool calls one answer may make.
const maxCalls = 4096

// maxIndex is the largest index of a choice or a tool call that is taken at its word.
const maxIndex = 1024

// maxArguments bounds the arguments of one call that are kept, in bytes.
const maxArguments = 8 << 20

// ToolCall is a call that a model made of a tool that the caller runs.
type ToolCall struct {
	// Choice is the choice that made the call, and Index its index in there, as the caller gets it.
	Choice, Index int
	ID, Name      string
	Arguments     []byte // decoded; aliases the answer or stream that it came from
	Custom        bool   // a custom tool: its input is text, not JSON
	Clipped       bool   // the arguments were too long to keep whole
}

// Hash is HashArguments of the call's arguments.
func (c ToolCall) Hash() [sha256.Size]byte { return HashArguments(c.Arguments) }

// HashArguments is the SHA-256 of the canonical form of a tool call's arguments: object keys
// sorted by their bytes, no blanks, strings with the fewest escapes, numbers as written. Empty
// arguments are {}; what is not JSON is hashed as it is.
func HashArguments(arguments []byte) [sha256.Size]byte {
	if len(arguments) == 0 {
		return sha256.Sum256([]byte("{}"))
	}
	canonical, ok := jsonx.AppendCanonical(nil, arguments)
	if !ok {
		canonical = arguments
	}
	return sha256.Sum256(canonical)
}

// call is a tool call in the making.
type call struct {
	choice    int
	index     int   // as the caller gets it
	slot      int64 // the provider's index, noSlot when it sends none
	id, name  string
	custom    bool
	clipped   bool
	arguments []byte
}

const noSlot = -1

// calls are the tool calls of one answer in the order in which they began.
type calls []call

// add begins a call; the buffers of an earlier answer's calls are used again.
func (c *calls) add(choice int) *call {
	n := len(*c)
	if n < cap(*c) {
		*c = (*c)[:n+1]
		kept := (*c)[n].arguments
		(*c)[n] = call{arguments: modest(kept)}
	} else {
		*c = append(*c, call{})
	}
	k := &(*c)[n]
	k.choice, k.slot = choice, noSlot
	return k
}

// blank says that nothing is known of the call yet.
func (k *call) blank() bool { return k.id == "" && k.name == "" && len(k.arguments) == 0 }

// next is the lowest index above all of a choice's calls.
func (c calls) next(choice int) int {
	n := 0
	for i := range c {
		if c[i].choice == choice {
			n = max(n, c[i].index+1)
		}
	}
	return n
}

func (c calls) taken(choice, index int) bool {
	for i := range c {
		if c[i].choice == choice && c[i].index == index {
			return true
		}
	}
	return false
}

// find is the call that a piece belongs to, nil when it begins a new one.
//
// An ID that is known decides. An ID that is not begins a call, unless a call is open under the
// same index and the piece brings no name: some servers make up a new ID for every piece. Without
// an ID the index decides, and without an index the last call; but a piece with a name does not
// go on with a call whose arguments are complete.
func (c calls) find(choice int, slot int64, id []byte, named bool) *call {
	var under, last *call
	for i := range c {
		k := &c[i]
		if k.choice != choice {
			continue
		}
		if len(id) > 0 && k.id == string(id) {
			return k
		}
		if slot != noSlot && (k.slot == slot || k.slot == noSlot && k.blank()) {
			under = k
		}
		last = k
	}
	if slot == noSlot {
		under = last
	}
	switch {
	case under == nil:
		return nil
	case len(id) > 0 && (named || slot == noSlot):
		if under.blank() {
			return under
		}
		return nil
	case len(id) == 0 && named && under.name != "" && jsonx.Valid(under.arguments):
		return nil
	}
	return under
}

// list makes the calls' public form.
func (c calls) list() []ToolCall {
	if len(c) == 0 {
		return nil
	}
	out := make([]ToolCall, 0, len(c))
	for i := range c {
		k := &c[i]
		out = append(out, ToolCall{
			Choice: k.choice, Index: k.index, ID: k.id, Name: k.name,
			Arguments: k.arguments, Custom: k.custom, Clipped: k.clipped,
		})
	}
	slices.SortStableFunc(out, func(a, b ToolCall) int {
		return cmp.Or(cmp.Compare(a.Choice, b.Choice), cmp.Compare(a.Index, b.Index))
	})
	return out
}

// argue adds a piece of arguments, given as the contents of a JSON string.
func (k *call) argue(raw []byte) {
	if len(k.arguments)+len(raw) > maxArguments {
		k.clipped = true
		return
	}
	k.arguments = jsonx.AppendDecoded(k.arguments, raw)
}

// piece is one element of a delta's or a message's tool_calls.
type piece struct {
	open      int // offset of its opening brace
	index     int64
	indexAt   Span // absent when there is no index member
	id        []byte
	kind      []byte
	kindAt    Span // absent when there is no type member
	name      []byte
	arguments []byte
	custom    bool
	any       bool // it holds something of a call
}

// readPiece reads an element of tool_calls.
func readPiece(r *jsonx.Reader) (p piece) {
	p.index = noSlot
	if r.Peek() != jsonx.Object {
		r.Skip()
		return p
	}
	p.open = r.Pos()
	r.Enter()
	for {
		key, _, ok := r.Key()
		if !ok {
			return p
		}
		switch string(key) {
		case "index":
			r.Peek()
			from := r.Pos()
			n, whole := r.IntOrSkip()
			p.indexAt = Span{from, r.Pos()}
			if whole && n >= 0 && n < maxIndex {
				p.index = n
			}
		case "id":
			p.id = decodedText(r)
			p.any = p.any || len(p.id) > 0
		case "type":
			r.Peek()
			from := r.Pos()
			p.kind, _, _ = r.StrOrSkip()
			p.kindAt = Span{from, r.Pos()}
		case "function":
			p.body(r)
		case "custom":
			if r.Peek() == jsonx.Object {
				p.custom = true
			}
			p.body(r)
		default:
			r.Skip()
		}
	}
}

// body reads {"name", "arguments"} or a custom tool's {"name", "input"}.
func (p *piece) body(r *jsonx.Reader) {
	if r.Peek() != jsonx.Object {
		r.Skip()
		return
	}
	r.Enter()
	for {
		key, _, ok := r.Key()
		if !ok {
			return
		}
		switch string(key) {
		case "name":
			p.name = decodedText(r)
			p.any = p.any || len(p.name) > 0
		case "arguments", "input":
			if r.Peek() == jsonx.String {
				p.arguments, _ = r.Str()
			} else {
				r.Skip()
			}
			p.any = p.any || len(p.arguments) > 0
		default:
			r.Skip()
		}
	}
}

// decodedText reads a string; nil for anything else. It allocates for escapes only.
func decodedText(r *jsonx.Reader) []byte {
	raw, escaped, ok := r.StrOrSkip()
	if !ok {
		return nil
	}
	return jsonx.Decoded(raw, escaped)
}
