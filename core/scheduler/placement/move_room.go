package placement

import (
	"slices"

	"github.com/cede-scheduler/cede/core/model"
)

// A moveRoom computes the free capacity of a node without some of its instances. It copies
// amounts, ports and devices, because the capacity that it starts from is a view into the
// columns of the state. Rules are not part of it: instances to which rules apply are not moved,
// and the ranker checks those of the instance that needs room.
type moveRoom struct {
	node *model.Node
	free model.FreeCapacity
}

// room returns the free capacity of a node for the group.
func (s *moveSearch) room(pos int32) *moveRoom {
	snap := s.e.State.Snapshot()
	free := snap.FreeCapacityFor(pos, s.e.Job.Key(), s.e.Job.Priority, s.e.Now, new(model.Vector))
	return &moveRoom{node: snap.NodeAt(pos), free: free}
}

// covers reports whether a request fits once some instances have left.
func (r *moveRoom) covers(ask *model.Ask, without []*model.Allocation) bool {
	var free model.Vector
	for _, d := range ask.Dims {
		free[d] = r.free.Free[int(d)*r.free.Stride]
		for _, a := range without {
			free[d] += a.Group.Ask.Vec[d]
		}
		if free[d] < ask.Vec[d] {
			return false
		}
	}
	if len(ask.Ports)+len(ask.Devices) == 0 {
		return true
	}
	// Few requests have ports or devices, so the copies are made last.
	ports, devices := slices.Clone(r.free.Ports), slices.Clone(r.free.Devices)
	for _, a := range without {
		for _, port := range a.Group.Ask.Ports {
			if at, ok := slices.BinarySearch(ports, port); ok {
				ports = slices.Delete(ports, at, at+1)
			}
		}
		for i := range a.Devices {
			if at := r.node.DevicePosition(a.Devices[i].ID); at >= 0 {
				devices[at] += a.Devices[i].Count
			}
		}
	}
	room := model.NewFreeCapacity(&free, ports, devices)
	return slices.ContainsFunc(r.node.DeviceChoices(ask), func(choice []int16) bool {
		return model.Fits(room, ask, choice).Kind == model.ShortageNone
	})
}

// isMinimal reports whether the request fits only if all of the instances have left. A move that
// is not necessary would restart work for nothing.
func (r *moveRoom) isMinimal(ask *model.Ask, without []*model.Allocation) bool {
	for i := range without {
		if r.covers(ask, slices.Delete(slices.Clone(without), i, i+1)) {
			return false
		}
	}
	return true
}
