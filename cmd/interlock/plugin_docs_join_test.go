package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	interlock "github.com/interlock-gateway/interlock/sdk/go"
	"github.com/interlock-gateway/interlock/sdk/go/json"
)

// joined is the guide's.
func joined(dst []byte, parts []json.Value) ([]byte, error) {
	if len(parts) == 1 {
		return append(dst, parts[0]...), nil // all of a string: it may be a handle
	}
	dst = append(dst, '"')
	for i, p := range parts {
		if p.IsHandle() {
			return nil, interlock.Unsupported("messages", "a text of 32 KiB or more must be alone in its message for this model")
		}
		if i > 0 {
			dst = append(dst, `\n\n`...)
		}
		dst = json.AppendContents(dst, p)
	}
	return append(dst, '"'), nil
}

// The guide's function for joining texts is this one, and does what the guide says.
func TestJoiningTextsAsInThePluginGuide(t *testing.T) {
	source := readPage(t, "cmd/interlock/plugin_docs_join_test.go")
	_, function, _ := strings.Cut(source, "func joined(")
	function, _, _ = strings.Cut(function, "\n}\n")
	require.Contains(t, readPage(t, pluginGuide), "func joined("+function+"\n}\n")

	handle := json.Value(`"interlock:blob:x:0"`)
	got, err := joined(nil, []json.Value{handle})
	require.NoError(t, err)
	require.Equal(t, string(handle), string(got))
	got, err = joined(nil, []json.Value{json.Value(`"a\n"`), json.Value(`"b"`)})
	require.NoError(t, err)
	require.Equal(t, `"a\n\n\nb"`, string(got))
	_, err = joined(nil, []json.Value{json.Value(`"a"`), handle})
	var refused *interlock.Error
	require.ErrorAs(t, err, &refused)
	require.Equal(t, interlock.CodeUnsupportedParameter, refused.Code)
}
