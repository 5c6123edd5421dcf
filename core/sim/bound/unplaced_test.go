package bound_test

import (
	"math/rand/v2"
	"testing"

	"github.com/cede-scheduler/cede/core/sim/bound"
)

// The weight that a capacity does not hold is at least the bound, for every choice of items. The
// bound is exact if all weights are 1, and otherwise less than one item below the best choice.
func TestExceeding_IsLowerBoundOfEveryChoice(t *testing.T) {
	t.Parallel()
	exact := 0
	for seed := range uint64(4000) {
		r := rand.New(rand.NewPCG(61, seed))
		items, heaviest, capacity := make([][2]int64, 1+r.IntN(9)), int64(0), r.Int64N(40)
		for i := range items {
			items[i] = [2]int64{r.Int64N(12), 1}
			if seed%2 == 1 {
				items[i][1] = 1 + r.Int64N(91)
			}
			if seed%20 == 3 { // products exceed 64 bits
				items[i][0], items[i][1] = items[i][0]<<50, items[i][1]<<24
			}
			heaviest = max(heaviest, items[i][1])
		}
		if seed%20 == 3 {
			capacity <<= 50
		}
		least := int64(1 << 62)
		for choice := range 1 << len(items) {
			used, missing := int64(0), int64(0)
			for i, x := range items {
				if choice>>i&1 == 1 {
					used += x[0]
				} else {
					missing += x[1]
				}
			}
			if used <= capacity {
				least = min(least, missing)
			}
		}
		got := bound.Exceeding(items, capacity)
		if got > least || got <= least-heaviest || seed%2 == 0 && got != least {
			t.Fatalf("seed %d: bound %d, best choice %d of %v in %d", seed, got, least, items, capacity)
		}
		if got == least {
			exact++
		}
	}
	if exact < 2500 {
		t.Errorf("%d bounds are exact: too few", exact)
	}
}
