// Package preempt finds the best place for work that fits nowhere: it lays out
// options (a node, a choice of device groups) and their candidates, asks the
// policy whom to evict and which option is best, checks every answer, and
// keeps only victims that are really needed.
//
// The host's rules hold whatever a policy answers: victims are candidates of
// the option, of strictly lower priority, never of the asking job, listed
// once; after they are gone the one Fits holds; and redundant victims are
// spared in reverse order of picking. It places nothing and keeps no state
// between evaluations.
//
// core/scheduler calls it. A Finder serves one goroutine; it spreads the search
// over workers of its own and joins them before it returns. The result does not
// depend on their number.
package preempt
