// Package trial owns the comparison of a candidate policy with the one in use: which of the two
// decides for a key, and what the other would have said.
//
//	flow → the four points → backlog → one goroutine asks the other revision → differences
//
// In shadow the candidate decides nothing. As a canary it decides for a stable share of the keys,
// by a hash of their names, and the revision in use is asked beside it. The comparison happens
// after the decision has gone its way: a candidate that is slow or never ends costs comparisons,
// which are dropped and counted, and no request. The package must not load a bundle, promote
// one, or hold more than the facts that policies are given.
package trial
