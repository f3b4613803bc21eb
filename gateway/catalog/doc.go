// Package catalog owns what is known of models: the built-in catalogue with the operator's
// additions, capabilities, prices and limits, what an answer cost, and the contracts of
// aliases with the question whether a model satisfies one.
//
// A Catalog is a value, made once for a configuration and read from then on. It knows no
// channel's state and decides nothing: it says what is declared of a model, and what of a
// contract it lacks.
package catalog
