// Package sim plays scenarios: the broker, worker, scheduler, preemption and
// planner that servers run, in virtual time, on one goroutine. It owns time
// (what happens at an instant and in which order), the ends of work, and what is
// told about a run; it decides nothing about placement, so a simulation is worth
// believing.
//
// cmd calls Play. Same file, policy and seed give the same bytes, whatever the
// machine; the scheduler's search for victims may use several cores.
package sim
