// Package bound computes lower bounds on the cost of decisions and of whole runs, so that
// a policy can be compared with the best possible answer instead of with other policies.
//
// Solve finds the cheapest answer to one decision over the whole cluster by branch and
// bound. If the search is cut off, it returns a lower bound that is still valid. All
// arithmetic is on integers, so that rounding never invalidates a bound.
//
// The package never takes part in a decision: servers and schedulers must not import it,
// and a test of the repository enforces that. DESIGN.md states the relaxations and why
// they are valid.
//
// A Recorder belongs to one run and one goroutine. Solve modifies no argument and may be
// called concurrently.
package bound
