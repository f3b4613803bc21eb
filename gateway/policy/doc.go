// Package policy owns the policy host: it loads a bundle of Rego and data, refuses it unless
// everything about it holds, and answers the four decision points from it.
//
//	Load → Revision → Admission, Failure, Substitution, Replay
//
// A Revision is immutable: compiled, prepared and probed once, and then shared by every
// request that began while it was active. Decisions are memoised in it where the rules
// allow that. A decision that cannot be made is never an error alone: it comes with the
// fail-closed value of its point.
//
// The package must not act on a decision, know a route or a clock of a request, or hold
// text of a prompt, an answer or a secret. It is the only one that imports OPA. Policy can
// only narrow what the interlocks leave open: package recovery checks that, after this one.
package policy
