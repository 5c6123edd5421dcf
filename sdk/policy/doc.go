// Package policy is what the author of a preemption policy imports: the hooks a
// policy may implement, and the typed column-wise views it is given. It is
// standard library only, and the same source runs as native Go, as a
// WebAssembly module and as a separate process.
//
// A policy implements Policy and any subset of the hooks: DeltaHook,
// VictimScorer, VictimSelector, OptionScorer. What it lacks, the rules named
// default do.
//
// # Shapes and units
//
// Everything arrives in tables of columns. A table of n rows has columns of
// length n; a column per resource is indexed [dimension][row], with the
// dimensions named in Dims. Resource amounts are float64 holding whole numbers
// in the scenario's units (millicores, MiB, Mbit/s, whole units). Times are
// Unix nanoseconds, durations nanoseconds. Optional columns are nil unless
// Info.Columns asks for them: ask for what the policy reads and no more, since
// answers are reused while every declared column is unchanged.
//
// # Order
//
// Rows of an option come by priority ascending, and in tie order within a
// priority; options come in tie order. So a policy that prefers the first of
// equals decides ties as documented, and it never needs an identifier for it.
//
// # What a policy may depend on
//
// An answer about an option may depend only on that option's rows, the
// preemptor, Now, and the shared tables. ScoreOptions alone sees all options.
// A policy has no clock, no randomness, and no memory between calls. Decision
// code computes with sdk/fmath, never with math.Exp, math.Pow or math.Log, and
// writes float64(x*y)+z where a product is added to: native code and
// WebAssembly must agree to the bit.
//
// The slices belong to the host and are valid during the call only.
package policy
