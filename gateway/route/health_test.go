package route

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/interlock-gateway/interlock/gateway/config"
	"github.com/interlock-gateway/interlock/gateway/failure"
	"github.com/interlock-gateway/interlock/gateway/route/breaker"
	"github.com/interlock-gateway/interlock/gateway/storage"
)

// find returns the route of GROUP/CHANNEL for a model.
func find(t require.TestingT, table *Table, group, channel, model string) *Route {
	r, err := table.find(group, channel, model)
	require.NoError(t, err)
	return r
}

func upstream(public, name string) func(*config.Channel) {
	return func(c *config.Channel) { c.Models.Models[public] = config.ChannelModel{UpstreamModel: name} }
}

// One answer's Retry-After holds for the account and the model, on every channel and in every
// group, by the provider's name of the model; for other accounts and models it does not.
func TestCoolDownIsTheAccounts(t *testing.T) {
	both := serves("m", "n")
	table := build(setup(
		[]config.Channel{
			channel("a", ofAccount("acme"), serving(both)),
			channel("b", ofAccount("acme"), serving(serves("m", "n")), upstream("other", "m")),
			channel("c", serving(both)),
		},
		[]config.Channel{channel("a", ofAccount("acme"), serving(both))},
	), NewState(StateOptions{}))
	resting := func(now time.Time) (list []string) {
		for _, g := range table.Groups() {
			g.each(func(r *Route) {
				if usability(r, now) == Cooling {
					list = append(list, r.String())
				}
			})
		}
		return list
	}
	a := find(t, table, "g0", "a", "m")
	enter(t, a, day).Report(day, rateLimited(5*time.Second))
	enter(t, find(t, table, "g0", "c", "n"), day).Report(day, Outcome{Class: failure.RateLimited, Health: failure.Cools, Backoff: time.Second})
	require.ElementsMatch(t, []string{"g0/a/m", "g0/b/m", "g0/c/n", "g0/b/other", "g1/a/m"}, resting(day))
	require.NotContains(t, resting(day.Add(time.Second)), "g0/c/n", "without a Retry-After the backoff holds")
	require.Empty(t, resting(day.Add(5*time.Second)))
	require.Equal(t, "closed", a.CircuitWord(day), "no circuit counts it")

	o := rateLimited(2 * time.Second)
	o.Scope = breaker.Account
	later := day.Add(time.Minute)
	enter(t, a, later).Report(later, o)
	require.ElementsMatch(t, []string{"g0/a/m", "g0/a/n", "g0/b/m", "g0/b/n", "g0/b/other", "g1/a/m", "g1/a/n"}, resting(later))
}

// A failure opens the circuit of its scope, and that concerns whoever it is about.
func TestScopes(t *testing.T) {
	layout := func() *Table {
		return build(setup([]config.Channel{
			channel("a", ofAccount("x"), region("eu"), serving(serves("m", "n"))),
			channel("b", ofAccount("x"), region("us"), serving(serves("m", "n"))),
			channel("c", ofAccount("y"), region("eu"), serving(serves("m", "n"))),
			channel("d", ofAccount("z"), region("eu"), provider("q"), serving(serves("m", "n"))),
		}), NewState(StateOptions{}))
	}
	for scope, want := range map[breaker.Scope][]string{
		breaker.ChannelModel: {"g0/a/m"},
		breaker.Channel:      {"g0/a/m", "g0/a/n"},
		breaker.AccountModel: {"g0/a/m", "g0/b/m"},
		breaker.Account:      {"g0/a/m", "g0/b/m", "g0/a/n", "g0/b/n"},
		breaker.Region:       {"g0/a/m", "g0/c/m", "g0/a/n", "g0/c/n"},
		breaker.Provider:     {"g0/a/m", "g0/b/m", "g0/c/m", "g0/a/n", "g0/b/n", "g0/c/n"},
	} {
		t.Run(scope.String(), func(t *testing.T) {
			table := layout()
			o := serverError
			o.Scope = scope
			failing(t, find(t, table, "g0", "a", "m"), day, 3, o)
			var open []string
			table.Groups()[0].each(func(r *Route) {
				if usability(r, day) == Open {
					open = append(open, r.String())
				}
				require.Equal(t, usability(r, day) == Open, r.CircuitWord(day) == "open")
			})
			require.Equal(t, want, open)

			// A success elsewhere in the scope, as a probe, closes it for all.
			last := find(t, table, "g0", "a", "m")
			answer(t, last, day.Add(time.Second))
			table.Groups()[0].each(func(r *Route) { require.Equal(t, Ready, usability(r, day.Add(time.Second)), r) })
		})
	}
}

// A circuit of a capability keeps out only requests that use it.
func TestCapabilityScope(t *testing.T) {
	_, a, _ := pair(t, StateOptions{})
	o := Outcome{Class: failure.SchemaInvalid, Health: failure.Counts, Scope: breaker.JSONSchema}
	for range 3 {
		var p Permit
		require.Equal(t, Ready, a.Enter(&p, day, Ask{Uses: breaker.UsesJSONSchema}).State)
		p.Report(day, o)
	}
	require.Equal(t, Ready, a.Availability(day, Ask{Uses: breaker.UsesTools | breaker.UsesStreaming}).State)
	require.Equal(t, Open, a.Availability(day, Ask{Uses: breaker.UsesTools | breaker.UsesJSONSchema}).State)
	require.Equal(t, "closed", a.CircuitWord(day))
	answer(t, a, day.Add(time.Second))
	require.Equal(t, HalfOpen, a.Availability(day.Add(time.Second), Ask{Uses: breaker.UsesJSONSchema}).State,
		"a success without the capability says nothing of it")
}

func TestScopeWithoutMeaningFallsBackToTheRoute(t *testing.T) {
	_, a, b := pair(t, StateOptions{})
	o := serverError
	o.Scope = breaker.Region // the channel has none
	failing(t, a, day, 3, o)
	require.Equal(t, Open, usability(a, day))
	require.Equal(t, Ready, usability(b, day))
}

// Whatever follows the first Report or Drop does nothing, in every order.
func TestPermitIsReportedOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table := build(setup([]config.Channel{channel("a")}), NewState(StateOptions{}))
		r := find(t, table, "g0", "a", "m")
		failures := 0
		for range rapid.IntRange(1, 10).Draw(t, "attempts") {
			if usability(r, day) != Ready {
				break
			}
			p := enter(t, r, day)
			require.Same(t, r, p.Route())
			for i := range rapid.IntRange(1, 4).Draw(t, "ends") {
				if rapid.Bool().Draw(t, "drop") {
					p.Drop(day)
				} else {
					p.Report(day, serverError)
					if i == 0 {
						failures++
					}
				}
				require.Nil(t, p.Route())
			}
		}
		require.Equal(t, failures >= 3, usability(r, day) == Open)
	})
	var nothing Permit
	nothing.Report(day, serverError)
	nothing.Drop(day)
	nothing.Answering(day)
	require.Equal(t, "closed", nothing.CircuitWord())
}

// A probe that answers for longer than the circuit would stay open has proved its point.
func TestLongAnswerIsAGoodProbe(t *testing.T) {
	_, a, _ := pair(t, StateOptions{})
	failing(t, a, day, 3, serverError)
	now := day.Add(time.Second)
	p := enter(t, a, now)
	p.Answering(now.Add(time.Second - 1))
	require.Equal(t, Open, usability(a, now))
	now = now.Add(time.Second)
	p.Answering(now)
	require.Equal(t, Ready, usability(a, now))
	require.Equal(t, "closed", p.CircuitWord())
	failing(t, a, now, 2, serverError)
	p.Report(now, serverError)
	require.Equal(t, Open, usability(a, now), "how it ends is an ordinary outcome")
}

func TestIsolation(t *testing.T) {
	w := &watch{}
	table := build(setup([]config.Channel{
		channel("a", ofAccount("acme"), serving(serves("m", "n"))),
		channel("b", ofAccount("acme"), credential("sk-a")),
		channel("c"),
	}), NewState(StateOptions{Watcher: w}))
	a, b, c := find(t, table, "g0", "a", "m"), find(t, table, "g0", "b", "m"), find(t, table, "g0", "c", "m")
	under := enter(t, b, day)
	second := enter(t, a, day)
	enter(t, a, day).Report(day, deadKey)
	for _, r := range []*Route{a, b, find(t, table, "g0", "a", "n")} {
		require.Equal(t, Isolated, usability(r, day), "at once, for the whole account")
	}
	require.Equal(t, Ready, usability(c, day))
	under.Report(day, Outcome{})
	second.Report(day, deadKey)
	require.Equal(t, Isolated, usability(a, day), "a success of before ends nothing")
	require.Equal(t, []Investigation{{Kind: IsolatedAccount, Scope: "account/acme", Cause: "invalid_api_key", At: day}}, w.investigations)

	now := day.Add(time.Minute)
	enter(t, b, now).Report(now, deadKey)
	require.Equal(t, now.Add(2*time.Minute), a.Availability(now, Ask{}).Until, "doubled")
	now = now.Add(2 * time.Minute)
	enter(t, b, now).Report(now, callersOwn)
	require.Equal(t, HalfOpen, usability(a, now), "no proof of anything: the probe is free again")
	enter(t, b, now).Report(now, Outcome{})
	require.Equal(t, Ready, usability(a, now))
	require.Equal(t, []IsolationChange{
		{Account: "acme", Isolated: true, Reason: "invalid_api_key", At: day},
		{Account: "acme", Reason: "probe", At: now},
	}, w.isolations)

	enter(t, c, now).Report(now, deadKey)
	require.Equal(t, "channel/g0/c", w.investigations[1].Scope, "an account of its own is called like the channel")
	ended, err := table.Reset("g0", "c", "m", now)
	require.NoError(t, err)
	require.True(t, ended)
	require.Equal(t, Ready, usability(c, now))
}

func TestReset(t *testing.T) {
	w := &watch{}
	table, a, _ := pair(t, StateOptions{Watcher: w})
	ended, err := table.Reset("g0", "A", "m", day)
	require.NoError(t, err)
	require.False(t, ended)
	wide := serverError
	wide.Scope = breaker.Provider
	failing(t, a, day, 2, wide)
	failing(t, a, day, 2, serverError)
	failing(t, a, day, 1, wide)
	require.Equal(t, Open, usability(a, day))
	ended, err = table.Reset("g0", "A", "m", day)
	require.NoError(t, err)
	require.True(t, ended)
	require.Equal(t, Ready, usability(a, day))
	require.True(t, w.circuits[1].Reset)
	for _, name := range [][3]string{{"x", "A", "m"}, {"g0", "x", "m"}, {"g0", "A", "x"}} {
		_, err := table.Reset(name[0], name[1], name[2], day)
		require.ErrorIs(t, err, ErrNotFound)
	}
}

func TestCircuitThatOpensAgainIsInvestigated(t *testing.T) {
	w := &watch{}
	_, a, _ := pair(t, StateOptions{Watcher: w})
	failing(t, a, day, 3, serverError)
	require.Empty(t, w.investigations)
	later := day.Add(30 * time.Minute)
	answer(t, a, later)
	failing(t, a, later, 3, serverError)
	require.Equal(t, []Investigation{{
		Kind: CircuitReopened, Scope: "channel_model/g0/A/m", Cause: "opened_twice_within_an_hour", At: later,
	}}, w.investigations)
	require.Len(t, w.circuits, 4)
}

// Kill switches: each kind stops the routes that it is about, and only those.
func TestSwitchesOnRoutes(t *testing.T) {
	c := setup(
		[]config.Channel{channel("a", ofAccount("x"), serving(serves("m", "n"))), channel("b", provider("q"))},
		[]config.Channel{channel("a", ofAccount("x"))},
	)
	c.Aliases = map[string]config.Alias{"agent": {Model: "m"}}
	s := NewState(StateOptions{})
	table := build(c, s)
	for of, want := range map[[2]string][]string{
		{"channel", "g0/a"}:            {"g0/a/m", "g0/a/n"},
		{"group", "g1"}:                {"g1/a/m"},
		{"provider", "q"}:              {"g0/b/m"},
		{"account", "x"}:               {"g0/a/m", "g0/a/n", "g1/a/m"},
		{"account", "g0/b"}:            {"g0/b/m"},
		{"model", "m"}:                 {"g0/a/m", "g0/b/m", "g1/a/m"},
		{"alias", "agent"}:             nil,
		{"action", "same_route_retry"}: nil,
	} {
		changed := table.Changed()
		_, err := s.Switches().Put(bg, storage.Switch{Kind: of[0], Name: of[1]}, table, day)
		require.NoError(t, err, of)
		<-changed
		var off []string
		for _, g := range table.Groups() {
			g.each(func(r *Route) {
				if usability(r, day) == SwitchedOff {
					off = append(off, r.String())
				}
			})
		}
		require.Equal(t, want, off, of)
		require.Equal(t, of[0] == "alias", table.AliasOff("agent", day))
		require.Equal(t, of[0] == "action", table.Acts("", day).Has(failure.SameRouteRetry))
		_, err = s.Switches().Delete(bg, of[0], of[1])
		require.NoError(t, err)
	}
	for _, of := range [][2]string{{"channel", "a"}, {"group", "g2"}, {"provider", "r"}, {"account", "p"}, {"model", "agent"}, {"alias", "m"}} {
		require.False(t, table.Known(of[0], of[1]), of)
	}
}

// A switch is read again when an attempt starts, after any queue or backoff.
func TestSwitchIsReadAgainAtTheStart(t *testing.T) {
	table, a, _ := pair(t, StateOptions{})
	require.Equal(t, Ready, usability(a, day))
	_, err := table.state.switches.Put(bg, storage.Switch{Kind: "channel", Name: "g0/A"}, table, day)
	require.NoError(t, err)
	var p Permit
	require.Equal(t, SwitchedOff, a.Enter(&p, day, Ask{}).State)
	require.Nil(t, p.Route())
}

func TestChannelsStatus(t *testing.T) {
	table, a, b := pair(t, StateOptions{})
	answer(t, a, day)
	failing(t, a, day, 3, serverError)
	enter(t, b, day).Report(day, rateLimited(time.Minute))
	require.True(t, b.Channel.Gate.TryEnter())
	list := table.Channels(day)
	require.Len(t, list, 2)
	require.Equal(t, Open, list[0].State)
	require.Equal(t, 100*time.Millisecond, list[0].FirstOutput)
	require.Equal(t, &Failure{At: day, Class: failure.ServerError, Reason: "status_5xx", Model: "m"}, list[0].LastFailure)
	require.Equal(t, breaker.Open, list[0].Routes[0].Circuit)
	require.Equal(t, []CircuitStatus{{Scope: breaker.ChannelModel, State: breaker.Open, Until: day.Add(time.Second)}}, list[0].Routes[0].Circuits)
	require.Equal(t, Cooling, list[1].State)
	require.Equal(t, day.Add(time.Minute), list[1].Routes[0].CoolingUntil)
	require.Equal(t, 1, list[1].Running)

	_, err := table.state.switches.Put(bg, storage.Switch{Kind: "provider", Name: "p", Reason: "drill"}, table, day)
	require.NoError(t, err)
	list = table.Channels(day)
	require.Equal(t, SwitchedOff, list[1].State)
	require.Equal(t, "drill", list[1].Switch.Reason)

	states := map[string]breaker.State{}
	table.Circuits(day, func(g, c, m string, s breaker.State) { states[g+"/"+c+"/"+m] = s })
	require.Equal(t, map[string]breaker.State{"g0/A/m": breaker.Open, "g0/B/m": breaker.Closed}, states)
}
