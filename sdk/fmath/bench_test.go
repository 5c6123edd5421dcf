package fmath

import (
	"math"
	"testing"
)

var sink float64

func BenchmarkFunctions(b *testing.B) {
	for _, f := range []struct {
		name string
		f    func(float64) float64
	}{
		{"exp/fmath", Exp},
		{"exp/math", math.Exp},
		{"exp10/fmath", Exp10},
		{"exp10/math", func(x float64) float64 { return math.Pow(10, x) }},
		{"log/fmath", Log},
		{"log/math", math.Log},
		{"pow/fmath", func(x float64) float64 { return Pow(x, 2.7) }},
		{"pow/math", func(x float64) float64 { return math.Pow(x, 2.7) }},
		{"sqrt/fmath", Sqrt},
	} {
		b.Run(f.name, func(b *testing.B) {
			sum, i := 0.0, 0
			for b.Loop() {
				sum += f.f(float64(i&1023+1) * (1.0 / 1024))
				i++
			}
			sink = sum
		})
	}
}
