package cohere_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/plugins/cohere"
	"github.com/interlock-gateway/interlock/sdk/conformance"
)

func TestConformance(t *testing.T) {
	list, err := conformance.ReadFixtures(os.DirFS("."), "testdata")
	require.NoError(t, err)
	require.NotEmpty(t, list)
	conformance.Run(t, conformance.Native(cohere.Manifest, cohere.New), list)
}
