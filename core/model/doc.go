// Package model owns the nouns of the scheduler: nodes, jobs, groups,
// allocations, evaluations, plans, claims, member clusters, bindings and what is
// assigned to them, and the resource vectors they are measured in. It owns the
// one answer to "does this fit on that node": Fits, which ranking, preemption,
// the plan applier and the simulator all call with the same arguments.
//
// It never stores, schedules or talks to anybody. Every other package of core
// imports it; it imports nothing of ours.
//
// Values are immutable once they are published to the state: change a copy.
// Nothing here locks.
package model
