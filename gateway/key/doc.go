// Package key owns the callers' keys: finding one by what a caller presented, in a time that
// says nothing about any key, and what it may ask for.
//
// It keeps digests only, never a key. It must not count requests, know groups beyond their
// names, or decide whether a budget exists.
package key
