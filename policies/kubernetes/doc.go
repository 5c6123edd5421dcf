// Package kubernetes implements the policy "kubernetes": the victims and the node
// that kube-scheduler would choose, reproduced from its documented and measured
// behaviour, so that its users can compare before they switch.
//
// kube-scheduler removes every pod of lower priority from a node and reprieves as
// many as it can: first those that overrun a disruption budget, then the others, each
// from the most important to the least, by priority and then by age. This policy
// picks victims in exactly the reverse order until the preemptor fits; the host then
// reprieves redundant victims, the last pick first. As reprieving one more pod never
// frees capacity, both produce the same victims.
//
// Nodes are ranked by ordered criteria: the fewest overrun budgets, the lowest
// highest priority, the lowest sum of priorities, the fewest victims, the latest
// start of the most important victim, and the first node among equals.
//
// The host decides whether a preemptor may preempt at all. It also ensures that a
// preemptor whose victims are still stopping evicts no others.
//
// A Policy holds its configuration and scratch memory and must be used by one
// goroutine at a time.
package kubernetes
