package limit

import "time"

// Gate bounds how much runs at once, with a bounded queue before it that is fair over keys:
// round robin between keys, first come first served within one. All methods may be called
// from any goroutine.
type Gate struct{}

// NewGate returns a gate that lets limit through at once (0 = no limit) and holds at most
// queue waiting, each for at most wait.
func NewGate(limit, queue int, wait time.Duration) *Gate { return &Gate{} }

// Resize changes the bounds. Permits that are out stay out: a smaller limit is reached as
// they are given back. Who waits keeps waiting, for as long as it was told then.
func (g *Gate) Resize(limit, queue int, wait time.Duration) {}

// TryEnter takes a permit if one is free and nobody waits for it.
func (g *Gate) TryEnter() bool { return false }

// Enqueue takes a permit or puts the ticket into the queue, in the turn of key. It reports
// false if the queue is full. Only where it reported true must Wait be called, until it
// returns Entered, Expired, Refused or Cancelled; or Cancel.
func (g *Gate) Enqueue(t *Ticket, key string, now time.Time) bool { return false }

// Leave gives a permit back and passes it to whoever is next.
func (g *Gate) Leave() {}

// Load returns how many permits are out and how many tickets wait.
func (g *Gate) Load() (running, waiting int) { return 0, 0 }

// Ticket is a place in a gate's queue. The zero value is ready for use and may be used again
// and again, for one gate at a time, by one goroutine; only Cancel may come from others.
type Ticket struct{}

// Result says how a Wait ended.
type Result uint8

// The results.
const (
	Entered   Result = iota // the permit is held: give it back with Gate.Leave
	Expired                 // the queue's wait or until has passed; the place is given up
	Refused                 // pushed out of a full queue by a key with fewer waiting
	Cancelled               // Cancel was called; the place or the permit is given up
	Woken                   // wake has passed: still in the queue, call Wait again
	Changed                 // changed was closed: still in the queue, call Wait again or Cancel
)

// Wait waits for the permit until the queue's wait is over or until has passed (zero =
// never), and returns early at wake (zero = never) or when changed is closed (nil = never).
func (t *Ticket) Wait(until, wake time.Time, changed <-chan struct{}) Result { return Expired }

// Cancel gives up the place, or a permit that was granted but not yet seen by Wait, and wakes
// Wait. It does nothing to a ticket that is not in a queue. It never blocks for long.
func (t *Ticket) Cancel() {}
