package vectors_test

import (
	"flag"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/sdk/abi/vectors"
	interlock "github.com/interlock-gateway/interlock/sdk/go"
	"github.com/interlock-gateway/interlock/sdk/guests/go/echo"
)

var update = flag.Bool("update", false, "write the vectors anew from the cases in this test")

// part writes a part of an input.
type part func(w *interlock.Writer)

const version = `{"version":"1.2"}`

func in(stream bool, endpoint string, parts ...part) []byte {
	var c, w interlock.Writer
	c.Bool(stream)
	c.U64(1_800_000_000_123)
	c.Str(endpoint)
	c.Str("echo-1")
	c.Str("req_01H")
	w.Bytes(c)
	for _, p := range parts {
		p(&w)
	}
	return w
}

func less(b []byte, n int) []byte { return b[:len(b)-n] }

func chat(stream bool, parts ...part) []byte { return in(stream, "chat_completions", parts...) }

func text(s string) part { return func(w *interlock.Writer) { w.Str(s) } }

func number(n uint32) part { return func(w *interlock.Writer) { w.U32(n) } }

func fields(pairs ...string) part {
	return func(w *interlock.Writer) {
		w.U32(uint32(len(pairs) / 2))
		for _, s := range pairs {
			w.Str(s)
		}
	}
}

func frames(data ...string) part {
	return func(w *interlock.Writer) {
		w.U32(uint32(len(data)))
		for _, d := range data {
			w.Str("")
			w.Str(d)
		}
	}
}

func subject(key string) part {
	return func(w *interlock.Writer) {
		var s interlock.Writer
		s.Str(key)
		s.Str(`{"team":"a"}`)
		s.Str("alias")
		w.Bytes(s)
	}
}

func answer(state string, status uint32, body string, header ...string) []byte {
	return chat(false, text(state), number(status), fields(header...), text(body))
}

func events(state string, ended uint32, data ...string) []byte {
	return chat(true, text(state), number(ended), frames(data...))
}

const (
	wholeAnswer = `{"id":"e1","at":1700000000,"say":"h\u00e9 \"you\" 😀","end":"done","in":3,"out":4,"known":1}`
	callAnswer  = ` {"end":"done","calls":[{"name":"f"},{"id":"c2","name":"g","with":{ "a" : "b\nc" }}],"in":3,"out":4} `
)

type file struct {
	name  string
	op    uint32
	cases []vectors.Vector
}

func files() []file {
	type list = []vectors.Vector
	return []file{
		{"configure", interlock.OpConfigure, list{
			{Name: "nothing configured", In: in(false, "", text("{}"))},
			{Name: "no bytes at all", In: in(false, "", text(""))},
			{Name: "a version", In: in(false, "", text(version))},
			{Name: "a version that is none", In: in(false, "", text(`{"version":"1 2"}`))},
			{Name: "an unknown key", In: in(false, "", text(`{"colour":1}`))},
			{Name: "not JSON", In: in(false, "", text(`{"version":`))},
			{Name: "cut in the length", In: less(in(false, "", text("{}")), 3)},
			{Name: "nothing", In: nil},
		}},
		{"request", interlock.OpRequest, list{
			{Name: "one turn", In: chat(false, text(`{"model":"m","messages":[{"role":"user","content":"hi"}]}`))},
			{Name: "a stream with a conversation", Config: version, In: chat(true, text(
				`{"model":"m","stream":true,"max_tokens":7,"messages":[{"role":"system","content":"be \u00fc"},`+
					`{"role":"developer","content":[{"type":"text","text":"a"},{"type":"text","text":"b\n"}]},`+
					`{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}}]},`+
					`{"role":"tool","tool_call_id":"c1","content":"r"}],"tools":[{"type":"function","function":{"name":"f","parameters":{}}}]}`))},
			{Name: "max_completion_tokens before max_tokens", In: chat(false, text(
				`{"max_tokens":7,"max_completion_tokens":8,"user":"u","n":1,"store":false,"messages":[{"role":"user","content":""}]}`))},
			{Name: "not JSON", In: chat(false, text(`{"messages":`))},
			{Name: "no messages", In: chat(false, text(`{"model":"m"}`))},
			{Name: "a temperature", In: chat(false, text(`{"temperature":0.5,"messages":[{"role":"user","content":"hi"}]}`))},
			{Name: "an unknown parameter", In: chat(false, text(`{"messages":[{"role":"user","content":"hi"}],"shout":true}`))},
			{Name: "an unknown role", In: chat(false, text(`{"messages":[{"role":"user","content":"hi"},{"role":"friend","content":"hi"}]}`))},
			{Name: "an image", In: chat(false, text(`{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://example.com/a.png"}}]}]}`))},
			{Name: "cut in the body", In: less(chat(false, text(`{"model":"m"}`)), 1)},
		}},
		{"response", interlock.OpResponse, list{
			{Name: "text", In: answer("", 200, wholeAnswer, "content-type", "application/json")},
			{Name: "calls, without an ID and without arguments too", In: answer("", 200, callAnswer)},
			{Name: "nothing said", In: answer("", 200, `{"id":"e2","end":"limit"}`)},
			{Name: "blocked", In: answer("", 200, `{"id":"e2","say":"par","end":"blocked","in":1,"out":1}`)},
			{Name: "an error inside", In: answer("", 200, `{"error":{"kind":"busy","text":"full"}}`)},
			{Name: "no known end", In: answer("", 200, `{"say":"x","end":"bored"}`)},
			{Name: "not JSON", In: answer("", 200, `<html>`)},
			{Name: "more headers than there are bytes", In: chat(false, text(""), number(200), number(1<<31))},
		}},
		{"events", interlock.OpEvents, nil}, // made below: the state is handed on
		{"classify", interlock.OpClassify, list{
			{Name: "busy", In: answer("", 503, `{"error":{"kind":"busy","text":"full"}}`)},
			{Name: "slow, retry-after in seconds", In: answer("", 429, `{"error":{"kind":"slow","text":"less"}}`, "retry-after", "7")},
			{Name: "retry-after in milliseconds", In: answer("", 429, ``, "retry-after", "7", "retry-after-ms", "1500")},
			{Name: "too long", In: answer("", 400, `{"error":{"kind":"long","text":"too \"long\""}}`)},
			{Name: "a bad key", In: answer("", 401, `{"error":{"kind":"key","text":"no"}}`)},
			{Name: "an unknown kind", In: answer("", 400, `{"error":{"kind":"rude","text":"no"}}`)},
			{Name: "cut short", In: answer("", 500, `{"error":{"kind":"bu`)},
			{Name: "another shape", In: answer("", 500, `{"error":"no"}`, "retry-after", "soon")},
		}},
		{"describe", interlock.OpDescribe, list{{Name: "the manifest", In: in(false, "")}}},
		{"guard_request", interlock.OpGuardRequest, list{
			{Name: "pass", In: chat(false, subject("k1"), text(`{"a":"b"}`))},
			{Name: "use", In: chat(false, subject("k1"), text(`{"colour":"colours"}`))},
			{Name: "refuse", In: chat(false, subject("k1"), text(`{"a":"a forbidden colour"}`))},
			{Name: "root may", In: chat(false, subject("root"), text(`{"a":"a forbidden colour"}`))},
			{Name: "a subject cut short", In: chat(false, text("\x02\x00\x00\x00k"), text(`{}`))},
		}},
		{"guard_response", interlock.OpGuardResponse, list{
			{Name: "pass", In: chat(false, subject("k1"), text(`{"a":"b"}`))},
			{Name: "refuse", In: chat(false, subject("k1"), text(`forbidden`))},
		}},
		{"guard_events", interlock.OpGuardEvents, list{
			{Name: "pass, the first", In: chat(true, subject("k1"), text(""), number(0), frames(`{"a":1}`, `{}`))},
			{Name: "use, later", In: chat(true, subject("k1"), text("\x02\x00\x00\x00"), number(0), frames(`{}`, `{"colour":1}`))},
			{Name: "refuse, at the end", In: chat(true, subject("k1"), text("\x04\x00\x00\x00"), number(1), frames(`{"colour":1}`, `"forbidden"`))},
		}},
		{"reserved", interlock.OpGuardEvents + 1, list{{Name: "an operation that nobody has", In: chat(false)}}},
	}
}

// streams are sequences of batches: each batch gets the state that the one before left.
var streams = []struct {
	name    string
	batches [][]string // the last is sent with the end of the body when it is empty
}{
	{"text", [][]string{
		{`{"t":"start","id":"e1","at":1700000000}`},
		{`{"t":"say","text":"he"}`, `{"t":"say","text":"l\"l"}`, `{"t":"think"}`},
		{`{"t":"say","text":"o 😀"}`, `{"t":"end","end":"done","in":3,"out":4,"known":1}`, `{"t":"say","text":"late"}`},
	}},
	{"calls", [][]string{
		{`{"t":"call","name":"f"}`},
		{`{"t":"call","id":"c2","name":"g"}`, `{"t":"with","part":"{\"a\":"}`},
		{`{"t":"with","part":"1}"}`},
		{`{"t":"end","end":"done","in":3,"out":4}`},
	}},
	{"nothing said", [][]string{{`{"t":"end","end":"limit"}`}}},
	{"an error", [][]string{{`{"t":"say","text":"he"}`, `{"t":"error","kind":"slow","text":"stop"}`, `{"t":"say","text":"late"}`}}},
	{"broken", [][]string{{`{"t":"say","text":"he"}`}, {`{"t":"say","text":"hm"}`, `{"t":`}}},
	{"cut", [][]string{{`{"t":"say","text":"he"}`}, {}}},
}

func configured(t *testing.T, v *vectors.Vector) *interlock.Guest {
	g := interlock.NewGuest(echo.Manifest, echo.New)
	if v.Config != "" {
		_, failed := g.Call(interlock.OpConfigure, in(false, "", text(v.Config)), nil)
		require.False(t, failed)
	}
	return g
}

// made computes every vector anew.
func made(t *testing.T) (all []file) {
	for _, f := range files() {
		if f.name == "events" {
			f.cases = madeStreams(t)
		}
		for i := range f.cases {
			v := &f.cases[i]
			v.Name, v.Op = f.name+": "+v.Name, f.op
			if f.op != interlock.OpConfigure && f.op != interlock.OpDescribe && v.Config == "" {
				v.Config = "{}"
			}
			v.Out, v.Failed = configured(t, v).Call(v.Op, v.In, []byte{})
		}
		all = append(all, f)
	}
	return all
}

func madeStreams(t *testing.T) (list []vectors.Vector) {
	for _, s := range streams {
		state := ""
		for i, batch := range s.batches {
			ended := uint32(0)
			if len(batch) == 0 {
				ended = 1
			}
			v := vectors.Vector{Name: s.name + " " + string(rune('1'+i)), Config: "{}", In: events(state, ended, batch...)}
			out, failed := configured(t, &v).Call(interlock.OpEvents, v.In, nil)
			require.False(t, failed)
			r := interlock.NewReader(out)
			r.U32()
			state = string(r.Bytes())
			list = append(list, v)
		}
	}
	return list
}

func TestVectorsAreCurrent(t *testing.T) {
	for _, f := range made(t) {
		want := vectors.Format(f.name, f.cases)
		if *update {
			require.NoError(t, os.WriteFile(f.name+".txt", []byte(want), 0o644))
			continue
		}
		got, err := os.ReadFile(f.name + ".txt")
		require.NoError(t, err)
		require.Equal(t, want, string(got), "%s.txt; run with -update if the change is meant", f.name)
	}
}

// One instance answers every vector, in any order, as a new one does.
func TestOneInstanceAnswersAll(t *testing.T) {
	all, err := vectors.All()
	require.NoError(t, err)
	require.Greater(t, len(all), 40)
	for _, config := range []string{"{}", version} {
		g := configured(t, &vectors.Vector{Config: config})
		for range 2 {
			for i := range all {
				v := &all[len(all)-1-i]
				if v.Config != config {
					continue
				}
				out, failed := g.Call(v.Op, v.In, nil)
				require.Equal(t, v.Failed, failed, v.Name)
				require.Equal(t, string(v.Out), string(out), v.Name)
			}
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for _, text := range []string{"op 1", "# a\nop x", "# a\nin 0", "# a\nwhat 1"} {
		_, err := vectors.Parse("f", text)
		require.Error(t, err, text)
	}
}
