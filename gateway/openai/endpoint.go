package openai

// Endpoint is one operation of the OpenAI API. The zero value, NoEndpoint, is none.
type Endpoint uint8

// The endpoints.
const (
	NoEndpoint Endpoint = iota
	ChatCompletions
	Responses
	Completions
	Embeddings
	Moderations
	endpoints
)

var endpointWords = [endpoints]string{"", "chat_completions", "responses", "completions", "embeddings", "moderations"}

var endpointPaths = [endpoints]string{
	"", "/v1/chat/completions", "/v1/responses", "/v1/completions", "/v1/embeddings", "/v1/moderations",
}

// String returns the endpoint's word in the ledger, in policies and in metrics
// ("chat_completions"); NoEndpoint is the empty string.
func (e Endpoint) String() string {
	if e >= endpoints {
		return ""
	}
	return endpointWords[e]
}

// Path returns the endpoint's path below the host ("/v1/chat/completions"). A provider's base URL
// may end in /v1 or something else: drop the "/v1" of the path then.
func (e Endpoint) Path() string {
	if e >= endpoints {
		return ""
	}
	return endpointPaths[e]
}

// Streams says whether the endpoint can answer with server-sent events.
func (e Endpoint) Streams() bool {
	return e == ChatCompletions || e == Responses || e == Completions
}

// ParseEndpoint finds the endpoint with that word.
func ParseEndpoint(word string) (Endpoint, bool) {
	for e := ChatCompletions; e < endpoints; e++ {
		if endpointWords[e] == word {
			return e, true
		}
	}
	return NoEndpoint, false
}

// EndpointOf finds the endpoint that is called with a POST to path. It does not allocate.
func EndpointOf(path []byte) (Endpoint, bool) {
	for e := ChatCompletions; e < endpoints; e++ {
		if endpointPaths[e] == string(path) {
			return e, true
		}
	}
	return NoEndpoint, false
}

// Endpoints lists every endpoint.
func Endpoints() []Endpoint {
	return []Endpoint{ChatCompletions, Responses, Completions, Embeddings, Moderations}
}
