// Package server owns the wiring of one running gateway: it opens storage, ledger and
// listeners, builds generations from configuration and policy, swaps them, follows changes on
// disk, and stops everything in one visible order.
//
// It must not decide anything about a request: what a request meets is built here and lives
// in the packages below.
package server
