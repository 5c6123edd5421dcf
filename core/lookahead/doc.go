// Package lookahead predicts the consequences of an eviction: it continues from the
// snapshot of an evaluation in virtual time, with the broker, worker, scheduler and planner of the
// server, until every evicted instance runs again, for Horizon at most. Policies read the
// results as columns (policy.LookAheadColumns).
//
// A play uses the contents of the snapshot: evaluations that are pending or blocked, the ends
// of allocations of jobs that state a duration, and kill timeouts. Nothing else arrives or
// fails, and bindings of member clusters are not planned. The policies are those of the
// evaluation; their own look-ahead is off inside a play. So the result is a function of the
// snapshot, the evaluation, the plan and the policies, and a decision that is made again
// on the same snapshot reads the same values.
//
// The package writes to forks of the snapshot alone. core/server, core/sim and
// core/counterfactual make their schedulers with NewScheduler. A Player serves one
// goroutine.
package lookahead
