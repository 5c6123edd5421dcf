package nomad

import (
	"github.com/cede-scheduler/cede/sdk/fmath"
	"github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/rules"
)

// ScoreOptions implements policy.OptionScorer: the mean of the fit with the victims
// still counted, the components that are present, and a score for the victims. Among
// the device groups of one node, all but the best are ranked after every other
// option.
func (p *Policy) ScoreOptions(in *policy.Options, out *policy.OptionScores) error {
	weighVictims := in.Preemptor.JobType != "system" && in.Preemptor.JobType != "sysbatch"
	for i := range in.Len() {
		sum, parts := rules.Parts(in, in.FitBefore, i)
		if weighVictims && in.VictimCount[i] > 0 {
			sum += preemptionScore(in.HighestPriority[i], in.PrioritySum[i])
			parts++
		}
		out.Score[i] = sum / parts
	}
	if len(in.DeviceNeed) > 0 {
		p.preferDeviceGroups(in, out.Tiers[0])
	}
	return nil
}

// preemptionScore falls from 1 to 0 as the victims' priorities rise. Nomad's
// priorities start at 1; if the highest is not above 0, the quotient is undefined and
// the highest is used alone.
func preemptionScore(highest int32, sum int64) float64 {
	net := float64(highest)
	if highest > 0 {
		net += float64(sum) / float64(highest)
	}
	return 1 / (1 + fmath.Exp(float64(0.0048*(net-2048))))
}
