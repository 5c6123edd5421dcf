// Package metrics owns what one run of a scenario is measured by: a Collector
// that the engine feeds in order of virtual time, the Metrics it ends in, the
// Series that reports draw, and Definitions, the one place that says what each
// number means and which direction is better.
//
// It never schedules, reads no state and knows no clock: times are nanoseconds
// since the scenario's start. Integrals over time are exact 128-bit integers
// and every floating-point step has one order, so equal runs give equal bytes
// on every machine. Nothing scans all nodes or allocations: a call costs in
// proportion to the number of resources.
//
// core/sim calls it. A Collector belongs to one goroutine.
package metrics
