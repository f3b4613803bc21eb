package conformance_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/sdk/conformance"
	"github.com/interlock-gateway/interlock/sdk/guests/go/echo"
)

func fixtures(t *testing.T) []conformance.Fixture {
	list, err := conformance.ReadFixtures(os.DirFS("../guests"), "testdata")
	require.NoError(t, err)
	require.NotEmpty(t, list)
	return list
}

func TestTheReferenceGuestConforms(t *testing.T) {
	conformance.Run(t, conformance.Native(echo.Manifest, echo.New), fixtures(t))
}
