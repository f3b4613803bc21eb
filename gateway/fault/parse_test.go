package fault

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/tools/txtar"
	"pgregory.net/rapid"
)

// TestParseReportsEveryFault shows, for each kind of fault, where it is found
// and that the message says what is allowed.
func TestParseReportsEveryFault(t *testing.T) {
	for text, want := range map[string]string{
		"on chat\n  texte \"x\"\n":                 "s:2:3: unknown word texte; allowed in a rule: after, answer, as, body, chance, chunk, chunked, close, close-delimited, comment, content-length, created, crlf, cut, delay, delta, done, empty, encoding, end, error, event, every, finish, for, garbage, head, header, html, id, json, model, no-done, once, pace, raw, read, reasoning, refusal, repeat, role, stall, status, text, times, tokens, tool, trickle, until, usage, wire",
		"status 429\n":                             "s:1:1: unknown word status; allowed at the first column: created, dialect, dimensions, healthy, id, idle, key, let, model, models, on, seed; status belongs into a rule: indent it under its \"on\"",
		"  once\n":                                 "s:1:3: an indented line belongs to a rule, and there is no \"on\" above it; settings start at the first column",
		"on talk\n":                                "s:1:4: on: on is followed by any, connection, or endpoints: chat, completions, embeddings, models, moderations, responses",
		"on\n":                                     "s:1:1: on: on is followed by any, connection, or endpoints: chat, completions, embeddings, models, moderations, responses",
		"on chat slowly\n":                         "s:1:9: on: allowed: stream, json, model, method, path, header, body, asks",
		"on chat asks nicely\n":                    "s:1:14: on: allowed: prefill, schema, tools, usage",
		"on any\n  status 42\n":                    "s:2:10: status: a status is needed, a whole number 200 to 999",
		"on any\n  status\n":                       "s:2:3: status: a status is needed, a whole number 200 to 999",
		"on any\n  delay 5\n":                      "s:2:9: delay: a duration is needed, 0s to 24h0m0s, as 250ms, 2s or 1m30s",
		"on any\n  for 0s\n":                       "s:2:7: for: a duration is needed, 1ns to 24h0m0s, as 250ms, 2s or 1m30s",
		"on any\n  chunk 0\n":                      "s:2:9: chunk: a size is needed, 1 bytes to 256MiB, as 999, 64KiB or 32MiB",
		"on any\n  chunk 1GiB\n":                   "s:2:9: chunk: a size is needed, 1 bytes to 256MiB, as 999, 64KiB or 32MiB",
		"on any\n  chunk 257MiB\n":                 "s:2:9: chunk: a size is needed, 1 bytes to 256MiB, as 999, 64KiB or 32MiB",
		"on any\n  chance 100%\n":                  "s:2:10: chance: a percentage is needed, a whole number 1 to 99",
		"on any\n  chance 50\n":                    "s:2:10: chance: a percentage is needed, 1% to 99%",
		"on any\n  cut off\n":                      "s:2:7: cut: allowed: fin, reset",
		"on any\n  encoding lzw\n":                 "s:2:12: encoding: allowed: br, deflate, gzip, zstd",
		"on any\n  once twice\n":                   "s:2:8: once: twice is too much here",
		"on any\n  html \"open\n":                  "s:2:8: the string has no closing \" on its line",
		"on any\n  html \"a\\q\"":                  `s:2:10: unknown escape; allowed: \n \r \t \0 \\ \" \xHH \uHHHH \UHHHHHHHH`,
		"on any\n  json {\"a\": 1":                 "s:2:8: the JSON is not closed: its { has no partner",
		"on any\n  json {\"a\": 01}":               "s:2:15: not valid JSON: invalid character '1' after object key:value pair",
		"on any\n  json {\n  \"a\": x}\n  twice\n": "s:3:8: not valid JSON: invalid character 'x' looking for beginning of value; s:4:3: unknown word twice",
		"on any\n  html \"${who}\"\n":              "s:2:8: html: ${who} stands for nothing; allowed: call, conn, created, id, model, name, and the names of strings given by let ($${ for a plain ${)",
		"on any\n  html $who\n":                    "s:2:8: $who has no value; allowed: none, there is no let above",
		"let a = 1\non any\n  html $who\n":         "s:3:8: $who has no value; allowed: a",
		"let model = 1\n":                          "s:1:5: model is taken: ${model} stands for something already",
		"let a 1\n":                                "s:1:7: = must follow the name, as in let greeting = \"hello\"",
		"let a =\n":                                "s:1:1: let: a value is needed: a \"string\", {JSON}, a number, a duration, words N, fill SIZE \"x\"",
		"let a = 1\nlet a = 2\n":                   "s:2:5: a has a value already",
		"on any\n  text \"x\"\n":                   "s:2:3: text: text needs an endpoint that speaks: \"on chat\", \"on responses\" or \"on completions\", or several of them",
		"on chat\n  raw \"x\"\n":                   "s:2:3: raw makes sense in a stream only: say \"on … stream\", or \"as stream\"",
		"on chat stream\n  as json\n  raw \"x\"\n": "s:3:3: raw makes sense in a stream only: say \"on … stream\", or \"as stream\"",
		"on completions\n  tool f {}\n":            "s:2:3: tool: tool does not exist for completions",
		"on chat\n  role\n  empty\n":               "s:1:1: this rule has two answers: events and a whole body; allowed: one of them",
		"on chat\n  empty\n  empty\n":              "s:3:3: empty: this rule has a body already",
		"on chat\n  chunked\n  close-delimited\n":  "s:3:3: close-delimited: this rule says already how its body ends; allowed: one of chunked, content-length, close-delimited",
		"on chat stream\n  read head\n":            "s:1:1: this rule answers before it reads the body and yet asks for what is in it (stream, json, model, body, asks)",
		"on connection\n  status 500\n":            "s:2:3: status is not for a connection; allowed: after, chance, cut, delay, every, for, garbage, once, repeat, stall, times, until, wire",
		"on chat\n  repeat 2\n":                    "s:2:3: repeat needs { at the end of its line",
		"on chat\n  repeat 2 {\n  role\n":          "s:2:3: repeat { has no closing }",
		"on chat\n  }\n":                           "s:2:3: } closes nothing",
		"on chat\n  repeat 2 {\n  once\n  }\n":     "s:3:3: once holds for the whole rule and stands outside of repeat",
		"on chat\n  repeat 2000 {\n  repeat 2000 {\n  role\n  }\n  }\n": "s:3:3: nested repeats come to more than 1000000",
		"on chat\n  end\n  role\n":                                      "s:3:3: role comes after end: the answer is complete; allowed: cut, delay, garbage, stall, wire",
		"on chat\n  text words 5..2\n":                                  "s:2:14: text: a number of words 1 to 100000 is needed, or a range as 41..60",
		"on chat\n  text fill 1 \"xx\"\n":                               "s:2:3: text: the text to repeat is longer than the size",
		"on chat\n  text \"x\" loud\n":                                  "s:2:12: text: allowed: tight, open, bare, split, named, choice",
		"on chat\n  ;\n":                                                "s:2:3: unexpected ';'; allowed: a word, a number, a \"string\", {JSON}, [JSON], $name, # comment",
		"on chat\n  stall after 1\n  cut fin after 2\n":                 "s:3:3: cut: this rule breaks off after some bytes already",
	} {
		s, errs := Parse("s", text)
		require.Nil(t, s)
		var got []string
		for _, err := range errs {
			require.IsType(t, &SyntaxError{}, err)
			got = append(got, err.Error())
		}
		require.True(t, strings.HasPrefix(strings.Join(got, "; "), want), "%q:\n got %s\nwant %s", text, strings.Join(got, "; "), want)
	}
}

// TestParseReportsAllFaults shows that one fault hides no other.
func TestParseReportsAllFaults(t *testing.T) {
	_, errs := Parse("s", "sead 1\n\non chat\n  status x\n  text \"${y}\"\n  html \"\n  delay 1s 2s\non\n")
	var lines []int
	for _, err := range errs {
		lines = append(lines, err.(*SyntaxError).Line)
	}
	require.Equal(t, []int{1, 4, 5, 6, 7, 8}, lines)
}

func TestMustParse(t *testing.T) {
	require.PanicsWithError(t, "s:1:1: unknown word x; allowed at the first column: created, dialect, dimensions, healthy, id, idle, key, let, model, models, on, seed", func() { MustParse("s", "x") })
	require.Equal(t, "s", MustParse("s", "").Name())
}

// TestFormat shows the canonical form.
func TestFormat(t *testing.T) {
	s, errs := Parse("s", "\n\n# head  \nseed   1 # one\n\n\n\n on\n")
	require.Nil(t, s)
	require.NotEmpty(t, errs)
	s, errs = Parse("s", "\r\n# head \t\r\nseed   1 # one\r\n\r\n\r\n\r\non  chat\t stream\r\n\tjson  {\"a\":[1,2],\n\t\"b\":\"x:y,\\\"z\" }#end\r\n# last\r\n\r\n")
	require.Empty(t, errs)
	require.Equal(t, `# head
seed 1  # one

on chat stream
  json {"a": [1, 2], "b": "x:y,\"z"}  #end
# last
`, s.String())
	s, errs = Parse("s", "on chat\n    repeat 2 { # twice\n  text \"\\x41\\u00e9\\U0001f30d\\0\\xff\\n\"\n# in\n } # out\n")
	require.Empty(t, errs)
	require.Equal(t, "on chat\n  repeat 2 {  # twice\n    text \"Aé🌍\\x00\\xff\\n\"\n    # in\n  }  # out\n", s.String())
}

// same compares two scripts but for where their statements stand.
func same(t require.TestingT, a, b *Script) {
	require.Equal(t, a.String(), b.String())
	require.Equal(t, placeless(a.tree.top), placeless(b.tree.top))
	require.Equal(t, a.tree.tail, b.tree.tail)
	require.Equal(t, a.settings, b.settings)
	require.Equal(t, len(a.rules), len(b.rules))
	for i := range a.rules {
		x, y := a.rules[i], b.rules[i]
		x.line, y.line = 0, 0
		require.Equal(t, x, y)
	}
}

func placeless(list []*statement) []*statement {
	var out []*statement
	for _, s := range list {
		c := *s
		c.line, c.col = 0, 0
		c.args = nil
		for _, a := range s.args {
			a.line, a.col = 0, 0
			c.args = append(c.args, a)
		}
		c.block = placeless(s.block)
		out = append(out, &c)
	}
	return out
}

// TestFormatThenParse: parsing a formatted script gives the same script.
func TestFormatThenParse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := drawScript(t)
		s, errs := Parse("s", text)
		require.Empty(t, errs, "%s", text)
		again, errs := Parse("s", s.String())
		require.Empty(t, errs, "%s", s)
		same(t, s, again)
	})
}

// drawScript draws a valid script in careless layout.
func drawScript(t *rapid.T) string {
	var b strings.Builder
	names := []string{}
	for range rapid.IntRange(0, 3).Draw(t, "lets") {
		name := rapid.StringMatching(`v[a-z0-9_-]{0,4}`).Filter(func(s string) bool { return !slices.Contains(names, s) }).Draw(t, "name")
		names = append(names, name)
		drawLine(t, &b, "", "let "+name+" = "+drawContent(t, nil))
	}
	for _, line := range rapid.SliceOfN(rapid.SampledFrom([]string{
		"seed 7", `id "a-${call}"`, "created 12", `models a "b c"`, "key k", "dimensions 3", "idle 5s", `healthy "hi" usage 1 2 whole`, `model ""`,
	}), 0, 4).Draw(t, "settings") {
		drawLine(t, &b, "", line)
	}
	for range rapid.IntRange(0, 4).Draw(t, "rules") {
		head := rapid.SampledFrom([]string{"chat stream", "chat responses stream", `chat stream model "x*" asks tools`, `chat stream header A "b" body contains "\"c"`}).Draw(t, "head")
		drawLine(t, &b, "", "on "+head)
		for _, line := range rapid.SliceOfN(rapid.SampledFrom([]string{
			"once", "times 3", "for 60s", "until 3s", "after call 4", "every 2", "chance 7%", "status 503 code x message \"y ${model}\"", "header A b",
			"close", "encoding gzip", "chunk 1", "trickle 3 every 1ms", "crlf", "no-done", "model m", "created 3",
		}), 0, 4).Draw(t, "words") {
			drawLine(t, &b, "  ", line)
		}
		drawSteps(t, &b, names, "  ", 0)
	}
	return b.String()
}

func drawSteps(t *rapid.T, b *strings.Builder, names []string, indent string, depth int) {
	for range rapid.IntRange(0, 4).Draw(t, "steps") {
		if depth < 2 && rapid.IntRange(0, 4).Draw(t, "block") == 0 {
			drawLine(t, b, indent, "repeat 3 {")
			drawSteps(t, b, names, indent+" ", depth+1)
			drawLine(t, b, indent, "}")
			continue
		}
		step := rapid.SampledFrom([]string{
			"role", "text C", "tokens C tight", "reasoning C named n", "refusal C open", `tool f {"a": [1, {"b": "${call}"}]} id "x" pieces 2`, `tool f "{" choice 1`,
			"finish stop bare", "usage 1 2 cached 1 reasoning 0", "done", `error {"message": "m"}`, `error "m"`, "event C split", `comment "c"`, "raw C", "answer C usage 1 2",
			"delay 5ms", "pace 1s", "head", "stall", "cut fin", "cut reset", "wire C", "garbage 7",
		}).Draw(t, "step")
		drawLine(t, b, indent, strings.Replace(step, "C", drawContent(t, names), 1))
	}
}

func drawContent(t *rapid.T, names []string) string {
	switch rapid.IntRange(0, 5).Draw(t, "content") {
	case 0:
		return "words 3..7"
	case 1:
		return `fill 2KiB "xé"`
	case 2:
		return "{\"a\":\n1.50, \"b\":\t[null,\"#\"]}"
	case 3:
		if len(names) > 0 {
			return "$" + rapid.SampledFrom(names).Draw(t, "ref")
		}
	}
	text := rapid.OneOf(rapid.String(), rapid.StringOfN(rapid.RuneFrom([]rune(`ab#"\{}$ `)), 0, 8, -1)).Draw(t, "text")
	return quoteText(strings.ReplaceAll(text, "${", "$${"))
}

func drawLine(t *rapid.T, b *strings.Builder, indent, line string) {
	for _, before := range rapid.SliceOfN(rapid.SampledFrom([]string{"", "# remark", "   # indented", "\t"}), 0, 3).Draw(t, "before") {
		b.WriteString(before + "\n")
	}
	after := rapid.SampledFrom([]string{"", "", " ", "\t# trail ", "\r"}).Draw(t, "after")
	b.WriteString(indent + line + after + "\n")
}

// FuzzParse: no text breaks the parser, faults are where the text is, and what
// parses survives formatting.
func FuzzParse(f *testing.F) {
	f.Add("seed 1\non chat stream\n  times 2\n  repeat 2 {\n    text \"a\\x00\" tight # c\n  }\n  cut fin after 3\n")
	f.Add("let a = {\"b\":\n[1]}\non any\n  json $a\n")
	f.Add("on connection\n  once\n  garbage 7\n\n\n# tail")
	files, _ := filepath.Glob("testdata/*/*.txtar")
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(f, err)
		for _, inner := range txtar.Parse(text).Files {
			if strings.HasSuffix(inner.Name, ".fault") {
				f.Add(string(inner.Data))
			}
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, errs := Parse("s", text)
		lines := strings.Count(text, "\n") + 1
		for _, err := range errs {
			at := err.(*SyntaxError)
			require.True(t, at.Line >= 1 && at.Line <= lines && at.Column >= 1, "%v", at)
		}
		if len(errs) > 0 {
			require.Nil(t, s)
			return
		}
		again, errs := Parse("s", s.String())
		require.Empty(t, errs, "%s", s)
		same(t, s, again)
	})
}
