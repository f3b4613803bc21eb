package openai

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// What one provider sealed for itself does not go to another: not the member, and nothing else
// of the body is touched.
func TestProviderDataIsCutOut(t *testing.T) {
	for _, at := range []struct{ in, out string }{
		{`{"role":"assistant","content":"a"}`, `{"role":"assistant","content":"a"}`},
		{`{"role":"assistant","provider_data":[{"a":1}],"content":"a"}`, `{"role":"assistant","content":"a"}`},
		{`{"provider_data":[{"a":1}],"role":"assistant","content":"a"}`, `{"role":"assistant","content":"a"}`},
		{`{ "provider_data" : [1] , "role" : "assistant","content":"a", "provider_data":null }`, `{ "role" : "assistant","content":"a" }`},
		{`{"provider_data":[1],"provider_data":[2],"role":"assistant","content":"a"}`, `{"role":"assistant","content":"a"}`},
		{`{"role":"assistant","content":"a","provider\u005fdata":{"x":"}"}}`, `{"role":"assistant","content":"a"}`},
		{`{"role":"user","content":[{"type":"text","text":"a","provider_data":1}]}`, `{"role":"user","content":[{"type":"text","text":"a","provider_data":1}]}`},
		{`{"provider_data":[1]}`, `{}`},
	} {
		for _, frame := range [][2]string{
			{`{"model":"m","messages":[{"role":"user","content":"x"},`, `],"stream":true}`},
			{`{"messages":[{"role":"user","content":"x"},`, `],"model":"m","stream":true,"stream_options":{}}`},
		} {
			body := frame[0] + at.in + frame[1]
			var r Request
			require.Nil(t, ScanRequest(ChatCompletions, []byte(body), &r), body)
			got := string(r.AppendUpstream(nil, []byte(body), Edit{Model: "up", AskUsage: true}))
			require.True(t, json.Valid([]byte(got)), got)
			require.Contains(t, got, at.out+"]")
			require.Contains(t, got, `"model":"up"`)
			require.Contains(t, got, `"include_usage":true`)
			same := string(r.AppendUpstream(nil, []byte(body), Edit{}))
			require.Equal(t, frame[0]+at.out+frame[1], same)
		}
	}
}
