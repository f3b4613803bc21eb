// Package fault owns the fault language and the scripted providers that
// speak it: OpenAI-compatible servers on raw TCP sockets that answer, stall,
// cut, lie and recover exactly as a few readable lines say. The demo, the
// script tests, the reported cases and the drills run against them.
//
// It must not know anything of the gateway that stands before it: no config,
// no failure classes, no routes. It imports nothing of ours.
//
// The language is described in README.md beside this file; every example
// there is parsed by a test.
package fault
