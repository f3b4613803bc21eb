// Package jsonx reads and edits JSON by its bytes: a validating reader that walks a document
// without allocating, strings, numbers, the canonical form, and a list of edits that leaves every
// other byte as it came.
//
// The grammar is RFC 8259, to the letter but for one thing: that strings are valid UTF-8 is not
// checked, since bytes that pass through are not ours to judge. Nesting is limited to MaxDepth.
// The package knows nothing of what the documents mean.
package jsonx
