package rules_test

import (
	"testing"

	"github.com/cede-scheduler/cede/sdk/policytest"
	"github.com/cede-scheduler/cede/sdk/rules"
)

func BenchmarkSelectVictims(b *testing.B) { policytest.BenchmarkSelectVictims(b, rules.New()) }

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
