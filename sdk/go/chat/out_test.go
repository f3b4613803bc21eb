package chat_test

import (
	"bytes"
	stdjson "encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	interlock "github.com/interlock-gateway/interlock/sdk/go"
	"github.com/interlock-gateway/interlock/sdk/go/chat"
	"github.com/interlock-gateway/interlock/sdk/go/json"
)

// said is one call of an Out.
type said func(o *chat.Out)

var values = []json.Value{
	nil, v(`null`), v(`""`), v(`1`), v(`"a"`), v(`"b \"c\" \\ \n"`), v(`"é😀"`), v(`"\ud83d\ude00"`), v(`"\ud83d"`), v(`"\ude00x"`), v(`"</s>"`),
}

func drawSaid(t *rapid.T) said {
	choice := rapid.SampledFrom([]int{0, 0, 0, 1, 2, 5, -1, 1000}).Draw(t, "choice")
	text := rapid.SampledFrom(values).Draw(t, "text")
	switch rapid.IntRange(1, 12).Draw(t, "what") {
	case 1, 2:
		return func(o *chat.Out) { o.Text(choice, text) }
	case 3:
		return func(o *chat.Out) { o.Reasoning(choice, text) }
	case 4:
		return func(o *chat.Out) { o.Refusal(choice, text) }
	case 5, 6:
		return func(o *chat.Out) { o.ToolCall(choice, text, v(`"f"`)) }
	case 7, 8:
		return func(o *chat.Out) { o.Arguments(choice, text) }
	case 9:
		args := rapid.SampledFrom([]json.Value{nil, v("null"), v(`{}`), v("{ \"a\":\r\n[1, \"b \\\"\"] }")}).Draw(t, "args")
		return func(o *chat.Out) { o.ArgumentsJSON(choice, args) }
	case 10:
		item := rapid.SampledFrom([]json.Value{nil, v(`[]`), v(`{"provider":"p" , "type":"t"}`), v(`{"provider":"p","n":2}`)}).Draw(t, "item")
		return func(o *chat.Out) { o.Opaque(choice, item) }
	case 11:
		return func(o *chat.Out) { o.EndCall(choice) }
	default:
		reason := rapid.SampledFrom([]chat.Reason{chat.Stop, chat.Length, chat.ToolCalls, chat.ContentFilter, 0, 99}).Draw(t, "reason")
		return func(o *chat.Out) { o.Finish(choice, reason) }
	}
}

// answer is a whole answer, or what a client makes of the chunks of one.
type answer struct {
	ID      string
	Object  string
	Created uint64
	Model   string
	Choices map[int]*answerChoice
	Usage   stdjson.RawMessage
}

type answerChoice struct {
	Content, Refusal, Reasoning *string
	Calls                       []call
	Data                        []string
	Finish                      string
}

type call struct{ ID, Name, Arguments string }

type wireMessage struct {
	Role      string  `json:"role"`
	Content   *string `json:"content"`
	Refusal   *string `json:"refusal"`
	Reasoning *string `json:"reasoning_content"`
	ToolCalls []struct {
		Index    *int    `json:"index"`
		ID       *string `json:"id"`
		Type     *string `json:"type"`
		Function struct {
			Name      *string `json:"name"`
			Arguments string  `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
	Data []stdjson.RawMessage `json:"provider_data"`
}

type wireAnswer struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created uint64 `json:"created"`
	Model   string `json:"model"`
	Choices []struct {
		Index   int          `json:"index"`
		Delta   *wireMessage `json:"delta"`
		Message *wireMessage `json:"message"`
		Finish  *string      `json:"finish_reason"`
	} `json:"choices"`
	Usage stdjson.RawMessage `json:"usage"`
}

func strict(t require.TestingT, b []byte, to *wireAnswer) {
	require.NotContains(t, string(b), "\n")
	d := stdjson.NewDecoder(bytes.NewReader(b))
	require.NoError(t, d.Decode(to), "%s", b)
	require.False(t, d.More(), "%s", b)
	require.True(t, json.Valid(b), "%s", b)
}

func add(to **string, s *string) {
	if s == nil {
		return
	}
	if *to == nil {
		*to = new(string)
	}
	**to += *s
}

func readWhole(t require.TestingT, b []byte) *answer {
	var w wireAnswer
	strict(t, b, &w)
	require.Equal(t, "chat.completion", w.Object)
	a := &answer{w.ID, "", w.Created, w.Model, map[int]*answerChoice{}, w.Usage}
	for _, c := range w.Choices {
		m := c.Message
		require.Equal(t, "assistant", m.Role)
		to := &answerChoice{Content: m.Content, Refusal: m.Refusal, Reasoning: m.Reasoning, Finish: *c.Finish}
		for _, tc := range m.ToolCalls {
			require.Equal(t, "function", *tc.Type)
			to.Calls = append(to.Calls, call{*tc.ID, *tc.Function.Name, tc.Function.Arguments})
		}
		for _, d := range m.Data {
			to.Data = append(to.Data, string(d))
		}
		require.Nil(t, a.Choices[c.Index])
		a.Choices[c.Index] = to
	}
	return a
}

// assemble does what a client does, and is strict about it.
func assemble(t require.TestingT, chunks [][]byte) *answer {
	a := &answer{Choices: map[int]*answerChoice{}}
	for i, b := range chunks {
		var w wireAnswer
		strict(t, b, &w)
		require.Equal(t, "chat.completion.chunk", w.Object)
		if i == 0 {
			a.ID, a.Created, a.Model = w.ID, w.Created, w.Model
		}
		require.Equal(t, []any{a.ID, a.Created, a.Model}, []any{w.ID, w.Created, w.Model})
		if w.Usage != nil {
			require.Nil(t, a.Usage, "usage twice")
			require.Empty(t, w.Choices)
			a.Usage = w.Usage
			continue
		}
		require.Len(t, w.Choices, 1)
		c := w.Choices[0]
		to := a.Choices[c.Index]
		if to == nil {
			to = &answerChoice{}
			a.Choices[c.Index] = to
			require.Equal(t, "assistant", c.Delta.Role, "the role comes first")
		} else {
			require.Empty(t, c.Delta.Role)
		}
		add(&to.Content, c.Delta.Content)
		add(&to.Refusal, c.Delta.Refusal)
		add(&to.Reasoning, c.Delta.Reasoning)
		for _, tc := range c.Delta.ToolCalls {
			if tc.ID != nil {
				require.Equal(t, len(to.Calls), *tc.Index)
				require.Equal(t, "function", *tc.Type)
				to.Calls = append(to.Calls, call{*tc.ID, *tc.Function.Name, tc.Function.Arguments})
				continue
			}
			require.Equal(t, len(to.Calls)-1, *tc.Index)
			to.Calls[*tc.Index].Arguments += tc.Function.Arguments
		}
		for _, d := range c.Delta.Data {
			to.Data = append(to.Data, string(d))
		}
		if c.Finish != nil {
			require.Empty(t, to.Finish, "finished twice")
			to.Finish = *c.Finish
			require.Contains(t, []string{"stop", "length", "tool_calls", "content_filter"}, to.Finish)
		}
	}
	return a
}

var context = interlock.Call{Model: `m"1`, RequestID: "req_\"1", Now: 1_800_000_000_500}

// chunks says it all by Events, in batches that end behind the indexes in cuts, and returns the
// chunks' data.
func chunks(t require.TestingT, all []said, cuts map[int]bool) (data [][]byte) {
	var batch []said
	g := interlock.NewGuest("{}", func([]byte) (interlock.Plugin, error) {
		return interlock.Plugin{Events: func(c *interlock.Call, _ []interlock.Frame, _ bool, out *interlock.Events) error {
			o := chat.NewChunks(c, out)
			rest := o.LoadState(c.State)
			for _, say := range batch {
				say(&o)
			}
			if len(c.State) > 0 {
				require.Equal(t, uint32(7), rest.U32(), "the adapter's own part")
			}
			require.Equal(t, len(c.State) > 0, rest.OK() && len(c.State) > 0)
			w := interlock.Writer(o.AppendState(out.State[:0]))
			w.U32(7)
			out.State = w
			return nil
		}}, nil
	})
	input := func(tail ...string) []byte {
		var c, w interlock.Writer
		c.U32(1)
		c.U64(context.Now)
		c.Str("chat_completions")
		c.Str(context.Model)
		c.Str(context.RequestID)
		w.Bytes(c)
		for _, s := range tail {
			w.Str(s)
		}
		return w
	}
	_, failed := g.Call(interlock.OpConfigure, input("{}"), nil)
	require.False(t, failed)
	state := ""
	for i := range all {
		if batch = append(batch, all[i]); i < len(all)-1 && !cuts[i] {
			continue
		}
		in := interlock.Writer(input(state))
		in.U32(0)
		in.U32(0)
		out, failed := g.Call(interlock.OpEvents, in, nil)
		require.False(t, failed, "%q", out)
		r := interlock.NewReader(out)
		require.Zero(t, r.U32())
		state = r.Str()
		for n := r.Count(8); n > 0; n-- {
			require.Empty(t, r.Str())
			data = append(data, r.Bytes())
		}
		require.True(t, r.OK())
		batch = nil
	}
	return data
}

func TestStreamAndWholeSayTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.SliceOfN(rapid.Custom(drawSaid), 1, 30).Draw(t, "said")
		if id := rapid.SampledFrom(values).Draw(t, "id"); rapid.Bool().Draw(t, "begin") {
			all = append([]said{func(o *chat.Out) { o.Begin(id, 1234) }}, all...)
		}
		cuts := map[int]bool{}
		for i := range all {
			cuts[i] = rapid.Bool().Draw(t, "cut")
		}
		for i := range 6 { // whatever was said, every choice that was begun ends
			all = append(all, func(o *chat.Out) {
				if o.Calls(i) > 0 || i == 0 {
					o.Finish(i, chat.Stop)
				}
			})
		}
		used := chat.Usage{Prompt: rapid.Uint64().Draw(t, "prompt"), Completion: 5, Cached: rapid.Uint64Max(9).Draw(t, "cached"), CacheWrite: 3, Reasoning: rapid.Uint64Max(9).Draw(t, "reasoning")}
		all = append(all, func(o *chat.Out) { o.Usage(used); o.Usage(chat.Usage{}) })

		w := chat.NewWhole(&context)
		for _, say := range all {
			say(&w)
		}
		want := readWhole(t, w.AppendBody(nil))
		together := chunks(t, all, nil)
		apart := chunks(t, all, cuts)
		require.Equal(t, string(bytes.Join(together, []byte("\n"))), string(bytes.Join(apart, []byte("\n"))), "batches show")
		got := assemble(t, together)
		for i, c := range got.Choices {
			if c.Finish == "" { // a whole answer has no place for one that did not end
				delete(got.Choices, i)
			}
		}
		require.Equal(t, want, got)
	})
}

// Provider data that no state could hold leaves earlier, and none of it is lost.
func TestMuchProviderData(t *testing.T) {
	item := json.Value(`{"provider":"p","signature":"` + string(bytes.Repeat([]byte("x"), 20<<10)) + `"}`)
	var all []said
	for range 5 {
		all = append(all, func(o *chat.Out) { o.Opaque(0, item) })
	}
	all = append(all, func(o *chat.Out) { o.Finish(0, chat.Stop) })
	cuts := map[int]bool{0: true, 1: true, 2: true, 3: true, 4: true}
	got := assemble(t, chunks(t, all, cuts)).Choices[0]
	require.Len(t, got.Data, 5)
	for _, d := range got.Data {
		require.Equal(t, string(item), d)
	}
	require.Equal(t, "stop", got.Finish)
}

// One item that is larger than a state leaves at once.
func TestProviderDataLargerThanAState(t *testing.T) {
	item := json.Value(`{"provider":"p","data":"` + string(bytes.Repeat([]byte("x"), interlock.MaxState)) + `"}`)
	var events interlock.Events
	o := chat.NewChunks(&context, &events)
	o.Opaque(0, item)
	require.Less(t, len(o.AppendState(nil)), 1<<10)
	got := assemble(t, chunks(t, []said{func(o *chat.Out) { o.Opaque(0, item) }, func(o *chat.Out) { o.Finish(0, chat.Stop) }}, map[int]bool{0: true})).Choices[0]
	require.Equal(t, []string{string(item)}, got.Data)
}

func TestUsageAddsUp(t *testing.T) {
	w := chat.NewWhole(&context)
	w.Usage(chat.Usage{Prompt: 10, Completion: 1<<64 - 5, Cached: 8, CacheWrite: 8, Reasoning: 1 << 63})
	require.Contains(t, string(w.AppendBody(nil)), `"usage":{"prompt_tokens":10,"completion_tokens":18446744073709551611,"total_tokens":18446744073709551615,`+
		`"prompt_tokens_details":{"cached_tokens":8,"cache_write_tokens":2},"completion_tokens_details":{"reasoning_tokens":9223372036854775808}}`)
}

func FuzzState(f *testing.F) {
	var o chat.Out
	f.Add(o.AppendState(nil))
	o = chat.NewWhole(&context)
	o.Begin(nil, 0)
	o.Text(2, v(`"a"`))
	f.Add(o.AppendState(nil))
	f.Fuzz(func(t *testing.T, state []byte) {
		o := chat.NewWhole(&context)
		before := string(state)
		r := o.LoadState(state)
		_ = r.U32()
		once := o.AppendState(nil)
		again := chat.NewWhole(&context)
		again.LoadState(once)
		require.Equal(t, string(once), string(again.AppendState(nil)))
		o.ArgumentsJSON(0, v(`{}`))
		o.Opaque(0, v(`{}`))
		o.Finish(0, chat.Stop)
		o.AppendBody(nil)
		require.Equal(t, before, string(state), "the state was written to")
	})
}

func TestChunksAllocateNothing(t *testing.T) {
	var state []byte
	begin := chat.NewWhole(&context)
	begin.Begin(v(`"id"`), 1)
	begin.Opaque(0, v(`{"provider":"p"}`))
	state = begin.AppendState(nil)
	var e interlock.Events
	text, args := v(`"hello"`), v(`{"a":"b"}`)
	say := func() {
		o := chat.NewChunks(&context, &e)
		o.LoadState(state)
		o.Text(0, text)
		o.Reasoning(1, text)
		o.ToolCall(0, nil, text)
		o.ArgumentsJSON(0, args)
		o.Arguments(0, text)
		o.Finish(0, chat.Stop)
		o.Usage(chat.Usage{Prompt: 1})
		e.State = o.AppendState(e.State[:0])
	}
	for range 20 {
		say()
	}
	// The events pile up, since only a Guest takes them away: what is left is the growth of that
	// one buffer.
	require.Less(t, testing.AllocsPerRun(1000, say), 0.1)
}
