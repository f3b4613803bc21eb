// Package failure owns the words for what can go wrong with an attempt: classes,
// response phases, facts about the wire, causes, actions and terminal reasons.
//
// It is pure: no I/O, no clock, no goroutine, and it imports nothing of ours. Every
// value prints as the word that config, ledger, metrics, logs and policies use; the
// numbers behind the words are not a contract and are never stored.
package failure
