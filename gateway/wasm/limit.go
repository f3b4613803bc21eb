package wasm

import (
	"math"
	"time"
)

const (
	mebibyte = 1 << 20
	pageSize = 64 << 10
	// mostPages are those of 4 GiB.
	mostPages = 1 << 16
)

// Limits are what an operator allows a plugin. A zero stands for the default.
type Limits struct {
	ModuleSize  int64         // bytes of the module; 8 MiB
	Memory      int64         // bytes of each instance's memory; 64 MiB
	CallTimeout time.Duration // 100 ms; sets the budget of work of a call, see Budget
}

func (l Limits) withDefaults() Limits {
	if l.ModuleSize <= 0 {
		l.ModuleSize = 8 * mebibyte
	}
	if l.Memory <= 0 {
		l.Memory = 64 * mebibyte
	}
	l.Memory = min(max(l.Memory, pageSize), 4<<30)
	if l.CallTimeout <= 0 {
		l.CallTimeout = 100 * time.Millisecond
	}
	l.CallTimeout = min(l.CallTimeout, time.Minute)
	return l
}

// smaller lowers the limits to what the manifest wants, where that is less.
func (l Limits) smaller(m ManifestLimits) Limits {
	if m.Memory > 0 {
		l.Memory = min(l.Memory, int64(m.Memory))
	}
	if m.CallTimeout > 0 {
		l.CallTimeout = min(l.CallTimeout, time.Duration(m.CallTimeout))
	}
	return l.withDefaults()
}

func (l Limits) pages() uint32 { return uint32(l.Memory / pageSize) }

// UnitsPerMillisecond is how much work a millisecond of CallTimeout buys. Compiled code works
// off about 200,000 units in a millisecond: BenchmarkUnits measures it, over a scanner of bytes
// in Go, a tight loop and a copy. It is a budget and not a clock, so the same call always costs
// the same, however busy the machine is.
const UnitsPerMillisecond = 200_000

const (
	timePerMebibyte = 150 * time.Millisecond // of input, beside CallTimeout
	wallFactor      = 10                     // the wall clock is the backstop behind the budget
	startTime       = 2 * time.Second        // what a start may cost at least
)

// allowance is what a call with an input of n bytes may take.
func (l Limits) allowance(n int) time.Duration {
	return l.CallTimeout + time.Duration(float64(timePerMebibyte)*float64(n)/mebibyte)
}

func units(d time.Duration) int64 {
	return int64(math.Ceil(d.Seconds() * 1000 * UnitsPerMillisecond))
}

// Budget returns the units that a call with an input of n bytes may use, and the wall-clock
// time after which it is stopped though it has some left.
func (l Limits) Budget(n int) (budget int64, wall time.Duration) {
	a := l.withDefaults().allowance(n)
	return units(a), wallFactor * a
}

// maxResult is the largest result of a call with an input of n bytes.
func maxResult(n int) uint64 { return 8*uint64(n) + mebibyte }
