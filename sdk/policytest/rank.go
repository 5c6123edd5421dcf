package policytest

import (
	"cmp"

	"github.com/cede-scheduler/cede/sdk/policy"
)

// CompareOptions compares options a and b by the answer of ScoreOptions: by tiers,
// then by score. It returns a negative number if a ranks before b, and 0 if the order
// of the options decides.
func CompareOptions(s *policy.OptionScores, a, b int) int {
	for _, tier := range s.Tiers {
		if c := cmp.Compare(tier[a], tier[b]); c != 0 {
			return c
		}
	}
	return cmp.Compare(s.Score[b], s.Score[a])
}

// Best returns the option that the host chooses for an answer of ScoreOptions.
func Best(s *policy.OptionScores) int {
	best := 0
	for i := range s.Score {
		if CompareOptions(s, i, best) < 0 {
			best = i
		}
	}
	return best
}
