// Package preempt finds the best place for work that fits nowhere: it lays out
// options (a node, a choice of device groups) and their candidates, asks the
// policy whom to evict and which option is best, checks every answer, and
// keeps only victims that are really needed.
//
// The host's rules hold whatever a policy answers: victims are candidates of
// the option, of strictly lower priority, never of the asking job, listed
// once; nobody goes whose job spares it, or alone if its job goes whole, or
// beyond what a strict disruption budget has left, be that instances or evictions in
// a window (then the policy is asked again when time allows more); after they are gone the one
// Fits holds; and redundant victims are spared in reverse order of picking.
//
// Victims are on the node itself. They are elsewhere too where a job goes whole
// (guard.go) and where separation between groups asks for it (Rules.Elsewhere).
//
// Of a policy that says which option it takes, and whom first, most is known without a
// question (prospects.go, foretell.go): it is asked about the nodes that may win.
//
// The package places nothing. Between evaluations a Finder keeps what it knows of
// nodes that have not changed (alike.go); no choice depends on it.
//
// For bindings an option is a member cluster (bindings.go): the same rules, and
// besides, what is cluster-scoped or asks for nothing is never a candidate. Policies
// that say so have elastic bindings shrunk (bindings_elastic.go), or room made on
// several clusters together (bindings_several.go), between which what bindings can
// do without is shared out (bindings_shared.go).
//
// core/scheduler calls it. A Finder serves one goroutine; it spreads the search
// over workers of its own and joins them before it returns. The result does not
// depend on their number.
package preempt
