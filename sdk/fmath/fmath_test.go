package fmath

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

// count returns the number of arguments of a test: more if CEDE_SOAK is set.
func count() int { return soak.Count(5_000, 50_000) }

// ulps returns the distance of got from want, in units in the last place of the
// float64 nearest to want.
func ulps(got float64, want *big.Float) float64 {
	nearest, _ := want.Float64()
	if math.IsInf(nearest, 0) || math.IsInf(got, 0) {
		if got == nearest {
			return 0
		}
		nearest = math.MaxFloat64
	}
	_, e := math.Frexp(nearest)
	if nearest == 0 {
		e = -1073
	}
	off, _ := shift(sub(bigFloat(got), want), -max(e-53, -1074)).Float64()
	return math.Abs(off)
}

// bound runs f on arguments from gen and fails if a result is further than limit, in
// ulps, from the exact value.
func bound(t *testing.T, name string, limit float64, gen func(*rand.Rand) float64, f func(float64) float64, truth func(*big.Float) *big.Float) {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	worst, at := 0.0, 0.0
	for range count() {
		x := gen(r)
		if u := ulps(f(x), truth(bigFloat(x))); u > worst {
			worst, at = u, x
		}
	}
	t.Logf("%s: worst %.4f ulp at %v", name, worst, at)
	if worst > limit {
		t.Errorf("%s(%v) is %.4f ulp off, more than %v", name, at, worst, limit)
	}
}

func between(lo, hi float64) func(*rand.Rand) float64 {
	return func(r *rand.Rand) float64 { return lo + (hi-lo)*r.Float64() }
}

// anyPositive returns a positive number with a uniformly distributed exponent.
func anyPositive(r *rand.Rand) float64 {
	return math.Float64frombits(r.Uint64N(0x7ff0_0000_0000_0000))
}

func TestExp_IsWithinItsBound(t *testing.T) {
	t.Parallel()
	bound(t, "Exp", 0.515, between(-708, 709.78), Exp, bigExp)
	bound(t, "Exp near 0", 0.515, between(-1, 1), Exp, bigExp)
	bound(t, "Exp near 0", 0.515, func(r *rand.Rand) float64 { return math.Ldexp(r.Float64()-0.5, -r.IntN(60)) }, Exp, bigExp)
	bound(t, "Exp, subnormal", 1, between(-745.5, -708), Exp, bigExp)
}

func TestExp10_IsWithinItsBound(t *testing.T) {
	t.Parallel()
	ln10 := bigLog(bigFloat(10))
	truth := func(x *big.Float) *big.Float { return bigExp(mul(x, ln10)) }
	bound(t, "Exp10", 0.515, between(-307, 308.25), Exp10, truth)
	bound(t, "Exp10 of a fraction", 0.515, between(0, 1), Exp10, truth)
	bound(t, "Exp10, subnormal", 1, between(-323.9, -307), Exp10, truth)
}

func TestLog_IsWithinItsBound(t *testing.T) {
	t.Parallel()
	bound(t, "Log", 0.515, anyPositive, Log, bigLog)
	bound(t, "Log near 1", 0.515, between(0.7, 1.5), Log, bigLog)
	bound(t, "Log next to 1", 0.515, func(r *rand.Rand) float64 { return 1 + math.Ldexp(r.Float64()-0.5, -r.IntN(50)) }, Log, bigLog)
	bound(t, "Log, subnormal", 0.515, between(0, 0x1p-1022), Log, bigLog)
}

func TestPow_IsWithinItsBound(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		limit float64
		gen   func(*rand.Rand) (x, y float64)
	}{
		{"anything", 0.53, func(r *rand.Rand) (x, y float64) {
			x = anyPositive(r)
			return x, (2*r.Float64() - 1) * 708 / math.Abs(math.Log(x))
		}},
		{"near 1", 0.53, func(r *rand.Rand) (x, y float64) {
			x = 1 + math.Ldexp(0.25+r.Float64()/4, -r.IntN(40))
			return x, (2*r.Float64() - 1) * 708 / math.Abs(math.Log(x))
		}},
		{"small", 0.53, func(r *rand.Rand) (x, y float64) { return 10 * r.Float64(), 6*r.Float64() - 3 }},
		{"subnormal", 1, func(r *rand.Rand) (x, y float64) {
			x = anyPositive(r)
			return x, -(708 + 37*r.Float64()) / math.Log(x)
		}},
	} {
		r := rand.New(rand.NewPCG(1, 2))
		worst, atX, atY := 0.0, 0.0, 0.0
		for range count() {
			x, y := tt.gen(r)
			if u := ulps(Pow(x, y), bigExp(mul(bigFloat(y), bigLog(bigFloat(x))))); u > worst {
				worst, atX, atY = u, x, y
			}
		}
		t.Logf("Pow, %s: worst %.4f ulp at %v, %v", tt.name, worst, atX, atY)
		if worst > tt.limit {
			t.Errorf("Pow(%v, %v) is %.4f ulp off, more than %v", atX, atY, worst, tt.limit)
		}
	}
}

func TestExp10_IsExactForIntegers(t *testing.T) {
	t.Parallel()
	for n := -307; n <= 308; n++ {
		x := float64(n)
		want, _, _ := big.ParseFloat("1", 10, bigPrec, big.ToNearestEven)
		for range max(n, -n) {
			want = mul(want, bigFloat(10))
		}
		if n < 0 {
			want = quo(bigFloat(1), want)
		}
		if nearest, _ := want.Float64(); n >= 0 && n <= 22 && Exp10(x) != nearest {
			t.Errorf("Exp10(%v) = %v", x, Exp10(x))
		}
	}
}

// special holds arguments for which the functions have special cases.
var special = []float64{
	0, math.Copysign(0, -1), 1, -1, 2, -2, 3, -3, 0.5, -0.5, 1.5, -1.5, 4503599627370497, -4503599627370497, 1 << 53, -(1 << 53), 1e300, -1e300,
	math.SmallestNonzeroFloat64, -math.SmallestNonzeroFloat64, math.MaxFloat64, -math.MaxFloat64, math.Inf(1), math.Inf(-1), math.NaN(),
	1 - 0x1p-53, 1 + 0x1p-52, 800, -800,
}

// borders holds arguments around which Exp becomes infinite, subnormal and zero.
var borders = []float64{709.782712893384, 709.7827128933841, -708.396418532264, -708.3964185322642, -745.1332191019411, -745.1332191019412}

func TestSpecialValues_MatchPackageMath(t *testing.T) {
	t.Parallel()
	for _, x := range special {
		for _, f := range []struct {
			name      string
			ours, std func(float64) float64
		}{{"Exp", Exp, math.Exp}, {"Log", Log, math.Log}, {"Sqrt", Sqrt, math.Sqrt}} {
			if got, want := f.ours(x), f.std(x); !sameValue(got, want) {
				t.Errorf("%s(%v) = %v, math has %v", f.name, x, got, want)
			}
		}
		for _, y := range special {
			if got, want := Pow(x, y), math.Pow(x, y); !sameValue(got, want) {
				t.Errorf("Pow(%v, %v) = %v, math has %v", x, y, got, want)
			}
		}
	}
	for x, want := range map[float64]float64{
		math.Inf(1): math.Inf(1), math.Inf(-1): 0, 308.2547155599168: math.Inf(1), 308.25: 1.7782794100389228e308, 400: math.Inf(1), -400: 0, -324: 0, 0: 1,
		-323: 1e-323, math.MaxFloat64: math.Inf(1), -math.MaxFloat64: 0, math.SmallestNonzeroFloat64: 1,
	} {
		if got := Exp10(x); got != want {
			t.Errorf("Exp10(%v) = %v, want %v", x, got, want)
		}
	}
	if got := Exp10(math.NaN()); got == got {
		t.Errorf("Exp10(NaN) = %v", got)
	}
}

// sameValue reports whether both results are NaN, the same infinity, zeros of the same
// sign, or finite. Finite values are not compared, because package math can be far
// off: on amd64 its Log of a subnormal is -709.
func sameValue(a, b float64) bool {
	switch {
	case a != a || b != b:
		return a != a && b != b
	case a == 0 || b == 0 || math.IsInf(a, 0) || math.IsInf(b, 0):
		return a == b && math.Signbit(a) == math.Signbit(b)
	}
	return math.Signbit(a) == math.Signbit(b)
}

func TestExp_IsMonotonic(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, 6))
	for range 20 * count() {
		x := between(-10, 10)(r)
		up := math.Nextafter(x, math.Inf(1))
		if Exp(up) < Exp(x) || Exp10(up) < Exp10(x) || Log(up+20) < Log(x+20) {
			t.Fatalf("Exp decreases at %v", x)
		}
	}
}
