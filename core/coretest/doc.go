// Package coretest builds fixtures for the tests and benchmarks of core: readable
// jobs and nodes, and the clusters of the published measurements that the
// benchmarks repeat. Only tests import it.
package coretest
