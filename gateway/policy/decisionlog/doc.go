// Package decisionlog owns the decision log: every policy decision as one event in the format
// of OPA's decision logs, to the gateway's own log, a file or a server that takes OPA's.
//
//	flow → Add → backlog → one goroutine → console, file, batches → one goroutine → POST …/logs
//
// An event goes its way after the decision has gone its own: nothing here may hold a request up
// or fail it. What a slow disk or server leaves no room for is dropped, counted and reported. The
// package must not decide anything, change what was decided, or hold more than the facts that a
// policy is given: there is no prompt, no answer and no secret in them.
package decisionlog
