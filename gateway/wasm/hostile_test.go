package wasm

import (
	"context"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAHostileCallEndsAsAFailureAndTheNextOneWorks(t *testing.T) {
	for name, c := range map[string]struct {
		what   byte
		reason Reason
		within time.Duration
	}{
		"endless loop":           {loops, Exhausted, 3 * time.Second},
		"endless recursion":      {recurses, Trapped, 3 * time.Second},
		"recursion that spreads": {branches, Exhausted, 3 * time.Second},
		"unreachable":            {traps, Trapped, time.Second},
		"store outside":          {strays, Trapped, time.Second},
		"1 GiB result":           {claims, Oversized, time.Second},
		"lying pointer":          {lies, Malformed, time.Second},
		"garbage error":          {garbles, Malformed, time.Second},
		"error without status":   {wrongStatus, Malformed, time.Second},
		"copying for ever":       {copies, Exhausted, 3 * time.Second},
		"division by zero":       {divides, Trapped, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			h := load(t, guest{}, nil)
			began := time.Now()
			_, err := h.do(c.what)
			require.Equal(t, c.reason.String(), reason(t, err).String(), "%v", err)
			require.Less(t, time.Since(began), c.within)
			t.Log(time.Since(began), err)
			out, err := h.do(echoes, 'o', 'k')
			require.NoError(t, err)
			require.Equal(t, "\x00ok", string(out))
			require.Equal(t, 1, h.counted.traps)
			require.Equal(t, 2, h.counted.calls["request"])
		})
	}
}

// With a budget that never ends the wall clock stops a guest.
func TestTheWallClockStopsAGuest(t *testing.T) {
	h := load(t, guest{}, nil)
	for _, what := range []byte{loops, branches, copies, chases} {
		i, err := h.pool.acquire(true, Wait{})
		require.NoError(t, err)
		began := time.Now()
		_, err = i.do(OpRequest, []byte{what}, nil, 1<<50, 50*time.Millisecond)
		took := time.Since(began)
		h.pool.give(i, true, broken)
		require.Equal(t, Killed, reason(t, err))
		require.GreaterOrEqual(t, took, 50*time.Millisecond)
		require.Less(t, took, time.Second)
		t.Log(what, took)
		h.pool.mu.Lock()
		h.pool.circuit.success()
		h.pool.mu.Unlock()
	}
}

// The collector stops the world while a guest spins: it must not wait for the guest.
func TestTheCollectorDoesNotWaitForAGuest(t *testing.T) {
	h := load(t, guest{}, func(o *Options) { o.Limits.Memory = 64 << 20 })
	_, err := h.do(fills)
	require.NoError(t, err)
	for name, what := range map[string]byte{"loop": loops, "recursion": branches, "copies": copies, "loads": chases} {
		h.pool.mu.Lock()
		h.pool.circuit.success()
		h.pool.mu.Unlock()
		i, err := h.pool.acquire(true, Wait{})
		require.NoError(t, err)
		ended := make(chan error)
		go func() {
			_, err := i.do(OpRequest, []byte{what}, nil, 1<<50, 400*time.Millisecond)
			ended <- err
		}()
		eventually(t, "it runs", func() bool { return i.watched.until.Load() > 0 })
		var pauses []time.Duration
		for i.watched.until.Load() > 0 {
			before := pauseTotal()
			runtime.GC()
			pauses = append(pauses, pauseTotal()-before)
		}
		require.Equal(t, Killed, reason(t, <-ended))
		h.pool.give(i, true, broken)
		require.Greater(t, len(pauses), 2, name)
		slices.Sort(pauses)
		t.Log(name, len(pauses), "collections; median and longest pause", pauses[len(pauses)/2], pauses[len(pauses)-1])
		// A busy machine takes a processor away for longer than that now and then; a guest that
		// does not let go would hold up all of them until it ends.
		require.Less(t, pauses[len(pauses)/2], 20*time.Millisecond, name)
		require.Less(t, pauses[len(pauses)-1], 300*time.Millisecond, name)
	}
}

func pauseTotal() time.Duration {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return time.Duration(m.PauseTotalNs)
}

func TestMemoryIsBounded(t *testing.T) {
	h := load(t, guest{}, func(o *Options) { o.Limits.Memory = 8 << 20 })
	_, m, err := h.CallMeasured(Wait{}, OpRequest, []byte{fills}, nil)
	require.NoError(t, err)
	require.EqualValues(t, 8<<20, m.Memory)
	eventually(t, "the worn instance is replaced", func() bool {
		_, m, err := h.CallMeasured(Wait{}, OpEvents, []byte{echoes}, nil)
		require.NoError(t, err)
		return m.Memory < 1<<20
	})
	require.Zero(t, h.counted.traps)
}

func TestALeakingGuestIsRecycled(t *testing.T) {
	h := load(t, guest{}, func(o *Options) { o.Limits.Memory = 2 << 20 })
	fell, last := 0, int64(0)
	for end := time.Now().Add(30 * time.Second); fell < 5; {
		require.True(t, time.Now().Before(end), "it fell %d times", fell)
		_, m, err := h.CallMeasured(Wait{}, OpRequest, []byte{leaks}, nil)
		require.NoError(t, err)
		require.LessOrEqual(t, m.Memory, int64(2<<20))
		if m.Memory < last {
			fell++
		}
		last = m.Memory
		runtime.Gosched()
	}
	require.Zero(t, h.counted.traps)
}

func TestAnInstanceIsRecycledAfterManyCalls(t *testing.T) {
	h := load(t, guest{}, func(o *Options) { o.PoolSize = 1 })
	first := h.pool.idle[0]
	first.calls = recycleCalls - 1
	_, err := h.do(echoes)
	require.NoError(t, err)
	eventually(t, "it is replaced", func() bool {
		h.pool.mu.Lock()
		defer h.pool.mu.Unlock()
		return len(h.pool.idle) == 1 && h.pool.idle[0] != first && h.pool.total == 1
	})
}

func TestAGuestsErrorIsAnAnswer(t *testing.T) {
	h := load(t, guest{}, nil)
	before := h.pool.idle[0]
	dst := []byte("kept")
	out, err := h.Call(Wait{}, OpRequest, []byte{refuses}, dst)
	require.Equal(t, "kept", string(out))
	var e *GuestError
	require.ErrorAs(t, err, &e)
	require.Equal(t, &GuestError{
		Code: CodeUnsupportedParameter, Message: "there is no logit_bias here", Param: "logit_bias", Status: 422,
	}, e)
	require.Equal(t, before, h.pool.idle[0], "the instance stays")
	require.Zero(t, h.counted.traps)

	_, err = h.do(overlongError)
	require.ErrorAs(t, err, &e)
	require.Len(t, e.Message, maxMessage)
}

func TestAnInputThatDoesNotFitIsNotTheGuestsFault(t *testing.T) {
	h := load(t, guest{}, func(o *Options) { o.Limits.Memory = 2 << 20 })
	_, err := h.Call(Wait{}, OpRequest, make([]byte, 1<<20+1), nil)
	require.Equal(t, TooLarge, reason(t, err))
	in := make([]byte, 1<<20)
	in[len(in)-1] = 7
	out, err := h.Call(Wait{}, OpRequest, in, []byte("a"))
	require.NoError(t, err)
	require.Equal(t, append([]byte("a"), in...), out)
}

func TestBudgetsGrowWithTheInput(t *testing.T) {
	l := Limits{}
	small, wall := l.Budget(0)
	require.EqualValues(t, 100*UnitsPerMillisecond, small)
	require.Equal(t, time.Second, wall)
	large, wall := l.Budget(2 << 20)
	require.EqualValues(t, 400*UnitsPerMillisecond, large)
	require.Equal(t, 4*time.Second, wall)
}

func TestAPluginThatKeepsFailingIsLeftAlone(t *testing.T) {
	h := load(t, guest{}, nil)
	for range circuitFailures {
		_, err := h.do(traps)
		require.Equal(t, Trapped, reason(t, err))
	}
	_, err := h.do(echoes)
	require.Equal(t, Circuit, reason(t, err))
	require.Equal(t, circuitFailures, h.counted.traps)

	// After the pause one call tries; a success closes the circuit.
	h.pool.mu.Lock()
	require.Equal(t, circuitPause, h.pool.circuit.pause)
	h.pool.circuit.until = nanotime()
	h.pool.mu.Unlock()
	_, err = h.do(traps)
	require.Equal(t, Trapped, reason(t, err))
	h.pool.mu.Lock()
	require.Equal(t, 2*circuitPause, h.pool.circuit.pause)
	h.pool.circuit.until = nanotime()
	h.pool.mu.Unlock()
	_, err = h.do(echoes)
	require.NoError(t, err)
	_, err = h.do(echoes)
	require.NoError(t, err)
}

func TestFailuresBetweenSuccessesOpenNoCircuit(t *testing.T) {
	h := load(t, guest{}, nil)
	for range 3 * circuitFailures {
		_, err := h.do(traps)
		require.Equal(t, Trapped, reason(t, err))
		_, err = h.do(echoes)
		require.NoError(t, err)
	}
}

func TestTheCircuitsPauseIsBounded(t *testing.T) {
	var c circuit
	now := int64(0)
	for range circuitFailures - 1 {
		require.False(t, c.failure(now))
		now += int64(circuitWindow) // too slow to count
	}
	require.False(t, c.failure(now))
	for range circuitFailures - 1 {
		c.failure(now)
	}
	require.True(t, c.open())
	for range 20 {
		require.False(t, c.admit(now))
		now = c.until
		require.True(t, c.admit(now))
		require.False(t, c.admit(now), "one at a time")
		c.failure(now)
	}
	require.Equal(t, circuitLongest, c.pause)
}

func TestClosingStopsWhatStillRuns(t *testing.T) {
	h := load(t, guest{}, nil)
	i, err := h.pool.acquire(true, Wait{})
	require.NoError(t, err)
	ended := make(chan error, 1)
	go func() {
		_, err := i.do(OpRequest, []byte{loops}, nil, 1<<50, time.Hour)
		h.pool.give(i, true, broken)
		ended <- err
	}()
	eventually(t, "it runs", func() bool { return i.watched.until.Load() > 0 })
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	require.ErrorIs(t, h.Close(ctx), context.Canceled)
	require.Equal(t, Killed, reason(t, <-ended))
	_, err = h.do(echoes)
	require.Equal(t, Closed, reason(t, err))
}
