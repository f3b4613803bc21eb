// Package ledger owns the evidence: what was asked, which attempts were made for it, why
// each was made, how it ended and what it cost.
//
// A record is opened before an attempt's first byte leaves and closed exactly once. The
// request's path copies and queues; one writer goroutine encodes and commits groups.
// Everything that reads the ledger back (list, show, usage, export) is here too, and so
// is the one place that prints a record as JSON.
//
// It must not keep prompts, answers, keys, credentials or raw error bodies: there is no
// field for them. It decides nothing about requests.
package ledger
