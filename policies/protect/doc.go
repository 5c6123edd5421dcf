// Package protect implements the policy "protect": an allocation is protected until
// it has run for a while, and a group loses only a limited number of its instances in
// one plan.
//
// It implements PriorityDelta only; victims among the others and nodes are chosen as
// by default. It only withholds candidates: every allocation that is evicted under it
// could be evicted without it. It requests a recheck at the nanosecond at which the
// next protection ends.
//
// README.md is for operators. A Policy retains its configuration and scratch memory,
// and nothing else between calls; it must be used by one goroutine at a time.
package protect
