// Package config owns the configuration: the types of the whole file, reading it (YAML or
// JSON, with the position of every key), filling in what is left out, finding every fault in
// it at once, the start without a file from the environment, and telling when a file that it
// depends on has changed.
//
// A Config is a value. Once loaded nobody changes it; a reload makes another one. The
// comments of the types' fields are the descriptions in the JSON Schema that [Schema] prints,
// and their tags hold what the loader enforces:
//
//	yaml      the key
//	default   the value when the key is left out, written as in the file
//	required  "true": the key may not be left out
//	min, max  bounds of a number, a duration or a size, the bounds themselves included
//	enum      the allowed words, separated by |
//	is        what a string must be: see formats
//	keys      what a mapping's keys must be, likewise
//	literal   "ok": a secret that may well be written out
//	soon      the feature that is not built yet: a file that asks for it gets a warning; "-"
//	          where the warning about another key of the same mapping covers this one
//
// The package starts nothing, opens no listener, compiles no policy and knows no model's
// price: what can only be judged with the built-in catalogue is judged in package catalog.
// No error, warning or printed Config ever holds the value of a secret or of an environment
// variable.
package config
