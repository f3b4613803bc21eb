// Package limit owns how much may happen at a time: the exact number of admissions in any
// minute (Window), and the number of attempts that run on a channel at once, with the queue
// before it (Gate).
//
// It must not know what a request, a channel or a policy is, nor start a goroutine. A timer
// exists only while somebody waits in a queue.
package limit
