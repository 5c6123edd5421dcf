package fmath

import "math"

// Sqrt returns the square root of x: math.Sqrt, which IEEE 754 and Go require
// to be correctly rounded, and which is one instruction everywhere.
func Sqrt(x float64) float64 { return math.Sqrt(x) }
