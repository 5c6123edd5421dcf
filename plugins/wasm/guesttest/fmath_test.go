package guesttest

import (
	"bufio"
	"context"
	"fmt"
	"math"
	"os"
	"testing"
)

// Every guest library computes the vectors of sdk/fmath identically to the bit.
func TestFmath_IsIdenticalInEveryLanguage(t *testing.T) {
	inLanguages(t, "probe", func(t *testing.T, g *guest) {
		for _, name := range []string{"exp", "exp10", "log", "pow"} {
			checkVectors(t, g, name)
		}
		root := g.module.ExportedFunction("test_sqrt")
		for _, x := range []float64{0, 2, 1e-310, 0.1, 1e300, math.Inf(1)} {
			result, err := root.Call(context.Background(), math.Float64bits(x))
			if err != nil || result[0] != math.Float64bits(math.Sqrt(x)) {
				t.Errorf("sqrt(%g) is %x: %v", x, result, err)
			}
		}
	})
}

func checkVectors(t *testing.T, g *guest, name string) {
	t.Helper()
	file, err := os.Open("../../../sdk/fmath/testdata/" + name + ".txt")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	f, vectors := g.module.ExportedFunction("test_"+name), 0
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var x, y, want uint64
		if _, err := fmt.Sscanf(lines.Text(), "%x %x %x", &x, &y, &want); err != nil {
			continue // the heading
		}
		args := []uint64{x, y}[:len(f.Definition().ParamTypes())]
		result, err := f.Call(context.Background(), args...)
		if err != nil {
			t.Fatal(err)
		}
		if got := result[0]; got != want && (!nan(got) || !nan(want)) {
			t.Errorf("%s of %x and %x is %x, want %x", name, x, y, got, want)
		}
		vectors++
	}
	if vectors < 500 {
		t.Errorf("%s: %d vectors", name, vectors)
	}
}

func nan(bits uint64) bool { return math.IsNaN(math.Float64frombits(bits)) }
