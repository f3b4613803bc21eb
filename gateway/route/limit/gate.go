package limit

import (
	"sync"
	"time"
)

// Gate bounds how much runs at once, with a bounded queue before it that is fair over keys:
// round robin between keys, first come first served within one. A key cannot keep others out
// by filling the queue: when it is full, a key with fewer waiting pushes out the latest of the
// one with most. All methods may be called from any goroutine.
type Gate struct {
	mu      sync.Mutex
	limit   int // 0 = none
	queue   int // places
	wait    time.Duration
	running int // permits that are out
	waiting int

	lines map[string]*line // of the keys that wait
	turn  *line            // whose turn it is, in a circle of lines; nil = nobody waits
	spare *line            // emptied lines, to be used again
}

// line is the queue of one key. Lines form a circle in the order of their turns.
type line struct {
	key         string
	first, last *Ticket
	n           int
	next, prev  *line
}

// maxSpare bounds the emptied lines that are kept.
const maxSpare = 64

// NewGate returns a gate that lets limit through at once (0 or less = no limit) and holds at
// most queue waiting, each for at most wait.
func NewGate(limit, queue int, wait time.Duration) *Gate {
	return &Gate{limit: max(limit, 0), queue: max(queue, 0), wait: max(wait, 0)}
}

// Resize changes the bounds. Permits that are out stay out: a smaller limit is reached as
// they are given back. Who waits keeps waiting, for as long as it was told then.
func (g *Gate) Resize(limit, queue int, wait time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.limit, g.queue, g.wait = max(limit, 0), max(queue, 0), max(wait, 0)
	g.admit()
}

// TryEnter takes a permit if one is free and nobody waits for it.
func (g *Gate) TryEnter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.waiting > 0 || !g.free() {
		return false
	}
	g.running++
	return true
}

// Enqueue takes a permit or puts the ticket into the queue, in the turn of key. It reports
// false if the queue is full. Only where it reported true must Wait be called, until it
// returns Entered, Expired, Refused or Cancelled; or Cancel. The ticket must not be in a
// queue already.
func (g *Gate) Enqueue(t *Ticket, key string, now time.Time) bool {
	t.prepare()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.waiting == 0 && g.free() {
		g.running++
		t.join(g, granted)
		t.tell()
		return true
	}
	if g.waiting >= g.queue && !g.makeRoom(key) {
		return false
	}
	t.expires = now.Add(g.wait)
	t.join(g, queued)
	g.append(t, key)
	return true
}

// Leave gives a permit back and passes it to whoever is next.
func (g *Gate) Leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.running == 0 {
		panic("limit: a permit was given back twice")
	}
	g.running--
	g.admit()
}

// Load returns how many permits are out and how many tickets wait.
func (g *Gate) Load() (running, waiting int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.running, g.waiting
}

// Room says whether TryEnter would succeed and, if not, whether the queue has a place, if only
// for a key that has none waiting yet.
func (g *Gate) Room() (free, place bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.waiting == 0 && g.free(), g.waiting < g.queue || g.longest(2) != nil
}

func (g *Gate) free() bool { return g.limit == 0 || g.running < g.limit }

// admit hands the free permits out in turn.
func (g *Gate) admit() {
	for g.waiting > 0 && g.free() {
		l := g.turn
		t := l.first
		g.turn = l.next
		g.remove(t)
		g.running++
		t.state = granted
		t.tell()
	}
}

// makeRoom frees a place for a ticket of key, if another key has at least two more waiting:
// its latest is refused.
func (g *Gate) makeRoom(key string) bool {
	mine := 0
	if l := g.lines[key]; l != nil {
		mine = l.n
	}
	l := g.longest(mine + 2)
	if l == nil {
		return false
	}
	t := l.last
	g.remove(t)
	t.state = refused
	t.tell()
	return true
}

// longest returns the longest line if it has at least so many waiting, and there is a queue.
func (g *Gate) longest(atLeast int) *line {
	var longest *line
	for l, i := g.turn, 0; i < len(g.lines); l, i = l.next, i+1 {
		if l.n >= atLeast && (longest == nil || l.n > longest.n) {
			longest = l
		}
	}
	if g.queue == 0 {
		return nil
	}
	return longest
}

// append puts t at the end of its key's line; a new line gets the last turn.
func (g *Gate) append(t *Ticket, key string) {
	l := g.lines[key]
	if l == nil {
		l = g.newLine(key)
	}
	t.line, t.prev, t.next = l, l.last, nil
	if l.last != nil {
		l.last.next = t
	} else {
		l.first = t
	}
	l.last = t
	l.n++
	g.waiting++
}

func (g *Gate) newLine(key string) *line {
	l := g.spare
	if l != nil {
		g.spare = l.next
	} else {
		l = &line{}
	}
	*l = line{key: key}
	if g.lines == nil {
		g.lines = map[string]*line{}
	}
	g.lines[key] = l
	if g.turn == nil {
		l.next, l.prev = l, l
		g.turn = l
		return l
	}
	l.next, l.prev = g.turn, g.turn.prev
	l.prev.next, l.next.prev = l, l
	return l
}

// remove takes t out of its line, wherever it stands; an emptied line leaves the circle.
func (g *Gate) remove(t *Ticket) {
	l := t.line
	if t.prev != nil {
		t.prev.next = t.next
	} else {
		l.first = t.next
	}
	if t.next != nil {
		t.next.prev = t.prev
	} else {
		l.last = t.prev
	}
	t.line, t.prev, t.next = nil, nil, nil
	l.n--
	g.waiting--
	if l.n > 0 {
		return
	}
	delete(g.lines, l.key)
	if l.next == l {
		g.turn = nil
	} else {
		l.prev.next, l.next.prev = l.next, l.prev
		if g.turn == l {
			g.turn = l.next
		}
	}
	*l = line{}
	if len(g.lines) < maxSpare {
		l.next, g.spare = g.spare, l
	}
}
