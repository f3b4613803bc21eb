package embedding_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	interlock "github.com/interlock-gateway/interlock/sdk/go"
	"github.com/interlock-gateway/interlock/sdk/go/embedding"
	"github.com/interlock-gateway/interlock/sdk/go/json"
)

func TestRead(t *testing.T) {
	r, err := embedding.Read([]byte(`{"model":"m","input":["a","b\n"],"dimensions":8,"encoding_format":"base64","user":"u","voyage":{"x":1},"none":null}`))
	require.NoError(t, err)
	require.Equal(t, &embedding.Request{
		Model: json.Value(`"m"`), Input: []json.Value{json.Value(`"a"`), json.Value(`"b\n"`)}, Dimensions: json.Value("8"),
		User: json.Value(`"u"`), Others: []embedding.Member{{Key: "voyage", Value: json.Value(`{"x":1}`)}},
	}, r)
	require.NoError(t, r.Supports("dimensions", "voyage"))
	require.Equal(t, `{"x":1}`, string(r.Other("voyage")))
	require.Nil(t, r.Other("none"))
	for param, err := range map[string]error{"dimensions": r.Supports("voyage"), "voyage": r.Supports("dimensions")} {
		var e *interlock.Error
		require.True(t, errors.As(err, &e))
		require.Equal(t, []string{"unsupported_parameter", param}, []string{e.Code, e.Param})
	}
	r, err = embedding.Read([]byte(`{"input":"a"}`))
	require.NoError(t, err)
	require.Equal(t, []json.Value{json.Value(`"a"`)}, r.Input)
	require.NoError(t, r.Supports())
}

func TestReadNamesWhatIsWrong(t *testing.T) {
	for _, c := range []struct{ body, code, param string }{
		{``, "bad_request", ""},
		{`[]`, "bad_request", ""},
		{`{}`, "bad_request", "input"},
		{`{"input":null}`, "bad_request", "input"},
		{`{"input":""}`, "bad_request", "input[0]"},
		{`{"input":["a",""]}`, "bad_request", "input[1]"},
		{`{"input":[]}`, "bad_request", "input"},
		{`{"input":{}}`, "bad_request", "input"},
		{`{"input":["a",{}]}`, "bad_request", "input[1]"},
		{`{"input":[1,2]}`, "unsupported_parameter", "input"},
		{`{"input":[[1,2]]}`, "unsupported_parameter", "input"},
		{`{"input":"a","model":1}`, "bad_request", "model"},
		{`{"input":"a","user":1}`, "bad_request", "user"},
		{`{"input":"a","dimensions":0}`, "bad_request", "dimensions"},
		{`{"input":"a","dimensions":"8"}`, "bad_request", "dimensions"},
		{`{"input":"a","encoding_format":"hex"}`, "bad_request", "encoding_format"},
	} {
		_, err := embedding.Read([]byte(c.body))
		var e *interlock.Error
		require.True(t, errors.As(err, &e), c.body)
		require.Equal(t, []string{c.code, c.param}, []string{e.Code, e.Param}, c.body)
	}
}

func TestOut(t *testing.T) {
	var o embedding.Out
	require.True(t, o.Vector(json.Value(`[0.1, -2e-3]`)))
	require.True(t, o.Vector(json.Value(`[1]`)))
	for _, v := range []string{`"a"`, `["a"]`, `{}`, ``, `null`} {
		require.False(t, o.Vector(json.Value(v)), v)
	}
	require.Equal(t, 2, o.Count())
	require.JSONEq(t, `{"object":"list","model":"m\"","data":[
		{"object":"embedding","index":0,"embedding":[0.1,-0.002]},{"object":"embedding","index":1,"embedding":[1]}],
		"usage":{"prompt_tokens":7,"total_tokens":7}}`, string(o.AppendBody(&interlock.Call{Model: `m"`}, nil, 7)))
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"model":"m","input":["a","b"],"dimensions":8}`))
	f.Add([]byte(`{"input":[[1]]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		r, err := embedding.Read(body)
		if err != nil {
			return
		}
		require.NotEmpty(t, r.Input)
		for _, s := range r.Input {
			require.True(t, s.IsString() && !s.Empty())
		}
	})
}
