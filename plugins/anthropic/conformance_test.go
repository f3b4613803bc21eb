package anthropic_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/plugins/anthropic"
	"github.com/interlock-gateway/interlock/sdk/conformance"
)

func TestConformance(t *testing.T) {
	fixtures, err := conformance.ReadFixtures(os.DirFS("."), "testdata")
	require.NoError(t, err)
	require.NotEmpty(t, fixtures)
	conformance.Run(t, conformance.Native(anthropic.Manifest, anthropic.New), fixtures)
}
