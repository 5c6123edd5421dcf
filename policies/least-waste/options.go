package leastwaste

import (
	"math"

	"github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/rules"
)

// ScoreOptions implements policy.OptionScorer. The tiers are the highest disturbed
// band, the waste in that band, the total waste, and the highest priority of a
// victim with where the victims could run instead; the score is the node's rank without the victims. An option without victims
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
		out.Tiers[3][i] = p.lastTier(in, i)
		total, parts := rules.Parts(in, in.FitAfter, i)
		out.Score[i] = total / parts
	}
	return nil
}

// most is the largest number of victims that lastTier counts.
const most = 1<<15 - 1

// lastTier returns the highest priority of a victim of option i, then the number of victims
// that fit nowhere else, then the number of those that fit only by evicting others.
func (p *Policy) lastTier(in *policy.Options, i int) int64 {
	highest := int64(in.HighestPriority[i])
	if !p.relocates || len(in.Stranded) == 0 {
		return highest
	}
	return highest<<30 + int64(min(in.Stranded[i], most))<<15 + int64(min(in.Displacing[i], most))
}
