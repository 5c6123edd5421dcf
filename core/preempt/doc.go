// Package preempt finds the best place for work that fits nowhere: it lays out
// options (a node, a choice of device groups) and their candidates, asks the
// policy whom to evict and which option is best, checks every answer, and
// keeps only victims that are really needed.
//
// The host's rules hold whatever a policy answers: victims are candidates of
// the option, of strictly lower priority, never of the asking job, listed
// once; nobody goes whose job spares it, or alone if its job goes whole, or
// beyond what a strict disruption budget has left; after they are gone the one
// Fits holds; and redundant victims are spared in reverse order of picking.
//
// Victims are on the node itself. They are elsewhere too where a job goes whole
// (guard.go) and where separation between groups asks for it (Rules.Elsewhere).
//
// The package places nothing and keeps no state between evaluations.
//
// For bindings an option is a member cluster (bindings.go): the same rules, and
// besides, what is cluster-scoped or asks for nothing is never a candidate.
//
// core/scheduler calls it. A Finder serves one goroutine; it spreads the search
// over workers of its own and joins them before it returns. The result does not
// depend on their number.
package preempt
