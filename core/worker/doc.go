// Package worker processes evaluations: a Worker has the scheduler plan an evaluation on a
// state that is new enough, submits the plans, and writes the results. A Feed is the way
// back: it passes what was applied to the state on to the broker and to the blocked
// evaluations.
//
// It makes no placement decisions. Servers run several workers each, in a Pool. The
// simulator steps one through virtual time with the same code.
//
// A Worker and its scheduler are used by one goroutine, and so is a Feed. A Pool is safe for
// concurrent use.
package worker
