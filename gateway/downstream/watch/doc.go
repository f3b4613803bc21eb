// Package watch owns the caller watch: it tells a running request that its caller has left,
// while nobody reads from the connection.
//
// An HTTP server does no I/O on a connection while a handler runs, so a caller that hangs up
// would go unnoticed until the answer is written. Two ways close that gap, behind one
// Listener:
//
//   - Kernel (Linux): one epoll set that asks for nothing but EPOLLRDHUP, edge-triggered. Each
//     accepted connection is registered once, below TLS; the epoll descriptor itself is parked
//     in Go's netpoller, so no thread and no timer waits. The socket is never read: pipelined
//     bytes stay where they are, and a FIN behind them is still seen.
//   - Read (anywhere): while a request runs, a goroutine reads one byte above TLS and keeps it
//     for the server's next read. It is blind behind a pipelined request.
//
// It must not decide what a caller's leaving means, parse HTTP, or write to a connection.
package watch
