package policy

// KindOf returns the request kind, as in data.interlock.kinds, of a request to that endpoint
// ("chat_completions", "responses" …). A responses request that keeps state or acts upstream
// is of another kind than a plain one.
func KindOf(endpoint string, background, conversation, hostedTools bool) string {
	switch endpoint {
	case "chat_completions":
		return "chat"
	case "responses":
		switch {
		case background:
			return "responses_background"
		case conversation:
			return "responses_conversation"
		case hostedTools:
			return "responses_hosted_tools"
		}
	}
	return endpoint
}

// replayable says when a kind of request may be done again.
type replayable uint8

const (
	never    replayable = iota
	declared            // where the caller declares that it has no side effects
	always
)

var replayables = []string{"never", "declared", "always"}

// kindsOf reads data.interlock.kinds; its shape was checked.
func kindsOf(data map[string]any) map[string]replayable {
	kinds := map[string]replayable{}
	table, _ := lookUp(data, "interlock", "kinds").(map[string]any)
	for name, v := range table {
		word, _ := v.(string)
		kinds[name], _ = parse[replayable](replayables, word)
	}
	return kinds
}

// lookUp walks into nested objects; nil where there is nothing.
func lookUp(v any, path ...string) any {
	for _, name := range path {
		object, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = object[name]
	}
	return v
}
