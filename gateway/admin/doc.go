// Package admin owns the operators' side: the admin API, health and metrics, on a listener of
// its own.
//
// It shows what the other packages know and passes on what an operator wants of them: every
// change is kept with who made it, when, why, and what was there before. It must not decide
// anything about a request, hold state that a restart would lose, or hand out a credential: a
// caller's key leaves it once, in the answer that made it.
package admin
