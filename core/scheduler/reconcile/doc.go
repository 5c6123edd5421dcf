// Package reconcile compares the groups of a job with its allocations. It stops
// allocations that are surplus, lost or misplaced, updates in place those that can
// be, and returns the instances that are missing.
//
// Groups of service and batch jobs are compared by index (counted.go), those of
// system jobs by node (system.go). Decisions go into a proposal.Plan; nothing is
// placed here. A Reconciler serves one evaluation on one goroutine.
package reconcile
