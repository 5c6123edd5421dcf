// Package statistics computes medians, quantiles and bootstrap intervals for the
// comparison of policies. Samples are paired if two policies ran the same workload with
// the same seed, and grouped by workload.
//
// The package does not use a global random source: resampling is a seeded PCG stream,
// so equal input returns equal intervals on every machine. It holds no state.
//
// core/sim/compare calls it.
package statistics
