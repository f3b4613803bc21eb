// Package json reads and writes JSON inside a plugin: a validating scanner over the bytes
// themselves, and functions that append to a slice. It owns JSON's grammar and nothing of any
// format written in it. It uses no reflection, keeps no tables of names and, unless a function
// says so, allocates nothing: a guest that links encoding/json is a third larger and seven times
// slower.
//
// Parse once; all that is reached from there is valid. Values alias the input.
package json
