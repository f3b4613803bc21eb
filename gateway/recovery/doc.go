// Package recovery owns the decision whether, where and when a further attempt may start:
// a bounded state machine and the ten interlocks that nothing can switch off.
//
// It is pure. It has no I/O, no clock and no randomness of its own: time, jitter, the state
// of every candidate and the policy's verdict are arguments, so that every input, hostile
// policies included, can be tried in a test. It imports nothing of ours but failure.
//
// One Machine belongs to one request and is driven by one goroutine:
//
//	First → Start → Close → (Open → policy) → Decide → Start → Close → …
//
// Policy is asked between Open, which says what the interlocks leave, and Decide, which
// takes the verdict and holds it against the interlocks again. Start is the last look, at
// the moment the attempt begins, after any queue and backoff.
package recovery
