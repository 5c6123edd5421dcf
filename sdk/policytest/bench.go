package policytest

import (
	"fmt"
	"testing"

	"github.com/cede-scheduler/cede/sdk/policy"
)

// BenchmarkSelectVictims measures p on the constructions after a warm-up call.
func BenchmarkSelectVictims(b *testing.B, p policy.VictimSelector) {
	for _, ask := range []string{"fixed", "half"} {
		for _, n := range []int{10, 50, 200} {
			b.Run(fmt.Sprintf("ask=%s/n=%d", ask, n), func(b *testing.B) {
				benchSelect(b, p, ConstructionA(n, ask == "half"))
			})
		}
	}
	b.Run("nodes=5000/even", func(b *testing.B) { benchSelect(b, p, ConstructionB(5000, false)) })
	b.Run("nodes=5000/uneven", func(b *testing.B) { benchSelect(b, p, ConstructionB(5000, true)) })
}

// BenchmarkScoreOptions measures p on two victims on each of 5,000 nodes after a
// warm-up call.
func BenchmarkScoreOptions(b *testing.B, p policy.OptionScorer) {
	c := ConstructionB(5000, true)
	victims := make([][]int, len(c.Options))
	for i := range victims {
		victims[i] = []int{i % 9, 9}
	}
	in, out := c.OptionsOf(victims), NewScores(len(c.Options))
	_ = p.ScoreOptions(in, out)
	b.ReportAllocs()
	for b.Loop() {
		for _, tier := range out.Tiers {
			clear(tier)
		}
		clear(out.Score)
		if err := p.ScoreOptions(in, out); err != nil {
			b.Fatal(err)
		}
	}
}

func benchSelect(b *testing.B, p policy.VictimSelector, c *Case) {
	in := c.Candidates()
	var s policy.Selection
	s.Reset()
	_ = p.SelectVictims(in, &s)
	b.ReportAllocs()
	for b.Loop() {
		s.Reset()
		if err := p.SelectVictims(in, &s); err != nil {
			b.Fatal(err)
		}
	}
}
