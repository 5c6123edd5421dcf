package optimal

import (
	"math"

	"github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/rules"
)

// ScoreOptions implements policy.OptionScorer: the tiers are the parts of the
// cost of the victims, in their order, then their highest priority; the score is
// the node's ranking with the victims gone. By priority that is how default
// chooses.
func (p *Policy) ScoreOptions(in *policy.Options, out *policy.OptionScores) error {
	if p.cost == byPriority {
		return p.greedy.ScoreOptions(in, out)
	}
	if p.cost == byWaste {
		p.waste.Load(&in.Victims, in.Shared)
	}
	waste, count, sum, highest := out.Tiers[0], out.Tiers[1], out.Tiers[2], out.Tiers[3]
	for i := range in.Len() {
		if p.cost == byWaste {
			for row := int(in.FirstVictim[i]); row < int(in.FirstVictim[i+1]); row++ {
				waste[i] += p.waste.Of(row)
			}
		}
		count[i], sum[i], highest[i] = int64(in.VictimCount[i]), in.PrioritySum[i], int64(in.HighestPriority[i])
		if in.VictimCount[i] == 0 {
			waste[i] = math.MinInt64 // no eviction beats any
		}
		total, parts := rules.Parts(in, in.FitAfter, i)
		out.Score[i] = total / parts
	}
	return nil
}
