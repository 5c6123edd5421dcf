// Package statistics owns the little statistics that comparing policies needs:
// medians, quantiles, and bootstrap intervals over seeds, paired where two
// policies played the same scenario with the same seed.
//
// It never draws from a global source: resampling is a seeded PCG stream, so
// equal input gives equal intervals on every machine. Nothing here keeps state.
//
// core/sim/compare calls it.
package statistics
