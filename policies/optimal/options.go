package optimal

import (
	"math"

	"github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/rules"
)

// ScoreOptions implements policy.OptionScorer. The tiers are the number of victims
// that overrun budgets, the parts of the victims' cost, in order, and their highest
// priority; the score is the node's rank without the victims. With cost priority the
// order is that of default.
func (p *Policy) ScoreOptions(in *policy.Options, out *policy.OptionScores) error {
	if p.cost == byPriority {
		err := p.greedy.ScoreOptions(in, out)
		for i, n := range in.BudgetViolations {
			out.Tiers[0][i] += int64(n) << 33 // above every priority
		}
		return err
	}
	if p.cost == byWaste {
		p.waste.Load(&in.Victims, in.Shared)
	}
	violations, waste, amount, highest := out.Tiers[0], out.Tiers[1], out.Tiers[2], out.Tiers[3]
	for i, n := range in.BudgetViolations {
		violations[i] = int64(n)
	}
	for i := range in.Len() {
		if p.cost == byWaste {
			for row := int(in.FirstVictim[i]); row < int(in.FirstVictim[i+1]); row++ {
				waste[i] += p.waste.Of(row)
			}
		}
		amount[i] = int64(in.VictimCount[i])<<44 + in.PrioritySum[i] // first how many
		highest[i] = int64(in.HighestPriority[i])
		if in.VictimCount[i] == 0 {
			waste[i] = math.MinInt64 // no eviction is better than any
		}
		total, parts := rules.Parts(in, in.FitAfter, i)
		out.Score[i] = total / parts
	}
	return nil
}
