// Package scenario owns the scenario file: what a cluster looks like, what
// runs on it, and what happens next. It reads files (Decode), checks them
// (File.Validate), turns them into values of the model (Resolve) and writes
// them (Encode).
//
// A File says what was written: quantities are in the model's units and
// durations in nanoseconds, and nothing else is interpreted. What is absent
// stays absent until Resolve, so that a file can be written back as it was.
//
// The package never runs anything: core/sim plays what Resolve returns and
// compares it with what the file expects. Importers, the generator and the
// command line build or read Files through it.
//
// Files come from strangers. Nothing in them may cause a panic or take memory
// out of proportion; every problem is a Problem with its line, its path, what
// was expected and what to do.
//
// All functions may be called concurrently; a File must not be changed while
// one of them uses it.
package scenario
