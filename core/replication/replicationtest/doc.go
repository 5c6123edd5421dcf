// Package replicationtest holds the helpers that the tests below
// core/replication share: a cluster of nodes in one process and in virtual time
// (Cluster), a store of modules in memory (Modules), and objects.
//
// Only tests import it. A Cluster must be used within testing/synctest.
package replicationtest
