// Package fmath is the arithmetic of decisions: Exp, Exp10, Log, Pow and Sqrt with
// identical bits in native Go on every architecture, in WebAssembly, and in the ports
// to C, Rust and AssemblyScript. Policies and the scheduler's ranking use it instead
// of math.Exp, math.Log and math.Pow: their assembly on one machine differs in the
// last bit from the portable version on another, which is enough to turn a tie into a
// different victim.
//
// Results depend only on the arguments and on constant tables. All functions are safe
// for concurrent use.
//
// # How the bits stay the same
//
// The functions use only IEEE 754 double additions, subtractions, multiplications,
// conversions of small integers and shifts of bit patterns, each rounded once, to
// nearest. A compiler may fuse x*y+z into one operation with one rounding if the
// processor supports it (arm64, GOAMD64=v3). Every product that is added to is
// therefore written float64(x*y), which the language forbids to fuse; an assignment
// in between does not prevent it. A port that performs the same operations in the
// same order returns the same bits. The vectors under testdata verify it.
//
// # Accuracy
//
// Every result is within 0.515 units in the last place of the exact value, that of
// Pow within 0.53, and a subnormal result within 1.0. This is measured against
// math/big at the arguments that the tests list; it is not proven. Sqrt is correctly
// rounded. Exp10 of a whole number is exact if the power of ten is a float64.
package fmath
