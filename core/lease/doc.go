// Package lease owns the book of a member cluster that several pools share: which
// room it keeps for which pool, and under which number work of a pool may start.
//
// Pools do not see one another's states. Each of them believes that the cluster is
// its own, so two of them would give out the same room, or evict one another's work
// in turn for ever. The cluster is the one place that both see. So its agent grants
// leases: room goes to one pool at a time, who is of strictly higher priority may
// have what others hold revoked, and whoever works under a number that is not the
// newest is turned away.
//
// The book decides nothing else: which cluster, and who of a pool's own leaves, is
// the business of the pool's scheduler and its policy. It starts no goroutine, reads
// no clock and writes no file; the agent calls it and keeps what Leases returns.
//
// A Book is for one goroutine. core/agent/member keeps it.
package lease
