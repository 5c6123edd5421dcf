package metrics

import (
	"math/bits"
	"testing"

	"pgregory.net/rapid"
)

// bruteFewest tries every set of candidates.
func bruteFewest(c *Choice) (int, bool) {
	d := len(c.Need)
	n := len(c.Frees) / d
	best, found := 0, false
	for set := range uint(1) << n {
		enough := true
		for k, need := range c.Need {
			var sum int64
			for i := range n {
				if set>>i&1 == 1 {
					sum += c.Frees[i*d+k]
				}
			}
			enough = enough && sum >= need
		}
		if size := bits.OnesCount(set); enough && (!found || size < best) {
			best, found = size, true
		}
	}
	return best, found
}

func TestRegret_MatchesExhaustiveSearch(t *testing.T) {
	t.Parallel()
	var s regretSearch // shared, as a run shares it
	rapid.Check(t, func(t *rapid.T) {
		dims := rapid.IntRange(1, 4).Draw(t, "dims")
		top := rapid.SampledFrom([]int64{2, 9, 1000}).Draw(t, "top")
		amount := rapid.Int64Range(0, top)
		var c Choice
		for range dims {
			c.Need = append(c.Need, rapid.Int64Range(1, 3*top).Draw(t, "need"))
		}
		n := rapid.IntRange(1, 10).Draw(t, "candidates")
		for range n * dims {
			c.Frees = append(c.Frees, amount.Draw(t, "frees"))
		}
		want, found := bruteFewest(&c)
		chosen := n
		if !found {
			want = chosen // the policy is not charged
		}
		got, exact := s.fewest(&c, chosen)
		if !exact || got != want {
			t.Fatalf("fewest = %d (exact %v), want %d", got, exact, want)
		}
	})
}

func TestRegret_KnownChoices(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name         string
		need, frees  []int64
		chosen, want int
	}{
		{"one large instead of three small", []int64{6}, []int64{2, 2, 2, 8}, 3, 1},
		{"each dimension alone would take one", []int64{4, 4}, []int64{4, 0, 0, 4, 3, 3}, 3, 2},
		{"a port conflict in addition to capacity", []int64{1, 10}, []int64{1, 0, 0, 10, 0, 5}, 3, 2},
		{"nothing needed", []int64{0}, []int64{1}, 1, 0},
		{"all candidates together are insufficient", []int64{9}, []int64{1, 1}, 2, 2},
		{"never more than chosen", []int64{9}, []int64{1, 1, 1, 1, 1, 1, 1, 1, 1}, 4, 4},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var s regretSearch
			if got, _ := s.fewest(&Choice{Need: tc.need, Frees: tc.frees}, tc.chosen); got != tc.want {
				t.Errorf("fewest = %d, want %d", got, tc.want)
			}
		})
	}
}

func TestRegret_CountsOnlyProvenVictimsWhenCapped(t *testing.T) {
	t.Parallel()
	c := hardChoice(120)
	var s regretSearch
	got, _ := s.fewest(c, 60)
	s.spent = regretTotal
	capped, exact := s.fewest(c, 60)
	if capped < got {
		t.Errorf("cut-off search returned %d, want at least %d", capped, got)
	}
	if exact && capped > got {
		t.Errorf("search reports %d as proven, but %d suffice", capped, got)
	}
}

// hardChoice has amounts that conflict between dimensions.
func hardChoice(n int) *Choice {
	c := &Choice{}
	c.Reset(50_000, 50_000, 50_000, 50_000)
	x := uint64(1)
	for range n {
		var row [4]int64
		for d := range row {
			x = x*6364136223846793005 + 1442695040888963407
			row[d] = int64(x >> 33 % 4000)
		}
		c.Add(row[:]...)
	}
	return c
}

func BenchmarkRegret(b *testing.B) {
	c := hardChoice(60)
	var s regretSearch
	for b.Loop() {
		s.spent = 0
		s.fewest(c, 60)
	}
}
