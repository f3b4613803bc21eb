// Package flow owns one request's life: admission, plan, the recovery loop, release and
// settling, and with it both commitments. The status is committed when a heartbeat had to be
// sent: another status can no longer be given, another attempt can. Output is committed when
// meaningful output, or the whole of a held-back answer, goes downstream: no attempt may
// follow.
//
// It is the one place where the parts meet: the policy chooses, the recovery machine holds
// the choice against the interlocks, the route says what can be used, an adapter translates,
// the transport carries, the ledger keeps the evidence. flow must not read or write a
// caller's connection, know a provider's format or name, or decide what may follow a failure
// by itself.
//
// An Exchange is driven by one goroutine, the one of the caller's connection, first by the
// front's handler and, once a stream has begun, by its body writer. Other goroutines may
// only tell it that its caller has gone or that the gateway is shutting down.
package flow
