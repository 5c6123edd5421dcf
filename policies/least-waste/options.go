package leastwaste

import (
	"math"

	"github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/rules"
)

// ScoreOptions implements policy.OptionScorer. The tiers are the highest disturbed
// band, the waste in that band, the total waste, and the highest priority of a
// victim; the score is the node's rank without the victims. An option without victims
// wins.
func (p *Policy) ScoreOptions(in *policy.Options, out *policy.OptionScores) error {
	p.waste.Load(&in.Victims, in.Shared)
	for i := range in.Len() {
		band := int64(math.MinInt64)
		if in.VictimCount[i] > 0 {
			band = int64(p.band(in.HighestPriority[i]))
		}
		out.Tiers[0][i] = band
		for row := int(in.FirstVictim[i]); row < int(in.FirstVictim[i+1]); row++ {
			out.Tiers[2][i] += p.cost(row)
			if int64(p.band(in.Victims.Priority[row])) == band {
				out.Tiers[1][i] += p.cost(row)
			}
		}
		out.Tiers[3][i] = int64(in.HighestPriority[i])
		total, parts := rules.Parts(in, in.FitAfter, i)
		out.Score[i] = total / parts
	}
	return nil
}
