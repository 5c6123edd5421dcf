package fmath

import (
	"bufio"
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"testing"
)

// The files under testdata hold arguments and results as bits of float64, one vector
// per line. Every guest library and every architecture must return exactly these
// bits. If -rewrite changes them, the new functions are incompatible.

func TestGolden_BitsAreUnchanged(t *testing.T) {
	t.Parallel()
	for _, f := range []struct {
		name string
		f    func(x, y float64) float64
		args func(*rand.Rand) [][2]float64
	}{
		{"exp", func(x, _ float64) float64 { return Exp(x) }, unary(-750, 720)},
		{"exp10", func(x, _ float64) float64 { return Exp10(x) }, unary(-325, 310)},
		{"log", func(x, _ float64) float64 { return Log(x) }, positives},
		{"pow", Pow, pairs},
	} {
		path := "testdata/" + f.name + ".txt"
		if *rewrite {
			var b bytes.Buffer
			fmt.Fprintf(&b, "# x, y (unused unless pow) and %s as bits of IEEE 754 doubles; any NaN is as good as another\n", f.name)
			for _, a := range f.args(rand.New(rand.NewPCG(7, 8))) {
				fmt.Fprintf(&b, "%016x %016x %016x\n", math.Float64bits(a[0]), math.Float64bits(a[1]), math.Float64bits(f.f(a[0], a[1])))
			}
			if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		checkGolden(t, path, f.f)
	}
}

func checkGolden(t *testing.T, path string, f func(x, y float64) float64) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	vectors := 0
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if lines.Text()[0] == '#' {
			continue
		}
		var x, y, want uint64
		if _, err := fmt.Sscanf(lines.Text(), "%x %x %x", &x, &y, &want); err != nil {
			t.Fatalf("%s: %q: %v", path, lines.Text(), err)
		}
		got := f(math.Float64frombits(x), math.Float64frombits(y))
		if math.Float64bits(got) != want && !(got != got && math.IsNaN(math.Float64frombits(want))) {
			t.Errorf("%s: %x %x gives %x, want %x", path, x, y, math.Float64bits(got), want)
		}
		vectors++
	}
	if vectors < 500 {
		t.Errorf("%s: %d vectors", path, vectors)
	}
}

func unary(lo, hi float64) func(*rand.Rand) [][2]float64 {
	return func(r *rand.Rand) (args [][2]float64) {
		for _, x := range append(borders, special...) {
			args = append(args, [2]float64{x})
		}
		for k := range 800 {
			x := between(lo, hi)(r)
			switch k % 4 {
			case 1:
				x = r.Float64()
			case 2:
				x = 4*r.Float64() - 2
			case 3:
				x = float64(r.IntN(4000)) / float64(1+r.IntN(4000)) // a fraction of a node
			}
			args = append(args, [2]float64{x})
		}
		return args
	}
}

func positives(r *rand.Rand) (args [][2]float64) {
	for _, x := range special {
		args = append(args, [2]float64{x})
	}
	for k := range 800 {
		x := anyPositive(r)
		switch k % 4 {
		case 1:
			x = 0.7 + 0.8*r.Float64()
		case 2:
			x = 1 + math.Ldexp(r.Float64()-0.5, -r.IntN(52))
		case 3:
			x = float64(r.IntN(1 << 20))
		}
		args = append(args, [2]float64{x})
	}
	return args
}

func pairs(r *rand.Rand) (args [][2]float64) {
	for _, x := range special {
		for _, y := range special {
			args = append(args, [2]float64{x, y})
		}
	}
	for k := range 800 {
		x := anyPositive(r)
		y := (2*r.Float64() - 1) * 745 / math.Max(1e-3, math.Abs(Log(x)))
		switch k % 4 {
		case 1:
			x, y = 10*r.Float64(), 6*r.Float64()-3
		case 2:
			x, y = 1+math.Ldexp(r.Float64()-0.5, -r.IntN(30)), math.Ldexp(r.Float64()-0.5, r.IntN(38))
		case 3:
			x, y = float64(r.IntN(100)-50), float64(r.IntN(40)-20)
		}
		args = append(args, [2]float64{x, y})
	}
	return args
}
