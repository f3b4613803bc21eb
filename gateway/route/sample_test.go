package route

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/interlock-gateway/interlock/gateway/config"
)

// bars is a Fitter that lets nothing through of a list of channels.
type bars map[string]bool

func (b bars) Fits(r *Route) bool { return !b[r.Channel.Name] }

// Of more equal routes than a plan needs it takes enough usable ones, whatever share of them
// is not, and none twice; it stays short, keeps to the order of priorities, and is never empty
// where some route serves the model.
func TestPlanOfManyIsEnough(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const enough = 8
		n := rapid.IntRange(1, 120).Draw(t, "channels")
		barred := bars{}
		var list []config.Channel
		share := rapid.SampledFrom([]int{0, 10, 50, 90, 99, 100}).Draw(t, "barred of a hundred")
		for i := range n {
			name := fmt.Sprint("c", i)
			barred[name] = rapid.IntRange(0, 99).Draw(t, "lot") < share
			list = append(list, channel(name,
				priority(rapid.IntRange(0, 1).Draw(t, "priority")),
				weight(rapid.SampledFrom([]int{1, 5, 1_000_000}).Draw(t, "weight")),
				region(rapid.SampledFrom([]string{"eu", "us"}).Draw(t, "region"))))
		}
		table := build(setup(list), NewState(StateOptions{}))
		o := PlanOptions{
			Now: day, Enough: enough, Fits: barred, Rand: rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1),
			Regions: rapid.SampledFrom([][]string{nil, {"eu"}}).Draw(t, "regions"),
		}
		plan := table.Plan(nil, table.Groups(), "m", o)

		allowed, usable := map[int]int{}, map[int]int{}
		for _, r := range table.Groups()[0].candidates("m").routes {
			if o.allows(r) {
				allowed[r.Channel.Priority]++
				if o.usable(r) {
					usable[r.Channel.Priority]++
				}
			}
		}
		seen, got, found := map[*Route]bool{}, map[int]int{}, map[int]int{}
		for i, r := range plan {
			require.False(t, seen[r], "%s comes twice", r)
			require.True(t, o.allows(r))
			seen[r] = true
			got[r.Channel.Priority]++
			if o.usable(r) {
				found[r.Channel.Priority]++
			}
			require.True(t, i == 0 || plan[i-1].Channel.Priority <= r.Channel.Priority)
		}
		for p := range 2 {
			require.GreaterOrEqual(t, found[p], min(enough, usable[p]), "usable routes of priority %d", p)
			require.LessOrEqual(t, got[p], 5*enough)
			require.Equal(t, allowed[p] > 0, got[p] > 0)
		}
	})
}

// The first of many is drawn by weight, also where others cannot be used.
func TestManyAreDrawnByWeight(t *testing.T) {
	barred := bars{}
	var list []config.Channel
	for i := range 60 {
		name := fmt.Sprint("c", i)
		list = append(list, channel(name, weight(1+i%3)))
		barred[name] = i >= 30
	}
	table := build(setup(list), NewState(StateOptions{}))
	o := PlanOptions{Now: day, Enough: 4, Fits: barred, Rand: rand.NewPCG(1, 2)}
	first := map[int]int{}
	const n = 12_000
	var plan []*Route
	for range n {
		plan = table.Plan(plan[:0], table.Groups(), "m", o)
		for _, r := range plan {
			if o.usable(r) {
				first[r.Channel.Weight]++
				break
			}
		}
	}
	for w := 1; w <= 3; w++ {
		require.InDelta(t, n*w/6, first[w], 300, "weight %d", w)
	}
}

func BenchmarkPlanOfMany(b *testing.B) {
	for _, n := range []int{10, 100, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var list []config.Channel
			for i := range n {
				list = append(list, channel(fmt.Sprint("c", i)))
			}
			table := build(setup(list), NewState(StateOptions{}))
			var dst []*Route
			b.ReportAllocs()
			for b.Loop() {
				dst = table.Plan(dst[:0], table.groups, "m", PlanOptions{Now: day, Enough: 8})
			}
		})
	}
}
