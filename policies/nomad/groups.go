package nomad

import (
	"math"
	"slices"

	"github.com/cede-scheduler/cede/sdk/policy"
)

// preferDeviceGroups sets tier to 1 for all but the best of the options of each node,
// which are adjacent. Requests are served one after the other, so that the net
// priority of the first decides, then that of the second.
func (p *Policy) preferDeviceGroups(in *policy.Options, tier []int64) {
	requests, network := len(in.DeviceNeed), slices.Index(in.Dims, Network)
	n := in.Len()
	if need := n * requests; need > cap(p.nets) {
		p.nets = make([]int64, need+need/2)
	}
	p.nets = p.nets[:n*requests]
	for best, i := 0, 0; i < n; i++ {
		if i == 0 || in.Node[i] != in.Node[i-1] {
			alone := i+1 == n || in.Node[i+1] != in.Node[i]
			if !alone {
				netPriorities(in, i, network, p.nets[i*requests:(i+1)*requests])
			}
			best = i
			continue
		}
		netPriorities(in, i, network, p.nets[i*requests:(i+1)*requests])
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

// netPriorities sets nets[r] to the sum of the distinct priorities of the victims of
// option i for device request r. It replays the steps of SelectVictims on their list
// of victims. The result is exact except for a victim that holds instances for two
// requests, which may be attributed to the later one.
func netPriorities(in *policy.Options, i, network int, nets []int64) {
	from, end := int(in.FirstVictim[i]), int(in.FirstVictim[i+1])
	next := networkVictims(in, i, network)
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
		// A victim without an instance belongs to the preceding request if
		// deviceVictims could not attribute it.
		for next < end && held[next] <= 0 {
			next++
		}
		start := next
		next = deviceVictims(in, r, start, end, lacking)
		nets[r] = distinctSum(in.Victims.Priority[start:next])
	}
}

// networkVictims returns the end of the network step's victims: the shortest prefix
// of the list that holds all owners of needed ports and enough bandwidth.
func networkVictims(in *policy.Options, i, network int) int {
	from, end := int(in.FirstVictim[i]), int(in.FirstVictim[i+1])
	next := from
	if len(in.Victims.MustLeave) > 0 {
		for v := from; v < end; v++ {
			if in.Victims.MustLeave[v]&policy.MustLeavePort != 0 {
				next++ // at least as many victims
			}
		}
	}
	if network < 0 || len(in.Need) == 0 {
		return next
	}
	lacking, use := in.Need[network][i], in.Victims.Use[network]
	for v := from; v < end && (v < next || lacking > 0); v++ {
		lacking -= use[v]
		next = max(next, v+1)
	}
	return next
}

// deviceVictims returns the end of the victims for request r that start at position
// start. Victims are in the order of the device filter, which stops at the full
// count; if all of them together are fewer, the victims of the next step follow. The
// boundary can be detected in one case: priorities rise while victims are picked, so
// that, once there are enough, only a victim of lower priority can belong to this
// step. One of equal priority does not change the sum of distinct priorities.
func deviceVictims(in *policy.Options, r, start, end int, lacking float64) int {
	held, priority := in.Victims.Devices[r], in.Victims.Priority
	count := float64(in.Preemptor.Devices[r].Count)
	sum, highest := 0.0, int32(math.MinInt32)
	for v := start; v < end; v++ {
		if held[v] <= 0 || sum >= count || sum >= lacking && priority[v] >= highest {
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
