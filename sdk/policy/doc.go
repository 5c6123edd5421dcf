// Package policy is the interface between a preemption policy and its host: the hooks
// that a policy may implement, and the typed tables that the host passes to them. It
// imports the standard library only. The same source runs as native Go, as a
// WebAssembly module and as a separate process.
//
// A policy implements Policy and any subset of the hooks: DeltaHook, VictimScorer,
// VictimSelector, OptionScorer, BindingPreemptor. If a hook is missing, the host uses
// the rules of the built-in policy "default" in its place.
//
// # Shapes and units
//
// All input arrives in tables of columns. A table of n rows has columns of length n.
// A column with a value per resource is indexed [dimension][row]; Dims names the
// dimensions. Resource amounts are float64 values that hold whole numbers in the
// scenario's units (millicores, MiB, Mbit/s, whole units). Times are Unix
// nanoseconds, durations are nanoseconds. An optional column is nil unless
// Info.Columns requests it. Request only the columns that the policy reads: the host
// reuses an answer while every declared column is unchanged.
//
// # Order
//
// The rows of an option are sorted by ascending priority, and by tie order within a
// priority. Options are in tie order. If a policy prefers the first of several equal
// rows, it breaks ties as documented without an identifier.
//
// # What a policy may depend on
//
// The answer for an option may depend only on the rows of that option, on the
// preemptor, on Now and on the shared tables. ScoreOptions alone sees all options. A
// policy has no clock, no randomness and no memory between calls. Decision code uses
// sdk/fmath instead of math.Exp, math.Pow and math.Log, and writes float64(x*y)+z
// when it adds to a product, because native code and WebAssembly must produce
// identical bits.
//
// The host owns all slices. They are valid during the call only.
package policy
