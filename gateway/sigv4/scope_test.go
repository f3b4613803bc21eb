package sigv4

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestFor(t *testing.T) {
	s, err := For("bedrock-runtime.eu-west-1.amazonaws.com", "us-east-1", "AKID:secret")
	require.NoError(t, err)
	require.Equal(t, "AKID/eu-west-1/bedrock/aws4_request", s.String())
	s, err = For("127.0.0.1:8080", "us-east-1", "AKID:secret:token")
	require.NoError(t, err)
	require.Equal(t, "AKID/us-east-1/bedrock/aws4_request", s.String())
	_, err = For("127.0.0.1:8080", "", "AKID:secret")
	require.ErrorContains(t, err, "region: is required")
	_, err = For("127.0.0.1:8080", "us-east-1", "sk-secret")
	require.ErrorContains(t, err, "credential: ACCESS_KEY:SECRET_KEY")
	require.NotContains(t, err.Error(), "sk-secret")
}
