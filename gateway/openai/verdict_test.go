package openai

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// done is a finished answer made by hand.
type done struct {
	finish []string
	text   []string
	calls  []ToolCall
}

func (d done) Finish(n int) string {
	if n < len(d.finish) {
		return d.finish[n]
	}
	return ""
}

func (d done) Text(n int) []byte {
	if n < len(d.text) {
		return []byte(d.text[n])
	}
	return nil
}

func (d done) ToolCalls() []ToolCall { return d.calls }

func said(text string) done { return done{finish: []string{finishStop}, text: []string{text}} }

func called(name, arguments string) done {
	return done{finish: []string{finishToolCalls}, calls: []ToolCall{{Name: name, Arguments: []byte(arguments)}}}
}

const person = `{"type":"object","properties":{"name":{"type":"string","minLength":2},"age":{"type":"integer","minimum":0}},"required":["name","age"],"additionalProperties":false}`

func withFormat(format string) []byte {
	return []byte(`{"model":"m",` + hello + `,"n":2,"response_format":` + format + `}`)
}

func withSchema(schema string) []byte {
	return withFormat(`{"type":"json_schema","json_schema":{"name":"n","strict":true,"schema":` + schema + `}}`)
}

func TestCheckContent(t *testing.T) {
	v := NewValidator(8)
	promised, object, free := withSchema(person), withFormat(`{"type":"json_object"}`), withFormat(`{"type":"text"}`)
	for name, c := range map[string]struct {
		body   []byte
		answer done
		want   Violation
	}{
		"holds":                 {promised, said(`{"name":"Ada","age":36}`), Violation{}},
		"holds, with blanks":    {promised, said(` {"name":"Ada","age":36.0} `), Violation{}},
		"a wrong type":          {promised, said(`{"name":"Ada","age":"old"}`), Violation{Kind: ContentSchema, Strict: true, Detail: "type at depth 1"}},
		"a name of its own":     {promised, said(`{"name":"Ada","age":1,"secret":2}`), Violation{Kind: ContentSchema, Strict: true, Detail: "additionalProperties at depth 0"}},
		"missing":               {promised, said(`{"name":"Ada"}`), Violation{Kind: ContentSchema, Strict: true, Detail: "required at depth 0"}},
		"not JSON":              {promised, said(`Here you are: {}`), Violation{Kind: ContentNotJSON, Strict: true, Detail: "the content is not JSON"}},
		"fenced":                {promised, said("```json\n{}\n```"), Violation{Kind: ContentNotJSON, Strict: true, Detail: "the content is not JSON"}},
		"cut short":             {promised, said(`{"name":"Ada","age":3`), Violation{Kind: ContentNotJSON, Strict: true, Detail: "the content is not JSON"}},
		"cut for its length":    {promised, done{finish: []string{finishLength}, text: []string{`{"name":`}}, Violation{}},
		"filtered":              {promised, done{finish: []string{finishContentFilter}, text: []string{`I`}}, Violation{}},
		"refused":               {promised, done{finish: []string{finishStop}}, Violation{}},
		"the second choice":     {promised, done{finish: []string{"stop", "stop"}, text: []string{`{"name":"Ada","age":36}`, `{}`}}, Violation{Kind: ContentSchema, Strict: true, Detail: "required at depth 0"}},
		"an object":             {object, said(`{}`), Violation{}},
		"a list for an object":  {object, said(`[]`), Violation{Kind: ContentNotJSON, Detail: "the content is not JSON"}},
		"nothing was promised":  {free, said(`hello`), Violation{}},
		"a schema that is none": {withSchema(`{"type":7}`), said(`{}`), Violation{Unchecked: true}},
		"a schema from abroad":  {withSchema(`{"$ref":"https://example.com/schema.json"}`), said(`{}`), Violation{Unchecked: true}},
		"a schema from a file":  {withSchema(`{"$ref":"file:///etc/passwd"}`), said(`{}`), Violation{Unchecked: true}},
		"a schema false":        {withSchema(`false`), said(`{}`), Violation{Kind: ContentSchema, Strict: true, Detail: "schema at depth 0"}},
		"an older draft":        {withSchema(`{"$schema":"http://json-schema.org/draft-07/schema#","definitions":{"a":{"type":"string"}},"items":[{"$ref":"#/definitions/a"}]}`), said(`[1]`), Violation{Kind: ContentSchema, Strict: true, Detail: "type at depth 1"}},
		"recursion":             {withSchema(`{"type":"object","properties":{"next":{"$ref":"#"}},"additionalProperties":false}`), said(`{"next":{"next":{"next":{"x":1}}}}`), Violation{Kind: ContentSchema, Strict: true, Detail: "additionalProperties at depth 3"}},
		"an enumeration":        {withSchema(`{"items":{"enum":["a","b"]}}`), said(`["a","c"]`), Violation{Kind: ContentSchema, Strict: true, Detail: "enum at depth 1"}},
		"of it":                 {withSchema(`{"items":{"enum":["a","b"]}}`), said(`["a","b"]`), Violation{}},
		"no text for text":      {withSchema(`{"enum":["a","b"]}`), said(`1`), Violation{Kind: ContentSchema, Strict: true, Detail: "enum at depth 0"}},
		"a mixed enumeration":   {withSchema(`{"enum":["a",1,null]}`), said(`2`), Violation{Kind: ContentSchema, Strict: true, Detail: "enum at depth 0"}},
		"a pattern":             {withSchema(`{"pattern":"^a+$"}`), said(`"ab"`), Violation{Kind: ContentSchema, Strict: true, Detail: "pattern at depth 0"}},
		"a format":              {withSchema(`{"format":"email"}`), said(`"ab"`), Violation{}},
		"big integers":          {withSchema(`{"const":9007199254740993}`), said(`9007199254740992`), Violation{Kind: ContentSchema, Strict: true, Detail: "const at depth 0"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := mustScan(t, ChatCompletions, string(c.body))
			require.Equal(t, c.want, v.Check(r, c.body, c.answer))
		})
	}
	body := withFormat(`{"type":"json_schema"}`)
	require.Zero(t, v.Check(mustScan(t, ChatCompletions, string(body)), body, said(`[]`)))
}

func TestCheckArguments(t *testing.T) {
	body := []byte(`{"model":"m",` + hello + `,"tools":[{"type":"function","function":{"name":"f","strict":true,"parameters":` + person + `}},{"type":"function","function":{"name":"free"}}]}`)
	r := mustScan(t, ChatCompletions, string(body))
	v := NewValidator(8)
	for name, c := range map[string]struct {
		answer done
		want   Violation
	}{
		"holds":              {called("f", `{"name":"Ada","age":36}`), Violation{}},
		"not JSON":           {called("f", `{"name":"Ada"`), Violation{Kind: ArgumentsNotJSON, Tool: "f", Strict: true, Detail: "the arguments are not JSON"}},
		"breaks the schema":  {called("f", `{"name":"A","age":36}`), Violation{Kind: ArgumentsSchema, Tool: "f", Strict: true, Detail: "minLength at depth 1"}},
		"none":               {called("f", ``), Violation{Kind: ArgumentsSchema, Tool: "f", Strict: true, Detail: "required at depth 0"}},
		"no schema":          {called("free", `{"x":1}`), Violation{}},
		"no schema, no JSON": {called("free", `x`), Violation{Kind: ArgumentsNotJSON, Tool: "free", Detail: "the arguments are not JSON"}},
		"none, no schema":    {called("free", ` `), Violation{}},
		"a tool of its own":  {called("other", `{}`), Violation{}},
		"cut for its length": {done{finish: []string{finishLength}, calls: called("f", `{`).calls}, Violation{}},
		"a custom tool":      {done{finish: []string{finishStop}, calls: []ToolCall{{Name: "c", Custom: true, Arguments: []byte("text")}}}, Violation{}},
		"clipped":            {done{finish: []string{finishStop}, calls: []ToolCall{{Name: "f", Clipped: true, Arguments: []byte("{")}}}, Violation{Unchecked: true}},
	} {
		t.Run(name, func(t *testing.T) { require.Equal(t, c.want, v.Check(r, body, c.answer)) })
	}
}

// hostile makes schemas and answers that would cost a naive validator its life.
func hostile() map[string][2]string {
	var doubling strings.Builder
	doubling.WriteString(`{"$ref":"#/$defs/a0","$defs":{`)
	for i := range 60 {
		fmt.Fprintf(&doubling, `"a%d":{"anyOf":[{"$ref":"#/$defs/a%d"},{"$ref":"#/$defs/a%d"}]},`, i, i+1, i+1)
	}
	doubling.WriteString(`"a60":{"type":"string"}}}`)
	var chain strings.Builder
	chain.WriteString(`{"$ref":"#/$defs/a0","$defs":{`)
	for i := range 900 {
		fmt.Fprintf(&chain, `"a%d":{"$ref":"#/$defs/a%d"},`, i, i+1)
	}
	chain.WriteString(`"a900":{"items":{"$ref":"#"}}}}`)
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	return map[string][2]string{
		"doubling":             {doubling.String(), `1`},
		"doubling, negated":    {`{"not":` + doubling.String() + `}`, `1`},
		"doubling by level":    {`{"anyOf":[{"items":{"$ref":"#"}},{"items":{"$ref":"#"}}],"not":{"const":1}}`, strings.Replace(deep(40), "[]", "[1]", 1)},
		"by patterns":          {`{"not":{"$ref":"#/$defs/x"},"$defs":{"x":{"type":"object","patternProperties":{"a":{"$ref":"#/$defs/x"},"a*":{"$ref":"#/$defs/x"},"a+":{"$ref":"#/$defs/x"}}}}}`, strings.Repeat(`{"a":`, 60) + `1` + strings.Repeat(`}`, 60)},
		"a long chain":         {chain.String(), deep(400)},
		"a long chain, short":  {chain.String(), deep(20)},
		"too many":             {`{"enum":[` + strings.Repeat(`{},`, maxSubschema) + `1]}`, `1`},
		"too large":            {`{"description":"` + strings.Repeat("x", maxSchema) + `"}`, `1`},
		"a huge pattern":       {`{"pattern":"(?:(?:(?:(?:x{30}){30}){1}y){1000}z)"}`, `"x"`},
		"a long pattern":       {`{"pattern":"` + strings.Repeat("(a|b)*", 1000) + `"}`, `"x"`},
		"patterns that repeat": {`{"pattern":"((((((x{9}){9}){9}){9}){9}){9})"}`, `"x"`},
		"a huge number":        {`{"multipleOf":1e999999999}`, `1`},
		"a huge answer":        {`{"minimum":1}`, `1e999999999`},
		"a tiny answer":        {`{"multipleOf":3}`, `1e-999999999`},
		"many digits":          {`{"minimum":1}`, strings.Repeat("9", 10_000)},
		"itself":               {`{"$ref":"#"}`, `1`},
		"everything, of all":   {`{"items":{"anyOf":[` + strings.Repeat(`{"items":{"type":"string"}},`, 500) + `{}]}}`, `[` + strings.Repeat(`[1,2,3,4,5,6,7,8,9],`, 2000) + `1]`},
		"a wide enumeration":   {`{"items":{"enum":[` + strings.Repeat(`"abcdefgh",`, 20_000) + `1]}}`, `[` + strings.Repeat(`"x",`, 100_000) + `1]`},
		"no two alike":         {`{"uniqueItems":true}`, `[` + strings.Repeat(`["a","b"],["a\u0004b"],`, 50_000) + `1]`},
		"a slow pattern":       {`{"pattern":"(x{30}){30}y"}`, `"` + strings.Repeat("x", 4<<20) + `"`},
	}
}

func TestHostileSchemasAreGivenUp(t *testing.T) {
	for name, c := range hostile() {
		t.Run(name, func(t *testing.T) {
			v := NewValidator(2)
			began := time.Now()
			detail, got := v.validate([]byte(c[0]), []byte(c[1]))
			require.Less(t, time.Since(began), 60*time.Second)
			if name == "itself" {
				require.Equal(t, violated, got)
				return
			}
			require.NotEqual(t, violated, got, detail)
		})
	}
}

func TestLargeHonestAnswersAreChecked(t *testing.T) {
	schema := `{"type":"array","items":` + person + `}`
	answer := `[` + strings.Repeat(`{"name":"Ada","age":36},`, 2000) + `{"name":"Ada","age":36}]`
	v := NewValidator(2)
	_, got := v.validate([]byte(schema), []byte(answer))
	require.Equal(t, satisfied, got)
	_, got = v.validate([]byte(schema), []byte(strings.Replace(answer, "}]", `,"x":1}]`, 1)))
	require.Equal(t, violated, got)
}

func TestValidatorKeepsFewSchemas(t *testing.T) {
	v := NewValidator(3)
	for round := range 3 {
		for i := range 10 {
			_, got := v.validate(fmt.Appendf(nil, `{"maximum":%d}`, i), []byte(`5`))
			require.Equal(t, i < 5, got == violated, "%d in round %d", i, round)
			require.LessOrEqual(t, len(v.schemas), 3)
		}
	}
	require.Len(t, v.order, 3)
}

func TestValidatorHammer(t *testing.T) {
	v := NewValidator(2)
	var wait sync.WaitGroup
	for g := range 8 {
		wait.Go(func() {
			for i := range 200 {
				limit := (g + i) % 4
				_, got := v.validate(fmt.Appendf(nil, `{"items":{"maximum":%d}}`, limit), []byte(`[1,2]`))
				if (got == violated) != (limit < 2) {
					panic(fmt.Sprint("limit ", limit, " gives ", got))
				}
			}
		})
	}
	wait.Wait()
}

func FuzzValidate(f *testing.F) {
	f.Add([]byte(person), []byte(`{"name":"Ada","age":1e3}`))
	f.Add([]byte(`{"$defs":{"a":{"pattern":"^x{2,3}$"}},"anyOf":[{"$ref":"#/$defs/a"},{"not":{"$dynamicRef":"#x"}}],"$dynamicAnchor":"x"}`), []byte(`"xx"`))
	f.Fuzz(func(t *testing.T, schema, document []byte) {
		body := withSchema(string(schema))
		var r Request
		if ScanRequest(ChatCompletions, body, &r) != nil {
			return
		}
		NewValidator(1).Check(&r, body, said(string(document)))
	})
}

func BenchmarkValidate(b *testing.B) {
	v := NewValidator(2)
	b.ReportAllocs()
	for b.Loop() {
		v.validate([]byte(person), []byte(`{"name":"Ada","age":36}`))
	}
}
