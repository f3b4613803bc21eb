// Package tool owns what people do with policy bundles away from a gateway: format them, show
// the matrix and a difference, decide recorded requests again, begin a bundle.
//
//	Format, Scaffold, JUnit, Matrix, Difference, Replay
//
// What is true of a bundle, package policy finds out: this one reads, counts and writes for
// people and programs. It must not decide anything by itself, know a running gateway, or be on
// a request's path.
package tool
