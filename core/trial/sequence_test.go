package trial

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/cede-scheduler/cede/sdk/policytest/soak"
)

const alpha = 0.05

// A noise draws the load of a block: the k-th of a run.
type noise func(r *rand.Rand, k int) float64

// noises have nothing in common but the random order of the arms.
var noises = map[string]noise{
	"normal":       func(r *rand.Rand, _ int) float64 { return 100 + 10*r.NormFloat64() },
	"heavy tailed": func(r *rand.Rand, _ int) float64 { return 100 / math.Pow(r.Float64(), 1/1.2) },
	"rare":         func(r *rand.Rand, _ int) float64 { return math.Floor(r.ExpFloat64()) },
	"growing":      func(r *rand.Rand, k int) float64 { return float64(k*k) * (1 + r.Float64()/10) },
	"periodic":     func(r *rand.Rand, k int) float64 { return 100 + 50*math.Sin(float64(k)/7) + r.NormFloat64() },
}

// play returns the differences of pairs of blocks in which the candidate changes the
// measure by a share of the load.
func play(r *rand.Rand, load noise, pairs int, effect float64) (y []float64) {
	for k := range pairs {
		d := load(r, 2*k) - load(r, 2*k+1)
		if r.IntN(2) == 0 {
			d = -d
		}
		y = append(y, d+effect)
	}
	return y
}

// Looking after every pair must not increase the share of runs that decide, although both
// arms are equal.
func TestExcludes_HoldsItsErrorRateIfLookedAtAfterEveryPair(t *testing.T) {
	runs := soak.Count(1000, 20_000)
	for name, load := range noises {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wrong := 0
			for seed := range runs {
				y := play(rand.New(rand.NewPCG(uint64(seed), 1)), load, 100, 0)
				for n := 1; n <= len(y); n++ {
					if Excludes(y[:n], 0, alpha) {
						wrong++
						break
					}
				}
			}
			if share := float64(wrong) / float64(runs); share > alpha {
				t.Errorf("%d of %d runs decided between equal arms: %.1f %%", wrong, runs, 100*share)
			}
		})
	}
}

func TestEstimate_CoversTheMeanAndExcludesItsRivals(t *testing.T) {
	runs := soak.Count(120, 2000)
	covered, decided := 0, 0
	for seed := range runs {
		y := play(rand.New(rand.NewPCG(uint64(seed), 2)), noises["normal"], 80, 10)
		i := Estimate(y, alpha)
		if i.Low <= 10 && 10 <= i.High {
			covered++
		}
		if i.Low > 0 {
			decided++
		}
		if i.Pairs != 80 || i.Low > i.Mean || i.Mean > i.High || (i.Low > 0 || i.High < 0) != Excludes(y, 0, alpha) {
			t.Fatalf("seed %d: %+v", seed, i)
		}
	}
	if covered < runs*95/100 || decided < runs*90/100 {
		t.Errorf("of %d intervals %d contain the mean, and %d exclude 0", runs, covered, decided)
	}
}

func TestEstimate_DecidesNothingFromFewPairs(t *testing.T) {
	for n := range 20 {
		y := make([]float64, n)
		for k := range y {
			y[k] = 7
		}
		i := Estimate(y, alpha)
		if decided := i.Low > 0; decided != (n >= 8) {
			t.Errorf("%d equal differences: %+v", n, i)
		}
	}
	if i := Estimate(make([]float64, 50), alpha); i.Low != 0 || i.High != 0 {
		t.Errorf("no differences at all: %+v", i)
	}
}

func TestEstimate_ScalesWithItsInput(t *testing.T) {
	y := play(rand.New(rand.NewPCG(1, 3)), noises["normal"], 60, 4)
	small, large := Estimate(y, alpha), y
	for k := range large {
		large[k] *= 1e9
	}
	got := Estimate(large, alpha)
	if math.Abs(got.Low/small.Low-1e9) > 1e3 || math.Abs(got.High/small.High-1e9) > 1e3 {
		t.Errorf("%+v is not 1e9 times %+v", got, small)
	}
}

// A control that explains most of the load at least halves the pairs that a regression of
// 5 % takes, and leaves the error rate as it is.
func TestAdjusted_HalvesThePairsOfADecision(t *testing.T) {
	runs := soak.Count(400, 5000)
	within := func(effect float64, controlled bool) (found, pairs int) {
		var at []int
		for seed := range runs {
			r := rand.New(rand.NewPCG(uint64(seed), 4))
			var y, x []float64
			for range 150 {
				a, b := 100+20*r.NormFloat64(), 100+20*r.NormFloat64() // loads of the two blocks
				x = append(x, a-b)
				y = append(y, a*(1+effect)-b+5*r.NormFloat64())
			}
			if controlled {
				y = Adjusted(y, x)
			}
			for n := 1; n <= len(y); n++ {
				if Excludes(y[:n], 0, alpha) {
					at = append(at, n)
					break
				}
			}
		}
		if len(at) == 0 {
			return 0, 0
		}
		sum := 0
		for _, n := range at {
			sum += n
		}
		return len(at), sum / len(at)
	}
	if wrong, _ := within(0, true); wrong > runs*5/100 {
		t.Errorf("%d of %d runs decided between equal arms", wrong, runs)
	}
	plain, slow := within(0.05, false)
	found, fast := within(0.05, true)
	t.Logf("without control %d of %d decided, after %d pairs; with it %d, after %d", plain, runs, slow, found, fast)
	if found < runs*90/100 || 2*fast > slow {
		t.Errorf("without control %d of %d decided, after %d pairs; with it %d, after %d", plain, runs, slow, found, fast)
	}
}
