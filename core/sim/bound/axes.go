package bound

import (
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
)

// axes are the dimensions of a problem: the resources, device groups and host ports that
// its groups request.
type axes struct {
	resources []uint8
	devices   []string // IDs of device groups
	ports     []uint16
}

func newAxes(job *model.Job, counts []int, snap *state.Snapshot) (x axes) {
	var requests []model.DeviceRequest
	for at, g := range job.Groups {
		if counts[at] == 0 {
			continue
		}
		for _, d := range g.Ask.Dims {
			x.resources = add(x.resources, d)
		}
		for _, p := range g.Ask.Ports {
			x.ports = add(x.ports, p)
		}
		requests = append(requests, g.Ask.Devices...)
	}
	if len(requests) == 0 {
		return x
	}
	for n := range snap.Nodes() {
		for i := range n.Devices {
			if slices.ContainsFunc(requests, func(r model.DeviceRequest) bool { return r.Matches(&n.Devices[i]) }) {
				x.devices = add(x.devices, n.Devices[i].ID)
			}
		}
	}
	return x
}

// add appends a value unless the list contains it.
func add[T comparable](list []T, v T) []T {
	if slices.Contains(list, v) {
		return list
	}
	return append(list, v)
}

func (x *axes) empty() []int64 {
	return make([]int64, 0, len(x.resources)+len(x.devices)+len(x.ports))
}

// free returns the free amounts of a node.
func (x *axes) free(n *model.Node, room *model.FreeCapacity) []int64 {
	out := x.empty()
	for _, d := range x.resources {
		out = append(out, room.Free[int(d)*room.Stride])
	}
	for _, id := range x.devices {
		free := int64(0)
		if at := n.DevicePosition(id); at >= 0 {
			free = int64(room.Devices[at])
		}
		out = append(out, free)
	}
	for _, p := range x.ports {
		out = append(out, 1-countOf(room.Ports, p))
	}
	return out
}

func countOf(list []uint16, v uint16) (n int64) {
	for _, x := range list {
		if x == v {
			n++
		}
	}
	return n
}

// frees returns the amounts that evicting an allocation frees.
func (x *axes) frees(a *model.Allocation) []int64 {
	out := x.empty()
	for _, d := range x.resources {
		out = append(out, a.Group.Ask.Vec[d])
	}
	for _, id := range x.devices {
		free := int64(0)
		for _, u := range a.Devices {
			if u.ID == id {
				free += int64(u.Count)
			}
		}
		out = append(out, free)
	}
	for _, p := range x.ports {
		out = append(out, countOf(a.Group.Ask.Ports, p))
	}
	return out
}

// ask returns what an instance uses of a node if its device requests are served by the
// device groups at choice.
func (x *axes) ask(g *model.Group, n *model.Node, choice []int16) []int64 {
	out := x.empty()
	for _, d := range x.resources {
		out = append(out, g.Ask.Vec[d])
	}
	for _, id := range x.devices {
		used := int64(0)
		for r, at := range choice {
			if n.Devices[at].ID == id {
				used += int64(g.Ask.Devices[r].Count)
			}
		}
		out = append(out, used)
	}
	for _, p := range x.ports {
		out = append(out, countOf(g.Ask.Ports, p))
	}
	return out
}
