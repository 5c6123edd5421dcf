// Package protect holds the mechanisms that protect running allocations although their
// priority would allow an eviction: disruption budgets, tolerations, all-or-none jobs, and
// the evictions per group that a plan already contains.
//
// It never chooses victims. core/preempt calls it for searches; core/scheduler and
// core/sim call it to count violations.
//
// Values without a comment of their own serve one goroutine.
package protect
