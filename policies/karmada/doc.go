// Package karmada implements the policy "karmada": the preemption of bindings on
// member clusters by Karmada's proposal of binding priority and preemption, in a
// reading that satisfies its text, its flowchart, and the behaviour of Kubernetes
// with pods.
//
// On a cluster the lowest priorities are evicted first; among equals the one that
// started last, and among those the last name. Redundant victims are reprieved, the
// most important first. Clusters are ranked by the fewest victims, then by the lowest
// highest priority, then by the lowest sum, then by name. Two settings change these
// choices: the fewest victims regardless of their priorities, or clusters by priority
// before number.
//
// Two more settings go beyond the proposal and are off by default. With elastic, a
// binding that has minReplicas is shrunk by as many replicas as necessary before it
// is evicted. With multiCluster, a divided binding that no single cluster can hold is
// assigned to several clusters, or to none.
//
// For jobs on nodes version 1 of the rules of default applies, with a gap of 1: where victims
// could run instead does not count.
//
// A Policy holds its configuration and scratch memory and must be used by one
// goroutine at a time.
package karmada
