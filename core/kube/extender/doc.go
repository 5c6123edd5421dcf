// Package extender answers kube-scheduler as a scheduler extender: of the nodes
// that it proposes for preemption the active policy chooses one, and whom to evict
// there; of others the scheduler says whether a pod may go there, and how good that
// is. It owns what is known of the Kubernetes cluster meanwhile: the objects that
// requests carry, and those that it is fed.
//
// It never blocks scheduling: where it does not know enough, or a policy is at
// fault or takes too long, what kube-scheduler proposed stands, and the log and
// the metrics say so. It evicts nobody itself, and binds only through a Binder.
//
// core/api calls it for each request. An Extender is safe for concurrent use.
package extender
