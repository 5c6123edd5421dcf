package fmath

import "math"

// Sqrt returns the square root of x. IEEE 754 and Go require math.Sqrt to be
// correctly rounded, and it is one instruction on every architecture.
func Sqrt(x float64) float64 { return math.Sqrt(x) }
