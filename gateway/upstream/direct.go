package upstream

import (
	"syscall"
	"time"
)

// direct is the way to a plain TCP socket by its descriptor, where the operating system lets
// go of the usual one. It asks, sends and waits for the answer's first bytes within one wait
// of the poller. That saves the read that finds nothing before each wait, and a connection on
// which nothing comes holds no buffer while it waits.
//
// The poller forgets what it has seen when such a wait begins; what comes after is not lost.
// So the question whether a connection is quiet is put within the wait, before the request is
// written: a FIN that came earlier is seen by the question, a later one by the wait.
type direct struct {
	raw  syscall.RawConn
	step func(fd uintptr) bool // made once; false = wait until there is something to read

	out     []byte    // a request to be written first
	sentAt  time.Time // when all of it was
	sendErr error
	stale   bool // the connection was not quiet, and nothing was written

	n   int // what was read
	err error
}

// fill writes what is to be written first, and reads once, to the end of what is in the
// buffer. It returns 0 and nil where somebody has to look at what became of the request.
func (d *direct) fill() (int, error) {
	d.n, d.err = 0, nil
	if err := d.raw.Read(d.step); err != nil {
		return 0, err
	}
	return d.n, d.err
}

// begin makes b the request that the next wait writes first.
func (d *direct) begin(b []byte) { d.out, d.sendErr, d.stale, d.sentAt = b, nil, false, time.Time{} }

// forget lets go of the request.
func (d *direct) forget() { d.out = nil }
