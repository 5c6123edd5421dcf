// Package compare builds the results of `cede compare` from several runs: the
// document (version 1) with a summary per metric and the first differing decisions, and
// the table for terminals.
//
// The package does not run scenarios or policies: it receives finished runs. A run is
// paired with the runs of the same scenario and seed under other policies. The first
// policy is the baseline. Equal runs return equal bytes.
//
// cmd calls it, and core/sim/report draws its Document. A Document is read-only after
// New returns; the package does not lock.
package compare
