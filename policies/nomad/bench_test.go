package nomad_test

import (
	"fmt"
	"testing"

	"github.com/cede-scheduler/cede/policies/nomad"
	"github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/policytest"
)

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
	for _, ask := range []string{"fixed", "half"} {
		for _, n := range []int{10, 50, 200} {
			b.Run(fmt.Sprintf("ask=%s/n=%d", ask, n), func(b *testing.B) {
				benchSelect(b, constructionA(n, ask == "half").Candidates())
			})
		}
	}
	b.Run("nodes=5000/even", func(b *testing.B) { benchSelect(b, constructionB(5000, false)) })
	b.Run("nodes=5000/uneven", func(b *testing.B) { benchSelect(b, constructionB(5000, true)) })
}

func benchSelect(b *testing.B, in *policy.Candidates) {
	p := nomad.New()
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
	for _, devices := range []bool{false, true} {
		b.Run(fmt.Sprintf("options=5000/devices=%v", devices), func(b *testing.B) {
			in, p := deviceOptions(b, 5000), nomad.New()
			if !devices {
				in.DeviceNeed, in.DeviceGroup = nil, nil
			}
			out := policytest.NewScores(in.Len())
			b.ReportAllocs()
			for b.Loop() {
				if err := p.ScoreOptions(in, out); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
