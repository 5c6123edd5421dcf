// Package metrics measures one run of a scenario. A Collector receives the events of
// the engine in order of virtual time and returns the Metrics of the run, and the
// Series that reports draw. Definitions is the only place that defines the meaning
// and direction of each number.
//
// The package does not schedule, read state or use a clock: times are nanoseconds
// since the scenario's start. Integrals over time are exact 128-bit integers and
// every floating-point step has a fixed order, so equal runs return equal bytes on
// every machine. No call scans all nodes or allocations: its cost is proportional to
// the number of resources.
//
// core/sim calls it. A Collector must be used by one goroutine.
package metrics
