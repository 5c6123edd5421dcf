package rules_test

import (
	"fmt"
	"testing"

	"github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/policytest"
	"github.com/cede-scheduler/cede/sdk/rules"
)

// constructionA is (a) of reference/nomad.md 3.1: n candidates that fill a node,
// and an ask of 500/1024/1000 or, with half 2, of half of everything.
func constructionA(n int, half float64) *policy.Candidates {
	c := &policytest.Case{Dims: []string{"cpu", "memory", "disk"}}
	c.Preemptor = policy.Preemptor{Priority: 90, Delta: 10, JobType: "service", Ask: []float64{500, 1024, 1000}}
	o := policytest.Option{Free: make([]float64, 3)}
	sum := make([]float64, 3)
	for i := range n {
		use := []float64{float64(50 + 10*(i%11)), float64(128 + 32*(i%9)), float64(150 + 50*(i%7))}
		for d := range sum {
			sum[d] += use[d]
		}
		o.Rows = append(o.Rows, policytest.Row{Priority: int32(20 + 5*(i%7)), Use: use, EvictionLimit: 1})
	}
	if half > 0 {
		for d := range sum {
			c.Preemptor.Ask[d] = sum[d] / half
		}
	}
	c.Options = []policytest.Option{o}
	return c.Candidates()
}

// constructionB is the victims' side of (b): ten allocations a node of which
// two must go. uneven makes them differ, so that no branch is foreseeable.
func constructionB(nodes int, uneven bool) *policy.Candidates {
	c := &policytest.Case{Dims: []string{"cpu", "memory", "disk"}}
	c.Preemptor = policy.Preemptor{Priority: 90, Delta: 10, JobType: "service", Ask: []float64{500, 1024, 300}}
	for i := range nodes {
		o := policytest.Option{Free: []float64{0, 36, 95304}}
		for k := range 10 {
			use := []float64{390, 790, 300}
			if uneven {
				use[0] += float64((i*7 + k*13) % 23)
				use[1] -= float64((i*17 + k*5) % 29)
			}
			o.Rows = append(o.Rows, policytest.Row{Priority: int32(20 + 5*(k%7)), Use: use, EvictionLimit: 1})
		}
		c.Options = append(c.Options, o)
	}
	return c.Candidates()
}

func BenchmarkSelectVictims(b *testing.B) {
	for _, n := range []int{10, 50, 200} {
		b.Run(fmt.Sprintf("ask=fixed/n=%d", n), func(b *testing.B) { benchSelect(b, constructionA(n, 0)) })
	}
	for _, n := range []int{10, 50, 200} {
		b.Run(fmt.Sprintf("ask=half/n=%d", n), func(b *testing.B) { benchSelect(b, constructionA(n, 2)) })
	}
	b.Run("nodes=5000/even", func(b *testing.B) { benchSelect(b, constructionB(5000, false)) })
	b.Run("nodes=5000/uneven", func(b *testing.B) { benchSelect(b, constructionB(5000, true)) })
}

func benchSelect(b *testing.B, in *policy.Candidates) {
	p := rules.New()
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

func BenchmarkScoreOptions(b *testing.B) {
	in, p := manyOptions(5000), rules.New()
	out := policytest.NewScores(in.Len())
	b.ReportAllocs()
	for b.Loop() {
		if err := p.ScoreOptions(in, out); err != nil {
			b.Fatal(err)
		}
	}
}
