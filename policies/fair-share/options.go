package fairshare

import (
	"math"

	"github.com/cede-scheduler/cede/sdk/policy"
)

// ScoreOptions implements policy.OptionScorer. It prefers the option whose least
// burdened victim's namespace has the highest share. Shares are those before any
// eviction, so that many options are equal; ties are broken as by default.
func (p *Policy) ScoreOptions(in *policy.Options, out *policy.OptionScores) error {
	if err := p.options.ScoreOptions(in, out); err != nil {
		return err
	}
	for tier := len(out.Tiers) - 1; tier > 0; tier-- {
		copy(out.Tiers[tier], out.Tiers[tier-1])
	}
	p.shares.load(in.Shared, in.Strings, in.Preemptor)
	for i := range in.Len() {
		if in.VictimCount[i] == 0 {
			out.Tiers[0][i] = math.MinInt64
			continue
		}
		least := math.Inf(1)
		for v := in.FirstVictim[i]; v < in.FirstVictim[i+1]; v++ {
			least = min(least, p.shares.of(in.Victims.Namespace[v]))
		}
		out.Tiers[0][i] = -millionths(least)
	}
	return nil
}

// millionths converts a share into a tier: smaller differences count as equal.
func millionths(share float64) int64 {
	return int64(math.Round(float64(min(share, 1e9) * 1e6)))
}
