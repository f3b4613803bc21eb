package upstream

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/interlock-gateway/interlock/gateway/failure"
)

// together makes n calls that hold n connections at once, then ends them in order.
func together(t *testing.T, p *Pool, n int) {
	t.Helper()
	var calls []*Call
	for range n {
		c := AcquireCall()
		c.Start(p, hello(), bounded())
		require.NoError(t, c.Head())
		calls = append(calls, c)
	}
	for _, c := range calls {
		_, err := drain(c)
		require.NoError(t, err)
		c.Release()
	}
}

func TestLastUsedIsFirstReused(t *testing.T) {
	p := serve(t, false, answering(okJSON))
	pool := p.pool()
	together(t, pool, 3)
	pool.mu.Lock()
	last := pool.idle[2]
	pool.mu.Unlock()
	for range 3 {
		exchangeOnce(t, pool)
	}
	pool.mu.Lock()
	require.Same(t, last, pool.idle[2])
	pool.mu.Unlock()
	require.Equal(t, Stats{Idle: 3, Dials: 3, Reuses: 3}, pool.Stats())
}

func TestMaxIdle(t *testing.T) {
	p := serve(t, false, answering(okJSON))
	pool := p.pool(func(o *Options) { o.MaxIdle = 2 })
	together(t, pool, 5)
	require.Equal(t, Stats{Idle: 2, Dials: 5, Dropped: 3}, pool.Stats())
}

// TestIdleTTL: unused connections are closed by themselves, the peer sees it.
func TestIdleTTL(t *testing.T) {
	var gone atomic.Int64
	p := serve(t, false, func(c *peerConn) {
		answering(okJSON)(c)
		gone.Add(1)
	})
	pool := p.pool(func(o *Options) { o.IdleTTL = tick })
	together(t, pool, 2)
	eventually(t, "the peer sees both go", func() bool { return gone.Load() == 2 })
	eventually(t, "both are counted", func() bool { return pool.Stats().Expired == 2 })
	require.Zero(t, pool.Stats().Idle)
	pool.mu.Lock()
	require.Nil(t, pool.sweeper, "nothing runs for an empty pool")
	pool.mu.Unlock()
	exchangeOnce(t, pool)
}

// TestAgesAreChecked: on taking as well as by the sweeper, which is late here.
func TestAgesAreChecked(t *testing.T) {
	p := serve(t, false, answering(okJSON))
	for name, age := range map[string]func(cn *conn){
		"unused too long": func(cn *conn) { cn.idleSince = time.Now().Add(-31 * time.Second) },
		"too old":         func(cn *conn) { cn.expires = time.Now() },
	} {
		pool := p.pool()
		exchangeOnce(t, pool)
		pool.mu.Lock()
		age(pool.idle[0])
		pool.mu.Unlock()
		exchangeOnce(t, pool)
		require.Equal(t, Stats{Idle: 1, Dials: 2, Expired: 1}, pool.Stats(), name)
	}
	pool := p.pool()
	c := begin(t, pool, hello(), bounded())
	require.NoError(t, c.Head())
	c.x.conn.expires = time.Now()
	_, err := drain(c)
	require.NoError(t, err)
	require.Equal(t, Stats{Dials: 1, Dropped: 1}, pool.Stats(), "too old when it comes back")
}

func TestMaxAgeIsJittered(t *testing.T) {
	p := serve(t, false, answering(okJSON))
	pool := p.pool(func(o *Options) { o.MaxAge = time.Hour })
	before := time.Now()
	together(t, pool, 8)
	after := time.Now()
	ages := map[time.Duration]bool{}
	for _, cn := range pool.idle {
		require.False(t, cn.expires.Before(before.Add(48*time.Minute)) || cn.expires.After(after.Add(time.Hour)))
		ages[cn.expires.Sub(before).Truncate(time.Second)] = true
	}
	require.Greater(t, len(ages), 1)
}

// TestRetire: running calls go on, new ones start, nothing is kept.
func TestRetire(t *testing.T) {
	p := serve(t, false, answering(okJSON))
	pool := p.pool()
	together(t, pool, 2)
	c := begin(t, pool, hello(), bounded())
	require.NoError(t, c.Head())
	pool.Retire()
	pool.Retire()
	require.Equal(t, 0, pool.Stats().Idle)
	_, err := drain(c)
	require.NoError(t, err)
	exchangeOnce(t, pool)
	s := pool.Stats()
	require.Zero(t, s.Idle+s.InUse)
	require.EqualValues(t, 3, s.Dials)
}

func TestClose(t *testing.T) {
	p := serve(t, false, answering(okJSON))
	pool := p.pool()
	exchangeOnce(t, pool)
	c := begin(t, pool, hello(), bounded())
	require.NoError(t, c.Head())
	pool.Close()
	_, err := drain(c)
	require.NoError(t, err, "what runs goes on")
	refused := begin(t, pool, hello(), bounded())
	err = refused.Head()
	requireFact(t, err, failure.Aborted, failure.NotSent)
	require.ErrorIs(t, err, ErrClosed)
	require.Zero(t, pool.Stats().Idle+pool.Stats().InUse)
	require.EqualValues(t, 1, p.accepted.Load())
}

// TestDialThatComesTooLate: a connection that comes about after its call gave up is kept
// for the next one.
func TestDialThatComesTooLate(t *testing.T) {
	p := serve(t, false, answering(okJSON))
	pool := p.pool()
	d := pool.dial(&Clocks{})
	pool.mu.Lock()
	pool.stats.Dials++
	pool.stats.Dialing++
	pool.mu.Unlock()
	<-d.done
	require.Equal(t, Stats{InUse: 1, Dials: 1}, pool.Stats())
	d.abandon(pool)
	require.Equal(t, Stats{Idle: 1, Dials: 1}, pool.Stats())
	exchangeOnce(t, pool)
	require.EqualValues(t, 1, pool.Stats().Reuses)
}

// TestPoolsShareNothing: a call of one pool never uses another's connection.
func TestPoolsShareNothing(t *testing.T) {
	p := serve(t, false, answering(okJSON))
	a, b := p.pool(), p.pool()
	exchangeOnce(t, a)
	exchangeOnce(t, b)
	require.Equal(t, Stats{Idle: 1, Dials: 1}, a.Stats())
	require.Equal(t, Stats{Idle: 1, Dials: 1}, b.Stats())
}
