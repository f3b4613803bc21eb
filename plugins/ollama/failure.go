package ollama

import (
	interlock "github.com/interlock-gateway/interlock/sdk/go"
	"github.com/interlock-gateway/interlock/sdk/go/json"
)

func classify(c *interlock.Call, in *interlock.Answer) interlock.Failure {
	var f interlock.Failure
	if root, err := json.Parse(in.Body); err == nil {
		f = read(root.Get("error"))
	}
	if f.Class = classOf(f.Message); f.Class == interlock.ModelUnavailable && in.Status != 404 ||
		f.Class == interlock.Overloaded && in.Status != 429 && in.Status < 500 {
		f.Class = ""
	}
	f.RetryAfter, f.HasRetryAfter = in.RetryAfter(c.Now)
	return f
}

// inside is an error in an answer that began well. There is no status that would say more.
func inside(v json.Value) interlock.Failure {
	f := read(v)
	if f.Class = classOf(f.Message); f.Class == "" {
		f.Class = interlock.ServerError
	}
	return f
}

// read reads an error: a text, or an object with one.
func read(v json.Value) (f interlock.Failure) {
	if v.IsString() {
		f.Message = v.String()
		return f
	}
	f.Message = v.Get("message").String()
	f.Type = v.Get("type").String()
	f.Code = v.Get("code").String()
	return f
}

// classOf tells apart what Ollama says in words only. What is not here is left to the status.
func classOf(message string) string {
	switch {
	case interlock.Says(message, "prompt too long", "exceeded max context length", "exceeds the context length", "exceeds maximum context length",
		"exceeds the available context size", "input length exceeds"):
		return interlock.ContextOverflow
	case interlock.Says(message, "server busy", "maximum pending requests exceeded"):
		return interlock.Overloaded
	case interlock.Says(message, "try pulling it first", "' not found", "\" not found"):
		return interlock.ModelUnavailable
	}
	return ""
}
