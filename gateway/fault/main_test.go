package fault

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds every wait of these tests; none of them needs it.
const patience = 30 * time.Second

func patient(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// leapClock leaps over every wait: it takes no time and yet passes.
type leapClock struct {
	mu  sync.Mutex
	now time.Time
}

func newLeapClock() *leapClock { return &leapClock{now: time.Unix(firstCreated, 0).UTC()} }

func (c *leapClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *leapClock) leap(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func (c *leapClock) After(d time.Duration) (<-chan time.Time, func()) {
	c.leap(d)
	fired := make(chan time.Time, 1)
	fired <- c.Now()
	return fired, func() {}
}

// start runs a provider until the test ends.
func start(t testing.TB, o Options) *Provider {
	t.Helper()
	p, err := Start(o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	return p
}

// script runs a provider of the name "p" under a script.
func script(t testing.TB, text string) *Provider {
	t.Helper()
	s, errs := Parse("p.fault", text)
	require.Empty(t, errs)
	return start(t, Options{Script: s, Name: "p"})
}
