// Package statistics computes medians, quantiles and bootstrap intervals over seeds
// for the comparison of policies. Samples are paired if two policies ran the same
// scenario with the same seed.
//
// The package does not use a global random source: resampling is a seeded PCG stream,
// so equal input returns equal intervals on every machine. It holds no state.
//
// core/sim/compare calls it.
package statistics
