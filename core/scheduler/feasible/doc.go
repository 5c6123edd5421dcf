// Package feasible decides whether a node may take an instance of a group, free
// capacity aside.
//
// NodeChecker answers from properties of the node alone: datacenter, taints,
// drivers, constraints, devices. Rules answers from where other allocations are:
// distinct hosts and properties, spread, co-location, anti-affinity, and ranks
// nodes by affinity and spread. Verifier checks the same rules again when a plan
// is committed.
//
// Nothing here proposes or evicts. Values belong to one evaluation and one
// goroutine, except that Rules may be read by concurrent search workers once
// Prepare has returned.
package feasible
