// Package gpushare measures how much of the GPUs of a cluster schedulers allocate before
// fragments are left that no task can use, as in the evaluation of fragmentation gradient
// descent (Weng et al., "Beware of Fragmentation", USENIX ATC 2023). Tasks arrive in random
// order and never end, until they have requested more GPUs than the cluster has. Nothing is
// evicted.
//
// A GPU is a device group of 1,000 units. Nodes, requests and the check that a request
// fits are those of core/model; the scores of best fit and of fragmentation gradient
// descent are this package's. The scheduler "cede" is the scheduler and the applier of a
// server. The package starts no servers and reads no clock: the same configuration produces
// the same result. cmd/internal/benchcli calls Measure, which may be called concurrently.
package gpushare
