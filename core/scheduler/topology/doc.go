// Package topology divides a cluster into the domains of topology keys, such as racks, and
// computes the least cost of work in a domain.
//
// Levels returns which groups of a job must share a domain. Partition returns the domains.
// A Pricer computes lower bounds, which core/scheduler/gang passes to the policy before it
// searches a domain. The package places nothing and never calls a policy. Its values belong
// to one evaluation.
package topology
