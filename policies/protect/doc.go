// Package protect owns the policy named protect: work that has started is left
// alone until it has run for a while, and a group loses only so many of its
// instances in one plan.
//
// It answers PriorityDelta alone, and leaves to default whom of the others to
// evict and where. It only ever withholds candidates: what is evicted under it
// could be evicted without. It asks to be called again at the very nanosecond at
// which the next protection ends.
//
// README.md is for operators. A Policy keeps its configuration and scratch
// memory, and nothing between calls; it is used by one goroutine at a time.
package protect
