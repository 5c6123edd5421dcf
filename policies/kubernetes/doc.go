// Package kubernetes owns the policy named kubernetes: whom kube-scheduler would
// evict, and from which node, reproduced from its documented and measured
// behaviour, so that its users can compare before they switch.
//
// kube-scheduler removes every lower pod of a node and puts back as many as it
// can: those whose disruption budget is overrun first, and among them, and then
// among the others, the most important first, by priority and then by age. Here
// victims are picked in exactly the reverse order until the preemptor fits; the
// host then spares what is not needed, the last pick first. Where putting back one
// more never makes room, which is always, both come to the same victims.
//
// Nodes are chosen by ordered criteria: the fewest budgets overrun, the lowest of
// the highest priorities, the lowest sum of priorities, the fewest victims, the
// latest start of the most important victim, and where all are equal the first.
//
// Whether a preemptor may preempt at all, and that one with victims that have yet
// to leave evicts nobody else, is the host's business.
//
// It keeps its configuration and scratch memory; a Policy is used by one
// goroutine at a time.
package kubernetes
