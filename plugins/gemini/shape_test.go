package gemini_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/plugins/plugintest"
)

// These are the members of a generateContent request that were seen in recordings, or stand in the
// provider's reference. A request that has another is one that the provider refuses.
type shapeRequest struct {
	Contents          []shapeContent      `json:"contents"`
	SystemInstruction *shapeContent       `json:"systemInstruction"`
	Tools             []shapeTool         `json:"tools"`
	ToolConfig        *shapeConfig        `json:"toolConfig"`
	SafetySettings    []map[string]string `json:"safetySettings"`
	GenerationConfig  *shapeGeneration    `json:"generationConfig"`
	ServiceTier       string              `json:"serviceTier"`
}

type shapeContent struct {
	Role  string      `json:"role"`
	Parts []shapePart `json:"parts"`
}

type shapePart struct {
	Text             *string        `json:"text"`
	Thought          bool           `json:"thought"`
	ThoughtSignature string         `json:"thoughtSignature"`
	InlineData       *shapeInline   `json:"inlineData"`
	FileData         *shapeFile     `json:"fileData"`
	FunctionCall     *shapeCall     `json:"functionCall"`
	FunctionResponse *shapeResponse `json:"functionResponse"`
}

type shapeInline struct {
	MimeType string `json:"mimeType"`
	Data     string `json:"data"`
}

type shapeFile struct {
	MimeType string `json:"mimeType"`
	FileURI  string `json:"fileUri"`
}

type shapeCall struct {
	ID   string         `json:"id"`
	Name string         `json:"name"`
	Args map[string]any `json:"args"`
}

type shapeResponse struct {
	ID       string         `json:"id"`
	Name     string         `json:"name"`
	Response map[string]any `json:"response"`
	Parts    []shapePart    `json:"parts"`
}

type shapeTool struct {
	FunctionDeclarations []struct {
		Name                 string         `json:"name"`
		Description          string         `json:"description"`
		Parameters           map[string]any `json:"parameters"`
		ParametersJSONSchema map[string]any `json:"parametersJsonSchema"`
	} `json:"functionDeclarations"`
	GoogleSearch *struct{} `json:"googleSearch"`
}

type shapeConfig struct {
	FunctionCallingConfig struct {
		Mode                 string   `json:"mode"`
		AllowedFunctionNames []string `json:"allowedFunctionNames"`
	} `json:"functionCallingConfig"`
	IncludeServerSideToolInvocations bool `json:"includeServerSideToolInvocations"`
}

type shapeGeneration struct {
	MaxOutputTokens    *int           `json:"maxOutputTokens"`
	Temperature        *float64       `json:"temperature"`
	TopP               *float64       `json:"topP"`
	TopK               *float64       `json:"topK"`
	PresencePenalty    *float64       `json:"presencePenalty"`
	FrequencyPenalty   *float64       `json:"frequencyPenalty"`
	Seed               *int           `json:"seed"`
	CandidateCount     *int           `json:"candidateCount"`
	StopSequences      []string       `json:"stopSequences"`
	ResponseMimeType   string         `json:"responseMimeType"`
	ResponseJSONSchema map[string]any `json:"responseJsonSchema"`
	ResponseSchema     map[string]any `json:"responseSchema"`
	ResponseModalities []string       `json:"responseModalities"`
	ThinkingConfig     *struct {
		ThinkingBudget  *int   `json:"thinkingBudget"`
		ThinkingLevel   string `json:"thinkingLevel"`
		IncludeThoughts *bool  `json:"includeThoughts"`
	} `json:"thinkingConfig"`
}

func checkShape(t *testing.T, body []byte) shapeRequest {
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	var v shapeRequest
	require.NoError(t, d.Decode(&v), "%s", body)
	return v
}

// camel writes members as protocol buffers do in JSON: the provider takes both. What is inside of
// schemas, arguments and results is not its own.
func camel(v any) any {
	switch v := v.(type) {
	case object:
		out := object{}
		for key, value := range v {
			words := strings.Split(key, "_")
			for i := 1; i < len(words); i++ {
				words[i] = strings.ToUpper(words[i][:1]) + words[i][1:]
			}
			key = strings.Join(words, "")
			switch key {
			case "parameters", "parametersJsonSchema", "responseSchema", "responseJsonSchema", "args", "response":
				out[key] = value
			default:
				out[key] = camel(value)
			}
		}
		return out
	case []any:
		for i := range v {
			v[i] = camel(v[i])
		}
	}
	return v
}

// TestShape holds what the adapter writes to the same shape as the requests that were recorded.
func TestShape(t *testing.T) {
	recorded := 0
	eachRecording(t, func(t *testing.T, at string, m meta) {
		if m.Path == "" || m.Endpoint == "batchEmbedContents" {
			t.Skip("no request of that kind was recorded")
		}
		var v any
		require.NoError(t, json.Unmarshal(plugintest.ReadFile(t, at, "request.json"), &v))
		body, err := json.Marshal(camel(v))
		require.NoError(t, err)
		checkShape(t, body)
		recorded++
		if strings.Contains(string(body), "invalid_role") {
			return // what nobody should send, and the adapter cannot
		}

		// The same conversation, asked by way of the adapter.
		g := newGuest(t, "{}")
		g.Model, g.Stream = modelOf(t, m.Path), m.Endpoint == "streamGenerateContent"
		asked := askedBy(t, body)
		s, e := g.Request(asked)
		require.Nil(t, e, "%s", asked)
		method := m.Endpoint
		if g.Stream {
			method += "?alt=sse"
		}
		require.True(t, strings.HasSuffix(s.Path, "/models/"+g.Model+":"+method), s.Path)
		got := checkShape(t, []byte(s.Body))
		want := checkShape(t, body)
		require.Equal(t, turns(want), turns(got))
		require.Equal(t, functions(want), functions(got))
	})
	require.Greater(t, recorded, 40)
}

func functions(r shapeRequest) (all []string) {
	for _, tool := range r.Tools {
		for _, f := range tool.FunctionDeclarations {
			all = append(all, f.Name)
		}
	}
	return all
}

// turns are who says what: the parts' kinds and the functions' names.
func turns(r shapeRequest) (all []string) {
	for _, c := range r.Contents {
		for _, p := range c.Parts {
			switch {
			case p.FunctionCall != nil:
				all = append(all, c.Role+" calls "+p.FunctionCall.Name)
			case p.FunctionResponse != nil:
				all = append(all, c.Role+" answers "+p.FunctionResponse.Name)
			case p.InlineData != nil:
				all = append(all, c.Role+" shows "+p.InlineData.MimeType)
			case p.Text != nil && *p.Text != "" && !p.Thought:
				all = append(all, c.Role+" says "+*p.Text)
			}
		}
	}
	return all
}

// askedBy turns a recorded request into a caller's: the other way round than the adapter, and only
// as far as turns looks.
func askedBy(t *testing.T, body []byte) string {
	r := checkShape(t, body)
	var messages []any
	say := func(m object) { messages = append(messages, m) }
	var open []string
	n := 0
	id := func() string { n++; return "call-" + string(rune('a'+n)) }
	for _, c := range r.Contents {
		for _, p := range c.Parts {
			role := map[string]string{"user": "user", "model": "assistant"}[c.Role]
			switch {
			case p.FunctionCall != nil:
				open = append(open, id())
				args, err := json.Marshal(p.FunctionCall.Args)
				require.NoError(t, err)
				if p.FunctionCall.Args == nil {
					args = nil
				}
				say(object{"role": "assistant", "tool_calls": []any{object{
					"id": open[len(open)-1], "type": "function",
					"function": object{"name": p.FunctionCall.Name, "arguments": string(args)},
				}}})
			case p.FunctionResponse != nil:
				say(object{"role": "tool", "tool_call_id": open[0], "content": "done"})
				open = open[1:]
			case p.InlineData != nil:
				say(object{"role": role, "content": []any{object{"type": "file", "file": object{
					"filename": "a", "file_data": "data:" + p.InlineData.MimeType + ";base64," + p.InlineData.Data,
				}}}})
			case p.Text != nil && *p.Text != "":
				say(object{"role": role, "content": *p.Text})
			}
		}
	}
	asked := object{"messages": messages}
	var tools []any
	for _, tool := range r.Tools {
		for _, f := range tool.FunctionDeclarations {
			schema := f.Parameters
			if schema == nil {
				schema = f.ParametersJSONSchema
			}
			tools = append(tools, object{"type": "function", "function": object{"name": f.Name, "description": f.Description, "parameters": schema}})
		}
	}
	if tools != nil {
		asked["tools"] = tools
	}
	text, err := json.Marshal(asked)
	require.NoError(t, err)
	return string(text)
}
