//go:build !race

package telemetry

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLinesByHandAllocateNothing(t *testing.T) {
	l, err := NewLog(LogOptions{Output: discard{}})
	require.NoError(t, err)
	defer l.Close()
	a := AttemptLine{RequestID: "req_1", Channel: "primary"}
	got := testing.AllocsPerRun(1000, func() { l.AttemptClosed(&a) })
	require.LessOrEqual(t, got, 0.1)
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }
