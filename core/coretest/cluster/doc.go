// Package cluster runs servers on replicated logs in one process, for tests: logs,
// snapshots, modules and the network are in memory. A test states how many members there
// are and how a server is made from the log of one; the package opens and bootstraps the
// logs, runs the servers, stops and restarts members on what is left of their disks, and
// stops everything at the end.
//
// It works in real time, and in virtual time within a bubble of testing/synctest. It
// imports no package above replication, so that tests inside of package server use it as
// well. Only tests import it.
//
// A Cluster is used by one goroutine, the test's. Members may be read concurrently.
package cluster
