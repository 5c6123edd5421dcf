// Package prune avoids work in a search for victims, without changing its result: it
// finds nodes that cannot become feasible, nodes and options that are equal to others,
// and nodes that cannot be better than one that is known.
//
// It never calls a policy and never decides: what it skips is what the policy's answer
// could not change. core/preempt calls it; DESIGN.md there explains which of the parts
// applies when.
//
// NodeClasses and Reclaimable keep what they know of unchanged nodes between searches.
// Every value serves one goroutine, except where a method says otherwise.
package prune
