// Package scenario owns the scenario file: the description of a cluster, its
// workload, and the events of a simulation. It decodes files (Decode), validates them
// (File.Validate), resolves them into values of the model (Resolve) and encodes them
// (Encode).
//
// A File holds the values as written: quantities are converted into the model's units
// and durations into nanoseconds, and nothing else is interpreted. Absent fields stay
// absent until Resolve fills in the defaults, so that Encode can write the file back
// unchanged.
//
// The package never runs a scenario: core/sim runs the value that Resolve returns and
// compares the result with File.Expect. Importers, the generator and the command line
// read or build Files.
//
// Files are untrusted input. They must not cause a panic, or memory use out of
// proportion to their size. Decode returns every problem as a Problem with its line,
// its path, the expected value and a remedy.
//
// All functions are safe for concurrent use if no File is modified at the same time.
package scenario
