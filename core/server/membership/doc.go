// Package membership manages the servers of one pool: how they bootstrap a cluster, join
// and leave it, are promoted to voters, replaced and upgraded.
//
// Gossip lists the members; Raft's configuration lists the servers of the cluster. On the
// leader, the reconciler makes the second follow the first, and autopilot promotes servers
// that are stable and removes servers that have failed for long. The package elects
// nothing and does not depend on scheduling.
//
// A Manager without Gossip is a cluster of one server; all methods still work. A Manager
// is safe for concurrent use.
package membership
