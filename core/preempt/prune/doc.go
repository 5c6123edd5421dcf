// Package prune avoids work in a search for victims, without changing its result: it
// finds nodes that cannot become feasible, nodes and options that are equal to others,
// and nodes that cannot beat a solution found so far.
//
// It never calls a policy and never decides: it skips a node or an option only if the
// policy's answer could not change the result. core/preempt calls it; DESIGN.md there explains which of the parts
// applies when.
//
// NodeClasses and Reclaimable retain data about unchanged nodes between searches.
// Every value serves one goroutine, unless its comment allows more.
package prune
