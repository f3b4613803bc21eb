// Package route owns the ways into providers: groups, channels and routes, the order in which
// a request tries them, and whether one may be used right now. Below it, breaker owns circuits,
// cool-downs and isolations, limit owns admissions and concurrency, switches the kill switches.
//
// A Table is one immutable generation of groups and channels, made from the configuration and
// the catalogue. What was learnt about them lives in the State, which outlives generations: a
// part that did not change carries its circuits, permits and history over, one that is gone is
// forgotten.
//
// The package must not start an attempt, wait, or decide whether another attempt is safe: it
// says what there is and how it is, flow and recovery do the rest.
package route
