// Package sim plays scenarios: it runs the broker, worker, scheduler, preemption and
// planner of the server unchanged, in virtual time and on one goroutine. It owns the
// order of events at an instant, the ends of allocations, and the record of the run.
// It makes no placement decisions, so that its results hold for servers.
//
// cmd calls Play. The same file, policy and seed produce identical bytes on every
// machine, although the scheduler's search for victims may use several cores.
package sim
