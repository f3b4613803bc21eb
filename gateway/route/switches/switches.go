// Package switches owns the kill switches that are set: what they are about, until when, and
// how the path of a request learns of them without looking anything up while none is set.
//
// A Board holds an immutable Set behind one pointer and keeps it in storage; a change wakes
// whoever waits on Changed. It must not know routes or requests: who owns something that can
// be switched off asks the Set once and remembers the answer for as long as it is the same Set.
package switches
