// Package replicationtest holds the helpers that the tests below
// core/replication share: a state machine without Raft (Server), a cluster of
// nodes in one process and in virtual time (Cluster), random logs (History), and
// commands with every field set (Filler).
//
// Only tests import it. A Cluster must be used within testing/synctest.
package replicationtest
