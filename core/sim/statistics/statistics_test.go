package statistics

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestMedianAndQuantile_KnownValues(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		xs       []float64
		median   float64
		p90, max float64
	}{
		{[]float64{3}, 3, 3, 3},
		{[]float64{4, 1}, 2.5, 4, 4},
		{[]float64{9, 1, 5}, 5, 9, 9},
		{[]float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, 5.5, 9, 10},
		{[]float64{math.MaxFloat64, math.MaxFloat64}, math.MaxFloat64, math.MaxFloat64, math.MaxFloat64},
	} {
		if m := Median(tc.xs); m != tc.median {
			t.Errorf("median of %v = %v, want %v", tc.xs, m, tc.median)
		}
		if q := quantile(tc.xs, 900); q != tc.p90 {
			t.Errorf("p90 of %v = %v, want %v", tc.xs, q, tc.p90)
		}
		if q := quantile(tc.xs, 1000); q != tc.max {
			t.Errorf("max of %v = %v, want %v", tc.xs, q, tc.max)
		}
	}
	if !math.IsNaN(Median(nil)) || !math.IsNaN(quantile(nil, 500)) {
		t.Error("Median(nil) is not NaN")
	}
}

// The exact distribution of a resampled median of distinct values: it is at
// most the k-th if more than half of the n draws fall among the first k.
func TestBootstrap_MatchesExactDistribution(t *testing.T) {
	t.Parallel()
	xs := []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}
	n := len(xs)
	low, high := 0.0, 0.0
	for k := 1; k <= n; k++ {
		p := 0.0 // probability that the median is at most xs[k-1]
		for j := n/2 + 1; j <= n; j++ {
			p += binomial(n, j) * math.Pow(float64(k)/float64(n), float64(j)) * math.Pow(1-float64(k)/float64(n), float64(n-j))
		}
		if low == 0 && p >= 0.025 {
			low = xs[k-1]
		}
		if high == 0 && p >= 0.975 {
			high = xs[k-1]
		}
	}
	if got := Bootstrap(Groups{xs}, 1); got != (Interval{6, low, high}) {
		t.Errorf("interval %v, want 6 [%v, %v]", got, low, high)
	}
}

func binomial(n, k int) float64 {
	b := 1.0
	for i := range k {
		b = b * float64(n-i) / float64(i+1)
	}
	return b
}

func TestBootstrap_Properties(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		xs := rapid.SliceOfN(rapid.Float64Range(-1e6, 1e6), 1, 15).Draw(t, "xs")
		seed := rapid.Uint64().Draw(t, "seed")
		got := Bootstrap(Groups{xs}, seed)
		if got != Bootstrap(Groups{xs}, seed) {
			t.Fatal("equal samples and seeds return different intervals")
		}
		if got.Low > got.Median || got.Median > got.High {
			t.Fatalf("median outside the interval %+v", got)
		}
		if got.Low < quantile(xs, 0) || got.High > quantile(xs, 1000) {
			t.Fatalf("interval %+v exceeds the range of %v", got, xs)
		}
	})
}

func TestPaired_NoneIfIntervalContainsZero(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		a, b []float64
		none bool
	}{
		{"no pairs", nil, nil, true},
		{"one pair, equal", []float64{3}, []float64{3}, true},
		{"one pair decides for the run as it is", []float64{3}, []float64{4}, false},
		{"always more by little, though seeds differ by much", []float64{101, 201, 301, 401, 501}, []float64{100, 200, 300, 400, 500}, false},
		{"now more, now less", []float64{1, 5, 2, 8, 3}, []float64{2, 4, 3, 7, 4}, true},
		{"mostly equal", []float64{1, 1, 1, 1, 5}, []float64{1, 1, 1, 1, 1}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if d := Paired(one(tc.a), one(tc.b), 1); d.None() != tc.none {
				t.Errorf("None() = %v for %+v", d.None(), d)
			}
		})
	}
}

// one returns the sample as one group.
func one(xs []float64) Groups {
	if len(xs) == 0 {
		return nil
	}
	return Groups{xs}
}

// Groups of one value each are independent samples, as the values of one group are:
// both return the interval of the exact distribution.
func TestBootstrap_GroupsOfOneEqualOneGroup(t *testing.T) {
	t.Parallel()
	xs := []float64{4, 1, 3, 2, 9, 6, 5, 8, 7, 11, 10}
	var singles Groups
	for _, x := range xs {
		singles = append(singles, []float64{x})
	}
	if a, b := Bootstrap(Groups{xs}, 1), Bootstrap(singles, 1); a != b {
		t.Errorf("%v and %v", a, b)
	}
}

// The interval does not depend on the order of groups or of values within them.
func TestBootstrap_OrderOfGroupsIsIrrelevant(t *testing.T) {
	t.Parallel()
	a := Bootstrap(Groups{{5, 1, 9}, {2, 2}, {7, 3}}, 3)
	b := Bootstrap(Groups{{3, 7}, {9, 1, 5}, {2, 2}}, 3)
	if a != b {
		t.Errorf("%v and %v", a, b)
	}
}

func BenchmarkBootstrap(b *testing.B) {
	xs := []float64{1, 5, 2, 8, 3, 9, 4, 7, 6, 10, 0}
	for b.Loop() {
		Bootstrap(Groups{xs}, 1)
	}
}

func quantile(xs []float64, permille int) float64 {
	return Rank(slices.Sorted(slices.Values(xs)), permille)
}

// The interval of the sign test, by its definition: the tables give ranks 2 and 9 of 10
// values for 95 %, which cover 97.9 %.
func TestExactMedian_HasTheRanksOfTheSignTest(t *testing.T) {
	t.Parallel()
	xs := []float64{3, 1, 2, 10, 9, 8, 7, 6, 5, 4}
	for _, tc := range []struct {
		n     int
		level float64
		want  Interval
		ok    bool
	}{
		{10, 0.95, Interval{5.5, 2, 9}, true},
		{10, 0.98, Interval{5.5, 1, 10}, true},
		{10, 0.89, Interval{5.5, 3, 8}, true},
		{5, 0.90, Interval{3, 1, 10}, true},
		{4, 0.90, Interval{2.5, math.Inf(-1), math.Inf(1)}, false},
	} {
		if got, ok := ExactMedian(xs[:tc.n], tc.level); got != tc.want || ok != tc.ok {
			t.Errorf("%d values at %v: %v %v, want %v", tc.n, tc.level, got, ok, tc.want)
		}
	}
	for level, want := range map[float64]int{0.90: 5, 0.95: 6, 0.98: 7, 0.99: 8} {
		if n := ExactPairs(level); n != want {
			t.Errorf("%v requires %d values, want %d", level, n, want)
		}
	}
}
