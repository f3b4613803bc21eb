package breaker

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var day = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// changes is a Watcher that keeps what it was told.
type changes struct {
	mu   sync.Mutex
	list []Change
}

func (c *changes) CircuitChanged(ch Change) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.list = append(c.list, ch)
}

func (c *changes) take() []Change {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := c.list
	c.list = nil
	return l
}

func defaults() Settings {
	return Settings{
		Window: time.Minute, MinRequests: 10, FailureRatio: 0.5, ConsecutiveFailures: 5,
		OpenFor: 15 * time.Second, MaxOpen: 2 * time.Minute, HalfOpenProbes: 1, Ramp: 10 * time.Second,
	}
}

func newCircuit(s Settings) (*Circuit, *changes) {
	w := &changes{}
	return NewRegistry(s, w).Circuit(Key{Group: "g", Channel: "c", Model: "m"}), w
}

func stateAt(c *Circuit, now time.Time) State { s, _ := c.State(now); return s }

// fail makes n attempts that fail.
func fail(t require.TestingT, c *Circuit, now time.Time, n int) {
	for range n {
		p, ok := c.Enter(now)
		require.True(t, ok)
		c.Report(p, now, Bad)
	}
}

func succeed(t require.TestingT, c *Circuit, now time.Time, n int) {
	for range n {
		p, ok := c.Enter(now)
		require.True(t, ok)
		c.Report(p, now, Good)
	}
}

func TestFailuresInARowOpen(t *testing.T) {
	c, w := newCircuit(defaults())
	fail(t, c, day, 4)
	succeed(t, c, day, 1)
	fail(t, c, day, 4)
	require.Equal(t, Closed, stateAt(c, day))
	fail(t, c, day, 1)
	require.Equal(t, Open, stateAt(c, day))
	require.Equal(t, []Change{{Key: c.Key(), From: Closed, To: Open, At: day, OpenFor: 15 * time.Second}}, w.take())
	_, until := c.State(day)
	require.Equal(t, day.Add(15*time.Second), until)
	_, ok := c.Enter(until.Add(-1))
	require.False(t, ok, "open_for is exact")
	p, ok := c.Enter(until)
	require.True(t, ok)
	require.True(t, p.Probe())
}

func TestRatioOpens(t *testing.T) {
	s := defaults()
	s.ConsecutiveFailures = 0
	c, _ := newCircuit(s)
	succeed(t, c, day, 5)
	fail(t, c, day, 4)
	require.Equal(t, Closed, stateAt(c, day), "nine say nothing")
	fail(t, c, day, 1)
	require.Equal(t, Open, stateAt(c, day), "five of ten")

	c, _ = newCircuit(s)
	succeed(t, c, day, 5)
	fail(t, c, day.Add(61*time.Second), 9)
	require.Equal(t, Closed, stateAt(c, day.Add(61*time.Second)), "what is older than the window is not counted")
}

func TestRulesCanBeSwitchedOff(t *testing.T) {
	s := defaults()
	s.ConsecutiveFailures, s.FailureRatio = 0, 0
	c, _ := newCircuit(s)
	fail(t, c, day, 1000)
	require.Equal(t, Closed, stateAt(c, day))
}

func TestOpenTimeDoublesAndStartsAnew(t *testing.T) {
	c, w := newCircuit(defaults())
	now := day
	fail(t, c, now, 5)
	for _, d := range []time.Duration{15, 30, 60, 120, 120} {
		_, until := c.State(now)
		require.Equal(t, d*time.Second, until.Sub(now))
		now = until
		fail(t, c, now, 1)
	}
	_, now = c.State(now)
	succeed(t, c, now, 1)
	require.Equal(t, Closed, stateAt(c, now))
	fail(t, c, now, 5)
	_, until := c.State(now)
	require.Equal(t, 15*time.Second, until.Sub(now))
	var twice []bool
	for _, ch := range w.take() {
		if ch.To == Open {
			twice = append(twice, ch.Again)
		}
	}
	require.Equal(t, []bool{false, true, true, true, true, true, true}, twice)
}

func TestOpeningAgainAfterAnHourIsNoMatter(t *testing.T) {
	c, w := newCircuit(defaults())
	fail(t, c, day, 5)
	later := day.Add(time.Hour + time.Second)
	succeed(t, c, later, 1)
	fail(t, c, later, 5)
	last := w.take()[3]
	require.Equal(t, Open, last.To)
	require.False(t, last.Again)
}

func TestHalfOpenLetsOnlyProbesThrough(t *testing.T) {
	s := defaults()
	s.HalfOpenProbes = 3
	c, _ := newCircuit(s)
	early, _ := c.Enter(day)
	fail(t, c, day, 5)
	now := day.Add(15 * time.Second)
	var probes []Pass
	for range 3 {
		p, ok := c.Enter(now)
		require.True(t, ok)
		probes = append(probes, p)
	}
	_, ok := c.Enter(now)
	require.False(t, ok)
	state, _ := c.Room(now)
	require.Equal(t, Open, state, "there is no room")
	require.Equal(t, HalfOpen, stateAt(c, now))

	c.Report(probes[0], now, Neutral)
	again, ok := c.Enter(now)
	require.True(t, ok, "a neutral outcome frees the probe")
	c.Report(early, now, Good)
	require.Equal(t, HalfOpen, stateAt(c, now), "an attempt from before says nothing")
	c.Report(probes[1], now, Good)
	c.Report(probes[2], now, Good)
	_, ok = c.Enter(now)
	require.False(t, ok, "two succeeded and one is out: no more are needed")
	c.Report(again, now, Good)
	require.Equal(t, Closed, stateAt(c, now))
	c.Report(early, now, Bad)
	require.Zero(t, c.row.Load())
}

// An attempt that began before the circuit opened says nothing of it after it closed: neither
// its success nor its failure.
func TestOutcomesOfBeforeAreStale(t *testing.T) {
	for _, v := range []Verdict{Good, Bad} {
		c, _ := newCircuit(defaults())
		early, _ := c.Enter(day)
		fail(t, c, day, 5)
		now := day.Add(15 * time.Second)
		succeed(t, c, now, 1)
		fail(t, c, now, 4)
		c.Report(early, now, v)
		require.Equal(t, Closed, stateAt(c, now))
		fail(t, c, now, 1)
		require.Equal(t, Open, stateAt(c, now))
	}
}

func TestReset(t *testing.T) {
	c, w := newCircuit(defaults())
	require.False(t, c.Reset(day))
	fail(t, c, day, 4)
	require.False(t, c.Reset(day))
	fail(t, c, day, 4)
	require.Equal(t, Closed, stateAt(c, day), "what was counted is forgotten")
	fail(t, c, day, 1)
	require.True(t, c.Reset(day))
	require.False(t, c.Ramping(day))
	last := w.take()[1]
	require.True(t, last.Reset)
	require.Equal(t, Closed, last.To)
}

// Caller faults (T26): outcomes that say nothing about the route never open its circuit.
func TestNeutralOutcomesNeverOpen(t *testing.T) {
	c, _ := newCircuit(defaults())
	for range 60 {
		p, ok := c.Enter(day)
		require.True(t, ok)
		c.Report(p, day, Neutral)
	}
	require.Equal(t, Closed, stateAt(c, day))
	good, bad := c.counts.sum(at(day), time.Minute)
	require.Zero(t, good+bad)
}

// The circuit against a plain reading of its rules, over any sequence of acts.
func TestCircuitModel(t *testing.T) {
	type outcome struct {
		span uint64
		bad  bool
	}
	type attempt struct {
		pass  Pass
		epoch int
		probe bool
	}
	rapid.Check(t, func(t *rapid.T) {
		s := Settings{
			Window:              time.Duration(rapid.IntRange(1, 20).Draw(t, "window")) * time.Second,
			MinRequests:         rapid.IntRange(1, 6).Draw(t, "min"),
			FailureRatio:        rapid.SampledFrom([]float64{0, 0.3, 0.5, 1}).Draw(t, "ratio"),
			ConsecutiveFailures: rapid.IntRange(0, 4).Draw(t, "row"),
			OpenFor:             time.Duration(rapid.IntRange(1, 5).Draw(t, "open")) * time.Second,
			MaxOpen:             time.Duration(rapid.IntRange(1, 12).Draw(t, "max")) * time.Second,
			HalfOpenProbes:      rapid.IntRange(1, 3).Draw(t, "probes"),
		}
		c, w := newCircuit(s)
		now, state, epoch := day, Closed, 0
		var log []outcome
		var out []attempt
		var until time.Time
		row, good, openFor := 0, 0, time.Duration(0)
		told := 0
		become := func(to State) { state = to; epoch++; told++ }
		open := func(d time.Duration) { openFor = d; until = now.Add(d); become(Open) }
		closeIt := func() { row, log = 0, nil; become(Closed) }
		probesOut := func() (n int) {
			for _, a := range out {
				if a.probe && a.epoch == epoch {
					n++
				}
			}
			return n
		}
		t.Repeat(map[string]func(*rapid.T){
			"wait": func(t *rapid.T) {
				now = now.Add(time.Duration(rapid.IntRange(1, 3000).Draw(t, "ms")) * time.Millisecond)
			},
			"enter": func(t *rapid.T) {
				if state == Open && !now.Before(until) {
					good = 0
					become(HalfOpen)
				}
				may := state == Closed || state == HalfOpen && probesOut()+good < s.HalfOpenProbes
				p, ok := c.Enter(now)
				require.Equal(t, may, ok)
				if ok {
					require.Equal(t, state == HalfOpen, p.Probe())
					out = append(out, attempt{p, epoch, p.Probe()})
				}
			},
			"report": func(t *rapid.T) {
				if len(out) == 0 {
					t.Skip()
				}
				i := rapid.IntRange(0, len(out)-1).Draw(t, "which")
				v := rapid.SampledFrom([]Verdict{Neutral, Good, Bad, Bad}).Draw(t, "verdict")
				a := out[i]
				out = append(out[:i], out[i+1:]...)
				c.Report(a.pass, now, v)
				if a.epoch != epoch || v == Neutral {
					return
				}
				if a.probe {
					if v == Bad {
						open(max(s.OpenFor, min(2*openFor, s.MaxOpen)))
					} else if good++; good == s.HalfOpenProbes {
						closeIt()
					}
					return
				}
				span := spanAt(at(now), s.Window)
				log = append(log, outcome{span, v == Bad})
				if v == Good {
					row = 0
					return
				}
				row++
				n, bad := 0, 0
				for _, o := range log {
					if o.span+slicesInWindow > span {
						n++
						if o.bad {
							bad++
						}
					}
				}
				if s.ConsecutiveFailures > 0 && row >= s.ConsecutiveFailures ||
					s.FailureRatio > 0 && n >= s.MinRequests && float64(bad) >= s.FailureRatio*float64(n) {
					open(s.OpenFor)
				}
			},
			"reset": func(t *rapid.T) {
				if rapid.IntRange(0, 5).Draw(t, "rarely") > 0 {
					t.Skip()
				}
				require.Equal(t, state != Closed, c.Reset(now))
				if state != Closed {
					closeIt()
				}
				row, log = 0, nil
			},
			"": func(t *rapid.T) {
				want := state
				if state == Open && !now.Before(until) {
					want = HalfOpen
				}
				got, at := c.State(now)
				require.Equal(t, want, got)
				if want == Open {
					require.Equal(t, until, at)
				}
				require.Len(t, w.list, told)
			},
		})
	})
}

func TestCountsForgetWhatIsOld(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		window := time.Duration(rapid.Int64Range(int64(time.Millisecond), int64(time.Hour)).Draw(t, "window"))
		var c counts
		var log []time.Time
		now := day
		for range rapid.IntRange(1, 60).Draw(t, "n") {
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(window)/4).Draw(t, "pause")))
			c.add(at(now), window, true)
			log = append(log, now)
			_, bad := c.sum(at(now), window)
			surely, atMost := 0, 0
			for _, l := range log {
				if age := now.Sub(l); age < window {
					atMost++
					if age < window*19/20-time.Duration(slicesInWindow) {
						surely++
					}
				}
			}
			require.GreaterOrEqual(t, bad, surely)
			require.LessOrEqual(t, bad, atMost)
		}
	})
}

// The share after closing grows from none to all, a handful of requests aside.
func TestRampGivesTheShareBack(t *testing.T) {
	s := defaults()
	c, _ := newCircuit(s)
	fail(t, c, day, 5)
	now := day.Add(15 * time.Second)
	require.False(t, c.Ramping(now))
	succeed(t, c, now, 1)
	require.True(t, c.Ramping(now))
	for range rampFloor {
		require.True(t, c.Turn(now))
	}
	require.False(t, c.Turn(now))
	last := 0
	for tenth := range 10 {
		n := 0
		for i := range 1000 {
			if c.Turn(now.Add(time.Duration(tenth)*time.Second + time.Duration(i)*time.Millisecond)) {
				n++
			}
		}
		require.InDelta(t, 100*tenth+50, n, 5)
		require.Greater(t, n, last)
		last = n
	}
	end := now.Add(s.Ramp)
	require.True(t, c.Turn(end))
	require.False(t, c.Ramping(end))
	require.False(t, c.registry.Ramping(end))
}

// Many ask at once: a half-open circuit lets exactly its probes through, round after round,
// and with outcomes of every kind against each other no permit is lost.
func TestCircuitHammer(t *testing.T) {
	s := defaults()
	s.HalfOpenProbes = 2
	c, _ := newCircuit(s)
	now := day
	fail(t, c, now, 5)
	for round := range 200 {
		_, now = c.State(now)
		passes := make([]Pass, 16)
		var wg sync.WaitGroup
		for i := range passes {
			wg.Go(func() { passes[i], _ = c.Enter(now) })
		}
		wg.Wait()
		probes := 0
		for _, p := range passes {
			if p.Probe() {
				probes++
			}
		}
		require.Equal(t, 2, probes)
		for i, p := range passes {
			if p.Probe() {
				v := []Verdict{Neutral, Bad, Good}[(round+i)%3]
				wg.Go(func() { c.Report(p, now, v) })
			}
		}
		wg.Wait()
		switch stateAt(c, now) {
		case HalfOpen: // neutral, or one of two good
			p, ok := c.Enter(now)
			require.True(t, ok)
			c.Report(p, now, Bad)
		case Closed:
			for range 16 { // the last ones come too late: the circuit is open
				wg.Go(func() {
					if p, ok := c.Enter(now); ok {
						c.Report(p, now, Bad)
					}
				})
			}
			wg.Wait()
		}
		require.Equal(t, Open, stateAt(c, now))
	}
}

func TestHealthyPathAllocatesNothing(t *testing.T) {
	c, _ := newCircuit(defaults())
	now := day
	require.Zero(t, testing.AllocsPerRun(100, func() {
		now = now.Add(time.Second)
		c.Room(now)
		p, _ := c.Enter(now)
		c.Report(p, now, Good)
	}))
}

func BenchmarkHealthyAttempt(b *testing.B) {
	c, _ := newCircuit(defaults())
	now := time.Now()
	b.ReportAllocs()
	for b.Loop() {
		p, _ := c.Enter(now)
		c.Report(p, now, Good)
	}
}
