package nomad

import (
	"math"

	"github.com/cede-scheduler/cede/sdk/fmath"
	"github.com/cede-scheduler/cede/sdk/policy"
	"github.com/cede-scheduler/cede/sdk/rules"
)

// ScoreOptions implements policy.OptionScorer (1.7 of the reference): the mean
// of the fit with the victims still counted, the components present, and a
// score for whom it evicts. Of the device groups of one node all but the best
// are put behind every other option.
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
// priorities start at 1; where the highest is not above 0 the quotient has no
// meaning, and the highest stands alone.
func preemptionScore(highest int32, sum int64) float64 {
	net := float64(highest)
	if highest > 0 {
		net += float64(sum) / float64(highest)
	}
	return 1 / (1 + fmath.Exp(0.0048*(net-2048)))
}

// preferDeviceGroups sets tier to 1 for all but the best of the options of each
// node, which are neighbours. Requests are served one after the other, so the
// net priority of the first decides, then that of the second.
func (p *Policy) preferDeviceGroups(in *policy.Options, tier []int64) {
	requests := len(in.DeviceNeed)
	n := in.Len()
	if need := n * requests; need > cap(p.nets) {
		p.nets = make([]int64, need+need/2)
	}
	p.nets = p.nets[:n*requests]
	for best, i := 0, 0; i < n; i++ {
		if i == 0 || in.Node[i] != in.Node[i-1] {
			alone := i+1 == n || in.Node[i+1] != in.Node[i]
			if !alone {
				netPriorities(in, i, p.nets[i*requests:(i+1)*requests])
			}
			best = i
			continue
		}
		netPriorities(in, i, p.nets[i*requests:(i+1)*requests])
		if less(p.nets[i*requests:(i+1)*requests], p.nets[best*requests:(best+1)*requests]) {
			tier[best], best = 1, i
		} else {
			tier[i] = 1
		}
	}
}

func less(a, b []int64) bool {
	for k := range a {
		if a[k] != b[k] {
			return a[k] < b[k]
		}
	}
	return false
}

// noEviction is the net priority of a device group with enough free instances.
const noEviction = math.MinInt64

// netPriorities sets nets[r] to the sum of the distinct priorities of what
// option i evicts for device request r. It replays the steps of SelectVictims
// on the list that they made.
func netPriorities(in *policy.Options, i int, nets []int64) {
	from, end := int(in.FirstVictim[i]), int(in.FirstVictim[i+1])
	next := from + portHolders(in, from, end)
	for r := range nets {
		held := in.Victims.Devices[r]
		lacking := in.DeviceNeed[r][i]
		for v := from; v < next; v++ {
			lacking -= held[v]
		}
		if lacking <= 0 {
			nets[r] = noEviction
			continue
		}
		for next < end && held[next] <= 0 { // taken for bandwidth
			next++
		}
		start := next
		next = deviceVictims(in, r, start, end, lacking)
		nets[r] = distinctSum(in.Victims.Priority[start:next])
	}
}

// portHolders is how many victims at the head of the list the network step
// took for sure: those up to the last that holds a needed port.
func portHolders(in *policy.Options, from, end int) int {
	if len(in.Victims.MustLeave) == 0 {
		return 0
	}
	for v := end; v > from; v-- {
		if in.Victims.MustLeave[v-1]&policy.MustLeavePort != 0 {
			return v - from
		}
	}
	return 0
}

// deviceVictims returns the end of what was taken for request r from victim
// start on. Victims stand in the order of the device filter, which stops at the
// full count; where all of them together stay below, those of the next step
// follow. One of these can be told: priorities rise while victims are taken, so
// once there were enough, only one of lower priority can still be of this step.
// One of equal priority changes no sum of distinct priorities.
func deviceVictims(in *policy.Options, r, start, end int, lacking float64) int {
	held, priority := in.Victims.Devices[r], in.Victims.Priority
	count := float64(in.Preemptor.Devices[r].Count)
	sum, highest := 0.0, int32(math.MinInt32)
	for v := start; v < end; v++ {
		over := v > start && held[v] > held[v-1]
		if held[v] <= 0 || over || sum >= count || sum >= lacking && priority[v] >= highest {
			return v
		}
		sum += held[v]
		highest = max(highest, priority[v])
	}
	return end
}

// distinctSum adds each priority once.
func distinctSum(priorities []int32) int64 {
	sum := int64(0)
next:
	for k, p := range priorities {
		for _, seen := range priorities[:k] {
			if seen == p {
				continue next
			}
		}
		sum += int64(p)
	}
	return sum
}
