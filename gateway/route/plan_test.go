package route

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/interlock-gateway/interlock/gateway/config"
	"github.com/interlock-gateway/interlock/gateway/route/breaker"
)

// A plan holds every route that serves the model in an allowed region exactly once, group after
// group, and within a group by priority unless all are drawn by weight.
func TestPlanOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var groups [][]config.Channel
		for range rapid.IntRange(1, 3).Draw(t, "groups") {
			var list []config.Channel
			for i := range rapid.IntRange(0, 6).Draw(t, "channels") {
				list = append(list, channel(fmt.Sprint("c", i),
					priority(rapid.IntRange(0, 3).Draw(t, "priority")),
					weight(rapid.IntRange(1, 9).Draw(t, "weight")),
					region(rapid.SampledFrom([]string{"", "eu", "us"}).Draw(t, "region")),
					serving(rapid.SampledFrom([]config.Served{serves("m"), serves("n"), serves("m", "n"), everything()}).Draw(t, "models"))))
			}
			groups = append(groups, list)
		}
		c := setup(groups...)
		for i := range c.Groups {
			c.Groups[i].Strategy = rapid.SampledFrom([]config.Strategy{config.Priority, config.Weighted, config.LeastLatency}).Draw(t, "strategy")
		}
		table := build(c, NewState(StateOptions{}))
		var asked []*Group
		for _, i := range rapid.SliceOfN(rapid.IntRange(0, len(groups)-1), 0, 4).Draw(t, "asked") {
			asked = append(asked, table.Groups()[i])
		}
		o := PlanOptions{
			Now: day, Rand: rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1),
			Regions: rapid.SampledFrom([][]string{nil, {"eu"}, {"eu", "us"}, {}}).Draw(t, "regions"),
		}
		before := []*Route{{}}
		plan := table.Plan(before, asked, "m", o)
		require.Equal(t, before[0], plan[0], "what was there stays")
		plan = plan[1:]

		want := map[string]bool{}
		for _, g := range asked {
			for _, ch := range g.Channels {
				_, serves := ch.models.Lookup("m")
				ok := o.Regions == nil
				for _, r := range o.Regions {
					ok = ok || r == ch.Region
				}
				if serves && ok {
					want[ch.Label()+"/m"] = true
				}
			}
		}
		got := map[string]bool{}
		place := map[*Group]int{}
		for _, g := range asked {
			if _, again := place[g]; !again {
				place[g] = len(place)
			}
		}
		for i, r := range plan {
			require.False(t, got[r.String()], "%s comes twice", r)
			got[r.String()] = true
			if i == 0 {
				continue
			}
			last := plan[i-1].Channel
			require.LessOrEqual(t, place[last.Group], place[r.Channel.Group])
			if last.Group == r.Channel.Group && !r.Channel.Group.weighted {
				require.LessOrEqual(t, last.Priority, r.Channel.Priority)
			}
		}
		require.Equal(t, want, got)
		if o.Regions == nil {
			require.Equal(t, len(plan) > 0, slices.ContainsFunc(asked, func(g *Group) bool { return g.Serves("m") }))
		}
	})
}

// Equal routes are drawn without replacement in proportion to their weights: the chance of
// every whole order is what the weights say.
func TestWeightedOrderIsFair(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		weights := rapid.SliceOfN(rapid.IntRange(1, 20), 2, 4).Draw(t, "weights")
		var list []config.Channel
		for i, w := range weights {
			list = append(list, channel(fmt.Sprint(i), weight(w)))
		}
		table := build(setup(list), NewState(StateOptions{}))
		const n = 4000
		src := rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 2)
		seen := map[string]int{}
		var plan []*Route
		for range n {
			plan = table.Plan(plan[:0], table.Groups(), "m", PlanOptions{Now: day, Rand: src})
			order := ""
			for _, r := range plan {
				order += r.Channel.Name
			}
			seen[order]++
		}
		total := 0
		for _, w := range weights {
			total += w
		}
		for order, count := range seen {
			p, left := 1.0, float64(total)
			for _, c := range order {
				w := float64(weights[c-'0'])
				p *= w / left
				left -= w
			}
			sigma := math.Sqrt(n * p * (1 - p))
			require.InDelta(t, n*p, count, 6*sigma+1, "order %s of weights %v", order, weights)
		}
	})
}

func TestStrategyWeightedIgnoresPriority(t *testing.T) {
	c := setup([]config.Channel{channel("a", priority(1), weight(1)), channel("b", priority(2), weight(3))})
	c.Groups[0].Strategy = config.Weighted
	table := build(c, NewState(StateOptions{}))
	first := map[string]int{}
	src := rand.NewPCG(1, 2)
	for range 4000 {
		first[table.Plan(nil, table.Groups(), "m", PlanOptions{Now: day, Rand: src})[0].Channel.Name]++
	}
	require.InDelta(t, 1000, first["a"], 150)
}

// A start from the environment: a catalogued model goes to its maker's channel only, any other
// name to the first.
func TestPassingChannels(t *testing.T) {
	names := func(list ...string) map[string]struct{} {
		m := map[string]struct{}{}
		for _, n := range list {
			m[n] = struct{}{}
		}
		return m
	}
	table := build(setup([]config.Channel{
		channel("one", serving(config.Served{Any: true, Except: names("two-large")})),
		channel("two", serving(config.Served{Models: map[string]config.ChannelModel{"two-large": {}}, Unlisted: names("two-large-2026")})),
	}), NewState(StateOptions{}))
	for model, want := range map[string][]string{
		"two-large": {"g0/two/two-large"}, "two-large-2026": {"g0/one/two-large-2026", "g0/two/two-large-2026"},
		"whatever/else": {"g0/one/whatever/else"}, "": nil,
	} {
		var got []string
		for _, r := range table.Plan(nil, table.Groups(), model, PlanOptions{Now: day, Rand: rand.NewPCG(1, 1)}) {
			got = append(got, r.String())
		}
		require.ElementsMatch(t, want, got, model)
		require.Equal(t, want != nil, table.Groups()[0].Serves(model))
	}
	require.Equal(t, []string{"two-large"}, table.Groups()[0].Models())
}

// Names that a channel passes on are chosen by callers: what is remembered of them is bounded,
// and never lies in a request's buffer.
func TestPassedNamesAreBounded(t *testing.T) {
	s := NewState(StateOptions{})
	table := build(setup([]config.Channel{channel("a", serving(everything()))}), s)
	g := table.Groups()[0]
	buffer := []byte("model-sick")
	sick := table.Plan(nil, table.Groups(), unsafe.String(&buffer[0], len(buffer)), PlanOptions{Now: day})[0]
	copy(buffer, "another")
	require.Equal(t, "model-sick", sick.Model)
	require.Equal(t, "model-sick", sick.Upstream)
	failing(t, sick, time.Now(), 3, serverError)
	for i := range 2 * maxPassing {
		name := fmt.Sprint("model-", i)
		r := table.Plan(nil, table.Groups(), name, PlanOptions{Now: day})[0]
		require.Same(t, r, table.Plan(nil, table.Groups(), name, PlanOptions{Now: day})[0])
	}
	require.Equal(t, maxPassing, g.passing.names)
	circuits := 0
	table.Circuits(day, func(string, string, string, breaker.State) { circuits++ })
	require.Equal(t, maxPassing, circuits)
	require.Same(t, sick, table.Plan(nil, table.Groups(), "model-sick", PlanOptions{Now: day})[0], "an open circuit is not forgotten")

	// A reload forgets the names with nothing to remember.
	again := build(setup([]config.Channel{channel("a", serving(everything()))}), s)
	r := again.Plan(nil, again.Groups(), "model-sick", PlanOptions{Now: day})[0]
	require.NotSame(t, sick, r)
	require.Same(t, sick.own, r.own)
	left := 0
	s.circuits.Each(func(*breaker.Circuit) { left++ })
	require.Equal(t, 1, left)
}

func TestUnknownModelHasNoRoute(t *testing.T) {
	table, _, _ := pair(t, StateOptions{})
	require.Empty(t, table.Plan(nil, table.Groups(), "nope", PlanOptions{Now: day}))
	require.False(t, table.Groups()[0].Serves("nope"))
}

// After a circuit closed its route gets its share back where another equal route is, and at
// once where none is.
func TestRampLetsOthersGoFirst(t *testing.T) {
	table, a, b := pair(t, StateOptions{})
	plan := func(now time.Time) *Route {
		return table.Plan(nil, table.Groups(), "m", PlanOptions{Now: now})[0]
	}
	failing(t, a, day, 3, serverError)
	require.Same(t, a, plan(day), "order alone leaves nothing out")
	closed := day.Add(time.Second)
	answer(t, a, closed)
	share := func(from time.Duration) (n int) {
		for i := range 1000 {
			if plan(closed.Add(from+time.Duration(i)*time.Millisecond)) == a {
				n++
			}
		}
		return n
	}
	require.InDelta(t, 55, share(0), 10)
	require.InDelta(t, 550, share(5*time.Second), 10)
	require.Equal(t, 1000, share(10*time.Second))

	// Both were sick: neither stands back for the other.
	failing(t, a, closed.Add(time.Minute), 3, serverError)
	failing(t, b, closed.Add(time.Minute), 3, serverError)
	closed = closed.Add(2 * time.Minute)
	answer(t, a, closed)
	answer(t, b, closed)
	require.Equal(t, 1000, share(0))

	// The other is not well: it is no reason to leave a.
	failing(t, a, closed.Add(time.Minute), 3, serverError)
	closed = closed.Add(2 * time.Minute)
	answer(t, a, closed)
	failing(t, b, closed, 3, serverError)
	require.Equal(t, 900, func() (n int) {
		for i := range 900 {
			if plan(closed.Add(time.Duration(i)*time.Millisecond)) == a {
				n++
			}
		}
		return n
	}())
}

func TestPlanAllocatesNothing(t *testing.T) {
	var list []config.Channel
	for i := range 8 {
		list = append(list, channel(fmt.Sprint("c", i), priority(i%2)))
	}
	table := build(setup(list, []config.Channel{channel("any", serving(everything()))}), NewState(StateOptions{}))
	dst := make([]*Route, 0, 16)
	groups := table.Groups()
	for _, model := range []string{"m", "passed"} {
		dst = table.Plan(dst[:0], groups, model, PlanOptions{Now: day})
		require.Zero(t, testing.AllocsPerRun(100, func() {
			dst = table.Plan(dst[:0], groups, model, PlanOptions{Now: day})
		}), model)
	}
}

func BenchmarkPlan(b *testing.B) {
	var list []config.Channel
	for i := range 4 {
		list = append(list, channel(fmt.Sprint("c", i)))
	}
	table := build(setup(list), NewState(StateOptions{}))
	dst := make([]*Route, 0, 8)
	b.ReportAllocs()
	for b.Loop() {
		dst = table.Plan(dst[:0], table.groups, "m", PlanOptions{Now: day})
	}
}
