package fault

import (
	"fmt"
	"net/http"
	"strings"
)

// azureDialect is Azure OpenAI's chat completions: OpenAI's format with the results of content
// filters, other paths and other errors.
var azureDialect = &dialect{
	chat: func(path string) (string, bool, bool) {
		return "", false, strings.HasSuffix(path, "/chat/completions") &&
			(strings.Contains(path, "/openai/") || strings.Contains(path, "/models/"))
	},
	// The model, or the deployment, and the wish for a stream are in the body, under OpenAI's names.
	tools: "tools",
	voice: func(who identity) voice { return &azureVoice{chatVoice: chatVoice{identity: who}} },
	trouble: func(status int, t trouble, message string) (string, []string) {
		return azureError(status, t, message), nil
	},
	words: map[trouble]string{
		troubleNoModel: "The API deployment for this resource does not exist", troubleTooLong: "This model's maximum context length is exceeded",
		troubleFiltered: "The response was filtered due to the prompt triggering Azure OpenAI's content management policy",
	},
	contentType: "text/event-stream; charset=utf-8",
}

func azureError(status int, t trouble, message string) string {
	code, kind, rest := "", "null", ""
	switch t {
	case troubleAuth:
		code = "401"
		if status == http.StatusPaymentRequired {
			code = "insufficient_quota"
		}
	case troubleNoModel:
		code, kind = "DeploymentNotFound", `"invalid_request_error"`
	case troubleTooLong:
		code, kind = "context_length_exceeded", `"invalid_request_error"`
	case troubleFiltered:
		code, rest = "content_filter", `,"param":"prompt","status":400,"innererror":{"code":"ResponsibleAIPolicyViolation","content_filter_result":{"hate":{"filtered":true,"severity":"high"}}}`
	case troubleRateLimited:
		code = "429"
	case troubleOverloaded:
		code = "NoCapacity"
	case troubleServer:
		code = "InternalServerError"
	case troubleTimeout:
		code = "Timeout"
	default:
		kind = `"invalid_request_error"`
	}
	return `{"error":{"code":` + quotedOrNull(code) + `,"message":` + quoted(message) + `,"type":` + kind + rest + `}}`
}

// azureVoice speaks chat completions with what the content filter says: of the prompt before
// everything else, in a chunk without ID and choices, and of the answer in each choice.
type azureVoice struct {
	chatVoice
	begun bool
}

const azurePrompt = `"prompt_filter_results":[{"prompt_index":0,"content_filter_results":{"hate":{"filtered":false,"severity":"safe"}}}]`

func (v *azureVoice) say(e event) (out []sse) {
	if !v.begun {
		v.begun = true
		out = []sse{{data: `{"choices":[],"created":0,"id":"","model":"","object":"",` + azurePrompt + `}`}}
	}
	if e.kind == eventError {
		t, message := spoil(e.text)
		v.failure = azureError(0, t, azureDialect.says(t, message, v.model, http.StatusInternalServerError))
		return append(out, sse{data: v.failure})
	}
	for _, s := range v.chatVoice.say(e) {
		s.data = strings.Replace(s.data, `"choices":[{`, `"choices":[{"content_filter_results":{},`, 1)
		out = append(out, s)
	}
	return out
}

func (v *azureVoice) body() string {
	if v.failure != "" {
		return v.failure
	}
	return fmt.Sprintf(`%s,%s}`, strings.TrimSuffix(v.chatVoice.body(), "}"), azurePrompt)
}
