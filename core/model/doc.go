// Package model defines the data types of the scheduler: nodes, jobs, groups,
// allocations, evaluations, plans, claims, member clusters, bindings and
// assignments, and the resource vectors in which they are measured. Fits is the
// only test of whether a request fits on a node: ranking, preemption, the plan
// applier and the simulator call it with the same arguments.
//
// It never stores or schedules anything and does no I/O. Every other package of
// core imports it; it imports no other package of the project.
//
// Values are immutable once they are published to the state: to change one, change
// a copy. Nothing here locks.
package model
