// Package breaker owns what takes a route out of use because of what happened on it, and what
// lets it back in: circuits, cool-downs and isolations.
//
// A circuit counts failures that speak against what it stands for (its Key) and opens; a
// cool-down is a wait that a provider asked for; an isolation is a dead credential. Each has
// a lock of its own, taken only where something is wrong: the path of a healthy route is
// atomics and allocates nothing.
//
// The package has no clock: every method takes the time. It must not know what a request, a
// policy or a provider is, store anything, or decide where a request goes instead.
package breaker
