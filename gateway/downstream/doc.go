// Package downstream owns the callers' side of the gateway: the listener and its TLS, the
// connections, the heads and bodies of requests, the caller watch, and the bytes of every
// answer. It writes what package flow decides, and answers by itself only what never becomes
// a request: hostile or unfinished HTTP, a wrong key, an unknown path, a body too large, a
// fault of the gateway's own.
//
// It must not choose a route, read a body's JSON, start an attempt or change an answer; no
// type of the HTTP library leaves it.
//
// One goroutine serves one connection, for reading, running and writing; the watch's
// goroutine is the only other one that touches a running request, through PeerGone.
package downstream
