package openai

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// statuses repeats the table of the HTTP surface, so that neither changes alone.
var statuses = []struct {
	code   Code
	status int
	kind   string
	again  bool
}{
	{InvalidAPIKey, 401, "authentication_error", false},
	{PermissionDenied, 403, "permission_error", false},
	{ModelNotFound, 404, "invalid_request_error", false},
	{NotFound, 404, "invalid_request_error", false},
	{InvalidRequest, 400, "invalid_request_error", false},
	{UnsupportedParameter, 400, "invalid_request_error", false},
	{RequestTooLarge, 413, "invalid_request_error", false},
	{RateLimitExceeded, 429, "rate_limit_error", true},
	{InsufficientQuota, 429, "rate_limit_error", false},
	{GroupsFull, 429, "rate_limit_error", true},
	{AttemptsExhausted, 429, "rate_limit_error", false},
	{QueueFull, 429, "rate_limit_error", true},
	{GatewayBusy, 503, "server_error", true},
	{PolicyDenied, 403, "permission_error", false},
	{GuardRefused, 403, "permission_error", false},
	{PolicyUnavailable, 503, "server_error", false},
	{StorageUnavailable, 503, "server_error", false},
	{UpstreamRejected, 502, "upstream_error", false},
	{RoutesExhausted, 502, "upstream_error", false},
	{DeadlineExceeded, 504, "upstream_error", false},
	{NoEligibleRoute, 503, "upstream_error", false},
	{SideEffectUnknown, 409, "conflict_error", false},
	{OutcomeUnknown, 502, "upstream_error", false},
	{IdempotencyInProgress, 409, "conflict_error", true},
	{IdempotencyMismatch, 422, "invalid_request_error", false},
	{InternalError, 500, "server_error", false},
	{GatewayShutdown, 503, "server_error", true},
	{PartialStream, 502, "server_error", false},
}

func TestCodesHaveTheirStatus(t *testing.T) {
	require.Len(t, codeTable, len(statuses))
	for _, s := range statuses {
		e := NewError(s.code, "m")
		require.Equal(t, s.status, e.Status, s.code)
		require.Equal(t, s.kind, e.Type, s.code)
		require.Equal(t, s.again, e.ShouldRetry, s.code)
	}
	e := RoutesExhaustedWith(429, "m")
	require.Equal(t, Error{Status: 429, Type: "rate_limit_error", Code: RoutesExhausted, Message: "m", ShouldRetry: true}, *e)
	require.Equal(t, *NewError(RoutesExhausted, "m"), *RoutesExhaustedWith(502, "m"))
	require.Equal(t, 500, NewError("no_such_code", "m").Status)
}

func TestErrorJSON(t *testing.T) {
	e := NewError(InvalidRequest, `bad "thing"`)
	e.Param = "messages"
	require.Equal(t, `{"error":{"message":"bad \"thing\"","type":"invalid_request_error","code":"invalid_request","param":"messages"}}`, string(e.AppendJSON(nil)))
	e = RoutesExhaustedWith(502, "the routes failed")
	e.RequestID, e.Terminal, e.Class, e.Phase, e.Attempts = "req_1", "exhausted", "rate_limited", "before_headers", 3
	require.Equal(t, `{"error":{"message":"the routes failed (request req_1)","type":"upstream_error","code":"routes_exhausted","param":null,`+
		`"interlock":{"request_id":"req_1","terminal":"exhausted","class":"rate_limited","phase":"before_headers","attempts":3}}}`, string(e.AppendJSON(nil)))
	require.Equal(t, "routes_exhausted: the routes failed", e.Error())
}

func TestErrorJSONIsAlwaysValid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.String()
		e := Error{
			Type: s.Draw(t, "type"), Code: Code(s.Draw(t, "code")), Message: s.Draw(t, "message"), Param: s.Draw(t, "param"),
			RequestID: s.Draw(t, "id"), Terminal: s.Draw(t, "terminal"), Attempts: rapid.Int().Draw(t, "attempts"),
		}
		var got struct {
			Error struct {
				Message, Type string
				Code, Param   *string
				Interlock     *struct {
					RequestID string `json:"request_id"`
				}
			}
		}
		require.NoError(t, json.Unmarshal(e.AppendJSON(nil), &got))
		require.True(t, strings.HasPrefix(got.Error.Message, e.Message))
		require.Equal(t, e.Code == "", got.Error.Code == nil)
		require.Equal(t, e.RequestID == "", got.Error.Interlock == nil)
		if e.RequestID != "" {
			require.True(t, strings.HasSuffix(got.Error.Message, "(request "+e.RequestID+")"))
		}
	})
}

func TestRetryAfterRendering(t *testing.T) {
	for d, want := range map[time.Duration][2]int64{
		0:                         {1, 1},
		time.Nanosecond:           {1, 1},
		1001 * time.Millisecond:   {2, 1001},
		7 * time.Second:           {7, 7000},
		1500*time.Microsecond + 1: {1, 2},
		-time.Second:              {1, 1},
		61*time.Second + 1:        {62, 61001},
	} {
		require.Equal(t, want[0], RetryAfterSeconds(d), d)
		require.Equal(t, want[1], RetryAfterMillis(d), d)
	}
}

func TestReadError(t *testing.T) {
	for body, want := range map[string]UpstreamError{
		`{"error":{"message":"m","type":"t","param":"p","code":"c"}}`:    {Message: "m", Type: "t", Param: "p", Code: "c"},
		`{"error":{"message":"m","type":null,"param":null,"code":null}}`: {Message: "m"},
		`{"error":{"message":"Provider returned error","code":502}}`:     {Message: "Provider returned error", Code: "502", Status: 502},
		`{"error":{"code":"401","message":"Access denied"}}`:             {Message: "Access denied", Code: "401", Status: 401},
		`{"id":"x","choices":[],"error":{"code":502,"message":"m"}}`:     {Message: "m", Code: "502", Status: 502},
		`{"code":"invalid-argument","error":"the model is wrong"}`:       {Message: "the model is wrong", Code: "invalid-argument"},
		`{"error":"text"}`:                        {Message: "text"},
		`{"error":true,"message":"m","code":429}`: {Message: "m", Code: "429", Status: 429},
		`{"detail":"Unauthorized"}`:               {Message: "Unauthorized"},
		`{"detail":[{"loc":["body"],"msg":"field required","type":"value_error"}]}`:                    {Message: "field required"},
		`{"message":"no such model","request_id":"1"}`:                                                 {Message: "no such model"},
		`{"object":"error","message":"m","type":"BadRequestError","param":null,"code":400}`:            {Message: "m", Type: "BadRequestError", Code: "400", Status: 400},
		`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`:                  {Message: "Overloaded", Type: "overloaded_error"},
		`{"type":"error","code":"server_error","message":"m","param":null,"sequence_number":3}`:        {Message: "m", Type: "error", Code: "server_error"},
		`[{"error":{"code":429,"message":"Resource exhausted","status":"RESOURCE_EXHAUSTED"}}]`:        {Message: "Resource exhausted", Type: "RESOURCE_EXHAUSTED", Code: "429", Status: 429},
		`{"error":{"message":"filtered","type":null,"code":"content_filter","status":400}}`:            {Message: "filtered", Type: "400", Code: "content_filter", Status: 400},
		`{"errors":[{"message":"a","code":7003},{"message":"b"}],"success":false}`:                     {Message: "a", Code: "7003"},
		`{"error":{"error":{"message":"inner","type":"t"},"code":"outer"}}`:                            {Message: "inner", Type: "t", Code: "outer"},
		`{"\u0065rror":{"\u006dessage":"m\u0021"}}`:                                                    {Message: "m!"},
		`{"error":{"metadata":{"raw":"x"}}}`:                                                           {},
		`{"error":{"message":"` + strings.Repeat("x", maxErrorText+10) + `"}}`:                         {Message: strings.Repeat("x", maxErrorText)},
		`{"id":"1","object":"chat.completion.chunk","choices":[],"message":"","error":{"message":""}}`: {},
	} {
		got, ok := ReadError([]byte(body))
		require.True(t, ok, body)
		require.Equal(t, want, got, body)
	}
	for _, body := range []string{
		``, `busy`, `<html>busy</html>`, `{}`, `[]`, `null`, `"x"`, `{"error":null}`, `{"error":{}}`, `{"error":""}`, `{"error":false}`, `{"error":0}`,
		`{"choices":[{"index":0}],"error":null}`, `{"object":"list","data":[],"message":"fine"}`, `{"error":{"message":"m"}`, `{"errors":[],"detail":null}`,
	} {
		_, ok := ReadError([]byte(body))
		require.False(t, ok, body)
	}
}

func FuzzReadError(f *testing.F) {
	f.Add([]byte(`{"error":{"message":"m","code":1}}`))
	f.Add([]byte(`[{"detail":[{"msg":"x"}]}]`))
	f.Fuzz(func(t *testing.T, b []byte) {
		u, ok := ReadError(b)
		if ok && !json.Valid(b) {
			t.Fatalf("an error in what is not JSON: %q", b)
		}
		if !json.Valid(FromUpstream(400, u).AppendJSON(nil)) {
			t.Fatalf("not JSON, from %q", b)
		}
	})
}

func TestFromUpstream(t *testing.T) {
	u := UpstreamError{Message: "maximum context length is 8192 tokens", Type: "invalid_request_error", Param: "messages", Code: "context_length_exceeded"}
	e := FromUpstream(400, u)
	require.Equal(t, Error{Status: 400, Type: u.Type, Code: "context_length_exceeded", Param: "messages", Message: u.Message}, *e)
	for in, want := range map[int]int{400: 400, 403: 400, 404: 404, 413: 413, 422: 400, 200: 400, 500: 400, 0: 400} {
		require.Equal(t, want, FromUpstream(in, u).Status)
	}
	require.Equal(t, "invalid_request_error", FromUpstream(400, UpstreamError{Type: "400"}).Type)
	e = FromUpstream(400, UpstreamError{})
	require.Equal(t, "invalid_request_error", e.Type)
	require.NotEmpty(t, e.Message)
	require.Empty(t, e.Code)
}

func TestRedact(t *testing.T) {
	for in, want := range map[string]string{
		"Incorrect API key provided: sk-AAAA-canary-0001. You can find it at https://platform.openai.com/account/api-keys.": "Incorrect API key provided: [redacted]. You can find it at [url].",
		"Incorrect key: sk-proj-****abcd":            "Incorrect key: [redacted]",
		"Authorization: Bearer abc.def-123 is wrong": "Authorization: [redacted] is wrong",
		"Rate limit reached for gpt-4o in organization org-AbCd1234EfGh on tokens per min (TPM): Limit 30000": "Rate limit reached for gpt-4o in organization [account] on tokens per min (TPM): Limit 30000",
		"Project proj_abcdEFGH12 has no access":                       "Project [account] has no access",
		"arn:aws:bedrock:us-east-1:123456789012:model/x is not yours": "[account] is not yours",
		"mail ops@example.com":                                        "mail [account]",
		"dial tcp 10.1.2.3:443: refused":                              "dial tcp [url]: refused",
		"line\r\none\x00\x1b[31m\u202e":                               "line  one[31m",
		"maximum context length is 8192 tokens":                       "maximum context length is 8192 tokens",
		"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.": "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
		"user_information and api_key_required, sub_categories":                                                      "user_information and api_key_required, sub_categories",
		"The model `gpt-4.1-nano-2025-04-14` does not exist":                                                         "The model `gpt-4.1-nano-2025-04-14` does not exist",
		"the secret hunter2!! is here":                                                                               "the secret [redacted] is here",
		"bad \xff byte":                                                                                              "bad \uFFFD byte",
		"":                                                                                                           "",
	} {
		require.Equal(t, want, Redact(in, "", "ab", "hunter2", "hunter2!!"), in)
	}
	long := Redact(strings.Repeat("é ", 4000))
	require.LessOrEqual(t, len(long), maxMessage)
	require.True(t, strings.HasSuffix(long, "…"))
}

func TestRedactHidesWhatItIsGiven(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		secret := rapid.StringMatching(`[A-Za-z0-9/+=_.!-]{8,60}`).Draw(t, "secret")
		before, after := rapid.String().Draw(t, "before"), rapid.String().Draw(t, "after")
		got := Redact(before+secret+after, secret)
		if !strings.Contains(before+after, secret) && !strings.Contains(redactedSecret+redactedURL+redactedAccount, secret) {
			require.NotContains(t, got, secret)
		}
		require.LessOrEqual(t, len(got), maxMessage)
		require.False(t, regexp.MustCompile(`[\x00-\x1f\x7f]`).MatchString(got))
	})
}
