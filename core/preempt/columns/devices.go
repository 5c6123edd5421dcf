package columns

import "github.com/cede-scheduler/cede/core/model"

// DeviceNeed returns how many instances device request r lacks, with choice[r] the
// device group that serves it. Earlier requests for the same group are counted in.
func DeviceNeed(ask *model.Ask, capacity model.FreeCapacity, choice []int16, r int) float64 {
	need := ask.Devices[r].Count - capacity.Devices[choice[r]]
	for earlier := range r {
		if choice[earlier] == choice[r] {
			need += ask.Devices[earlier].Count
		}
	}
	return float64(need)
}

// DeviceUse returns how many instances of the node's device group at a position an
// allocation holds.
func DeviceUse(node *model.Node, a *model.Allocation, position int16) float64 {
	n := int32(0)
	for _, u := range a.Devices {
		if node.Devices[position].ID == u.ID {
			n += u.Count
		}
	}
	return float64(n)
}
