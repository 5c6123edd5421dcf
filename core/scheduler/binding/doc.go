// Package binding plans evaluations of bindings: it assigns replicas to member
// clusters.
//
// A binding that fits is assigned in full or not at all. If it does not fit,
// assignments of other bindings are evicted from one cluster, or from several if
// the policy allows it, and their capacity is claimed. A later evaluation assigns
// the binding once the claimed capacity is free: capacity on a member cluster
// never counts as free before its agent has reported it so.
//
// Plan is a pure function of its input. It may be called concurrently.
package binding
