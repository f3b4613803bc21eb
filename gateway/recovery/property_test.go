package recovery

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

type rapidSource struct{ t *rapid.T }

func (s rapidSource) Intn(n int) int { return rapid.IntRange(0, n-1).Draw(s.t, "choice") }

type seeded struct{ r *rand.Rand }

func (s seeded) Intn(n int) int { return s.r.IntN(n) }

// No interlock breaks, whatever policies, failures, clocks and callers do. CI runs it
// 100,000 times (-rapid.checks).
func TestNoInterlockBreaks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(rapidSource{t}, &theInterlocks)
		if err := w.run(); err != nil {
			t.Fatal(err)
		}
	})
}

// The same world must notice each interlock's absence, or the property proves nothing.
func TestEveryInterlockIsNecessary(t *testing.T) {
	for _, without := range Interlocks() {
		t.Run(without.String(), func(t *testing.T) {
			mutant := theInterlocks
			mutant[without] = nil
			for seed := range uint64(50_000) {
				w := newWorld(seeded{rand.New(rand.NewPCG(seed, 7))}, &mutant)
				if w.run() != nil {
					return
				}
			}
			t.Fatalf("nothing broke without interlock %v in 50,000 runs", without)
		})
	}
}

// The world is not so hostile that nothing ever happens.
func TestTheWorldLetsAttemptsThrough(t *testing.T) {
	several, refused := 0, 0
	for seed := range uint64(2000) {
		w := newWorld(seeded{rand.New(rand.NewPCG(seed, 9))}, &theInterlocks)
		require.NoError(t, w.run())
		if w.starts > 1 {
			several++
		}
		refused += w.refused
	}
	require.Greater(t, several, 250, "requests with more than one attempt")
	require.Greater(t, refused, 200)
}
