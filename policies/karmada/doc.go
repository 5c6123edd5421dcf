// Package karmada owns the policy named karmada: which bindings leave which
// member cluster, as Karmada's proposal of binding priority and preemption has
// it, in one reading that satisfies its text, its flowchart, and what Kubernetes
// does with pods.
//
// A cluster loses the lowest priorities first; of equals what started last, and
// of those the name that comes last. What is not needed is spared, the most
// important first. Among clusters the fewest victims win, then the lowest of the
// highest priorities, then the lowest sum, then the name. Configuration turns
// either choice round: the fewest victims whatever their priorities, or clusters
// by priority before number.
//
// Two more settings go beyond the proposal, and are off: with elastic a binding that
// has minReplicas is shrunk by as many replicas as are needed before it is evicted,
// and with multiCluster a divided binding that no single cluster can be made to hold
// gets room on several together, or on none.
//
// It says nothing of jobs on nodes: there default decides, with a gap of 1.
//
// It keeps its configuration and scratch memory; a Policy is used by one
// goroutine at a time.
package karmada
