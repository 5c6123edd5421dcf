// Package kubernetes is a plugin for kube-scheduler: its PostFilter lets a policy of cede
// choose the evictions, in the process of kube-scheduler and without HTTP. The policies
// and modules are those of `cede kubernetes`.
//
// The plugin contains kube-scheduler's own DefaultPreemption, which finds the nodes on
// which evictions would help, checks whether the pod may preempt, and evicts. In between,
// where kube-scheduler calls extenders, the policy chooses a node and victims among all
// pods of these nodes. The state is that of kube-scheduler's own snapshot, so it is never
// late. The choice is checked with kube-scheduler's filters before it is used; if the
// policy fails or the pod would not fit, the proposal of DefaultPreemption stands.
//
// It is a module of its own, because k8s.io/kubernetes is no dependency of cede.
// cmd/kube-scheduler is kube-scheduler with the plugin. kube-scheduler calls PostFilter of
// a plugin in one goroutine.
package kubernetes
