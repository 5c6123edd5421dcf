// Package lease manages the leases of a member cluster that several pools share:
// how much capacity it reserves for each pool, and under which number a pool's
// workload may start.
//
// Pools do not share state. Each of them assumes that the cluster is its own, so
// two of them would use the same capacity, or evict each other's workload in turn.
// The cluster is the only place that observes both. So its agent grants leases:
// capacity is reserved for one pool at a time, a pool of strictly higher priority
// may have the leases of others revoked, and a request under an outdated number is
// refused.
//
// The manager decides nothing else: the choice of a cluster, and of victims within
// a pool, is made by the pool's scheduler and its policy. It starts no goroutine,
// reads no clock and writes no file: the agent calls it and stores the result of
// Leases.
//
// A Manager belongs to one goroutine. core/agent/member uses it.
package lease
