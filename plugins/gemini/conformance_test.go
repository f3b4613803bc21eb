package gemini_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/plugins/gemini"
	"github.com/interlock-gateway/interlock/sdk/conformance"
)

func TestConformance(t *testing.T) {
	list, err := conformance.ReadFixtures(os.DirFS("."), "testdata")
	require.NoError(t, err)
	require.NotEmpty(t, list)
	conformance.Run(t, conformance.Native(gemini.Manifest, gemini.New), list)
}
