package ollama_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/plugins/ollama"
	"github.com/interlock-gateway/interlock/sdk/conformance"
)

func TestConformance(t *testing.T) {
	list, err := conformance.ReadFixtures(os.DirFS("."), "testdata")
	require.NoError(t, err)
	require.NotEmpty(t, list)
	conformance.Run(t, conformance.Native(ollama.Manifest, ollama.New), list)
}
