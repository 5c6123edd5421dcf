// Package mixes generates scenarios that combine features: types of jobs, gangs, budgets,
// priorities, topology, devices, ports, taints, failures and bindings. Each scenario uses a
// random subset of the features, so that pairs and triples of them meet in small clusters.
//
// It never runs a scenario. Generate is a pure function of the seed. Shrink reduces a
// scenario while a condition of the caller holds.
package mixes
