// Package extender implements a scheduler extender for kube-scheduler. For preemption
// the active policy chooses a node and its victims among the proposed nodes. For filter
// and prioritize the scheduler returns the feasible nodes and their scores. The package
// owns a cache of the Kubernetes cluster: objects from requests, and objects that a
// client feeds.
//
// It never blocks scheduling. If the cache lacks required objects, or the policy fails or exceeds the
// deadline, the proposal of kube-scheduler stands, and the log and the metrics report
// the reason. The package evicts no pods itself, and binds pods only through a Binder.
//
// core/api calls it for each request. An Extender is safe for concurrent use.
package extender
