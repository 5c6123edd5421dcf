package kubernetes

import (
	"math"

	"github.com/cede-scheduler/cede/sdk/policy"
)

// shift makes every priority a number of 0 or more, so that fewer victims beat a sum
// of negative priorities.
const shift = 1 << 31

// ScoreOptions implements policy.OptionScorer.
func (p *Policy) ScoreOptions(in *policy.Options, out *policy.OptionScores) error {
	for i := range in.Len() {
		out.Tiers[0][i] = violations(in, i)<<32 + int64(in.HighestPriority[i]) + shift
		out.Tiers[1][i] = in.PrioritySum[i] + int64(in.VictimCount[i])*shift
		out.Tiers[2][i] = int64(in.VictimCount[i])
		out.Tiers[3][i] = -in.Start[i]
	}
	if p.percentage < everything && !perNode(in.Preemptor) {
		p.sample(in, out.Tiers[0])
	}
	return nil
}

// violations returns the number of victims that overrun budgets.
func violations(in *policy.Options, i int) int64 {
	if len(in.BudgetViolations) == 0 {
		return 0
	}
	return int64(in.BudgetViolations[i])
}

// perNode reports whether the preemptor runs on every node: each of its instances has
// one feasible node.
func perNode(p *policy.Preemptor) bool { return p.JobType == "system" || p.JobType == "sysbatch" }

// sample omits options as kube-scheduler does, which examines no more than it needs:
// it walks in a circle from a start until it has found enough options, at least one
// of which overruns no budget; of options that overrun one it retains at most that
// number. The start follows from the preemptor and the number of its attempts,
// because a policy has no source of randomness.
func (p *Policy) sample(in *policy.Options, tier []int64) {
	n := in.Len()
	enough := min(n, int(max(int64(n)*p.percentage/100, min(p.absolute, int64(n)))))
	if n == 0 {
		return
	}
	seen, harmless := 0, false
	for k, at := 0, int(begin(in.Preemptor)%uint64(n)); k < n; k, at = k+1, (at+1)%n {
		overruns := violations(in, at) > 0
		if seen >= enough && (harmless || overruns) {
			tier[at] = math.MaxInt64
			continue
		}
		seen++
		harmless = harmless || !overruns
	}
}

// begin returns a number that differs between preemptors and between attempts
// (FNV-1a).
func begin(p *policy.Preemptor) uint64 {
	h := uint64(14695981039346656037)
	add := func(b byte) { h = (h ^ uint64(b)) * 1099511628211 }
	for _, text := range []string{p.Namespace, p.Job, p.Group} {
		for i := range len(text) {
			add(text[i])
		}
		add(0)
	}
	for shift := 0; shift < 32; shift += 8 {
		add(byte(p.Attempts >> shift))
	}
	return h
}
