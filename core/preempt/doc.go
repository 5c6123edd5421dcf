// Package preempt finds the best node for a group that fits nowhere, and the
// allocations to evict there. It lays out options (a node, and a choice of device
// groups) with their candidates, calls the policy to select victims and to score
// options, verifies every answer, and reprieves victims that are not needed.
//
// These rules hold for any answer of a policy:
//
//   - Victims are candidates of their option, of strictly lower priority, never of the
//     preemptor's own job, each listed once.
//   - No victim is protected by its job's toleration, and an all-or-none job is evicted
//     whole, except for instances above its minimum.
//   - No strict disruption budget is overrun. If a policy's choice would overrun one, it
//     is called again without the candidates in question.
//   - The group fits, by model.Fits, once the victims have left.
//   - Redundant victims are reprieved in reverse order of picking.
//
// Victims run on the node itself. Victims on other nodes occur only for all-or-none jobs
// and if separation between groups requires them (Rules.RemoteConflicts).
//
// The package never changes the state: it returns a Choice, and core/scheduler, its
// caller, puts it into a plan.
//
// A Finder serves one goroutine. It spreads a search over workers of its own and waits
// for them before it returns. The result does not depend on their number. Between
// searches a Finder retains data about unchanged nodes; no result depends on it.
//
// DESIGN.md shows how the sub-packages fit together and the cost of each path.
package preempt
