package rules

import (
	"math"

	"github.com/cede-scheduler/cede/sdk/policy"
)

// ScoreOptions implements policy.OptionScorer. The first tier of an option without
// victims is the lowest value: it has no highest victim priority, and no eviction is
// better than any eviction.
func (p *Default) ScoreOptions(in *policy.Options, out *policy.OptionScores) error {
	highest, count, sum, score := out.Tiers[0], out.Tiers[1], out.Tiers[2], out.Score
	for i := range in.Len() {
		n := in.VictimCount[i]
		if n == 0 {
			highest[i] = math.MinInt64
		} else {
			highest[i] = int64(in.HighestPriority[i])
		}
		count[i] = int64(n)
		sum[i] = in.PrioritySum[i]
		if p.relocates {
			out.Tiers[3][i] = RelocationTier(in, i)
		}
		total, parts := Parts(in, in.FitAfter, i)
		score[i] = total / parts
	}
	return nil
}

// Parts returns the sum and the number of the parts of option i's rank: fit[i], which
// is one of the two fits of the options, and the components that are present, added
// in order. Their quotient is the mean.
func Parts(in *policy.Options, fit []float64, i int) (sum, n float64) {
	sum, n = fit[i], 1
	if len(in.Present) == 0 || in.Present[i] == 0 {
		return sum, n
	}
	for k := range in.Components {
		if in.Present[i]>>k&1 != 0 {
			sum += in.Components[k][i]
			n++
		}
	}
	return sum, n
}
