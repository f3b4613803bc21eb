// Package upstream owns one HTTP/1.1 exchange with an upstream: its phases, clocks and
// abort, and the connections that a channel keeps.
//
// A [Pool] holds the connections of one channel; a [Call] is one exchange over one of
// them. One call is one send. The single exception stays inside the call: a connection
// from the pool that the peer had provably closed before it read any of the request is
// replaced by a fresh one, and only that is counted ([Stats].Redials).
//
// The package reports facts ([Error]: the transport's fact and what surely happened on
// the wire). It must not judge them: no failure class, no resend, no redirect, no waiting
// for capacity, no knowledge of any provider's format. It logs nothing.
package upstream
