// Package scheduler turns one evaluation and one snapshot into a plan.
//
// Process compares a job with its allocations (reconcile), finds feasible nodes for
// the missing instances (feasible), ranks those with enough free capacity (rank),
// calls core/preempt for victims if there are none, and explains the instances that
// it could not place (placement). Jobs that are placed all at once have a
// bounded search (gang), bindings a path of their own (binding). DESIGN.md shows
// how the packages fit together.
//
// It is a pure function of evaluation, snapshot, policies and time. It never writes
// to the store: a plan is a proposal that core/planner verifies against newer state.
//
// core/worker calls it, in servers and in the simulator. A Scheduler serves one
// goroutine at a time. Its buffers and its cache of failed groups are kept between
// evaluations and never change a plan; the explanation of a cached failure may
// describe nodes as they were when they were last examined.
package scheduler
