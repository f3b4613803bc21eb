package route

import (
	"time"

	"github.com/interlock-gateway/interlock/gateway/route/limit"
)

// Group is an ordered pool of channels with one admission per minute.
type Group struct {
	Name     string
	Index    int // in the configuration
	RPM      *limit.Window
	Channels []*Channel
}

// Serves reports whether a channel of the group serves the model.
func (g *Group) Serves(model string) bool { panic("skeleton") }

// Channel is one way into one account.
type Channel struct {
	Name        string
	Group       *Group
	Provider    string // name
	Account     string // name; the channel's own where none is given
	Region      string // "" = not said
	Priority    int
	Weight      int
	Fingerprint string // of the credential
	Gate        *limit.Gate
}

// Timeouts are the clocks of an attempt. Zero FirstByte or FirstOutput: none of its own, the
// request's deadline less the reserve holds.
type Timeouts struct{ Connect, FirstByte, FirstOutput, Idle time.Duration }

// Route is one model on one channel. The same *Route is the same route within a Table;
// Same compares over tables.
type Route struct {
	Channel  *Channel
	Model    string // public name
	Upstream string // the provider's name of it
	// Mapped: the channel answers with another model than it is asked for. An upstream_model
	// that the operator declared counts as the same model.
	Mapped bool
}

// String returns group/channel/model.
func (r *Route) String() string { panic("skeleton") }

// Timeouts returns the clocks for a streamed or a plain answer.
func (r *Route) Timeouts(stream bool) Timeouts { panic("skeleton") }

// Availability says whether the route may be used now. It changes nothing and allocates
// nothing.
func (r *Route) Availability(now time.Time, ask Ask) Availability { panic("skeleton") }

// Enter looks again at the moment an attempt starts, with the channel's Gate already entered,
// and fills p with the right to make it; of a half-open circuit, with a probe's permit. p holds
// nothing unless the returned state is usable.
func (r *Route) Enter(p *Permit, now time.Time, ask Ask) Availability { panic("skeleton") }

// CircuitWord returns the state of the route's circuits: closed, half_open or open.
func (r *Route) CircuitWord(now time.Time) string { panic("skeleton") }
