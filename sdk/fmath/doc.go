// Package fmath is the arithmetic of decisions: Exp, Exp10, Log, Pow and Sqrt
// that give the same bits in native Go on every architecture, in WebAssembly,
// and in the twins written in C, Rust and AssemblyScript. Policies and the
// scheduler's ranking compute with it and never with math.Exp, math.Log or
// math.Pow, whose assembly on one machine differs in the last bit from the
// portable version on another: enough to turn a tie into a different victim.
//
// It never reads anything but its arguments and its constant tables. All
// functions are safe for concurrent use.
//
// # How the bits stay the same
//
// Only IEEE 754 double additions, subtractions, multiplications, conversions
// of small integers and shifts of bit patterns are used, each rounded once, to
// nearest. A compiler may fuse x*y+z into one operation with one rounding
// where the processor has it (arm64, GOAMD64=v3), so every product that is
// added to is written float64(x*y), which the language forbids to fuse (an
// assignment in between does not). A twin that performs the same operations in the same order gets the same bits; the
// vectors under testdata say whether it did.
//
// # How exact they are
//
// Every result is within 0.515 units in the last place of the truth, that of Pow
// within 0.53, and a subnormal one within 1.0: measured against math/big at many
// arguments (the tests say which), not proven. Sqrt is correctly rounded. Exp10
// of a whole number is exact wherever the power of ten is a float64.
package fmath
