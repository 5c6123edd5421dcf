package policytest

import (
	"cmp"

	"github.com/cede-scheduler/cede/sdk/policy"
)

// CompareOptions is negative when the answer of ScoreOptions puts option a
// before option b, by tiers and then by score, 0 when it leaves that to their
// order.
func CompareOptions(s *policy.OptionScores, a, b int) int {
	for _, tier := range s.Tiers {
		if c := cmp.Compare(tier[a], tier[b]); c != 0 {
			return c
		}
	}
	return cmp.Compare(s.Score[b], s.Score[a])
}

// Best is the option that the host chooses by the answer of ScoreOptions.
func Best(s *policy.OptionScores) int {
	best := 0
	for i := range s.Score {
		if CompareOptions(s, i, best) < 0 {
			best = i
		}
	}
	return best
}
