package state

import (
	"slices"

	"github.com/cede-scheduler/cede/core/model"
)

// FreeCapacityFor returns the offer of the node at pos to a requester: its free capacity
// less the claims that count against this requester at now, in Unix nanoseconds. If there
// are no such claims, it is Chunk.FreeCapacity and scratch is not used; otherwise the
// amounts are in scratch, which must live as long as the result. A result without a
// copy refers to the chunk: its Stride is ChunkSize, and it must not be changed.
func (v *View) FreeCapacityFor(pos int32, requester model.JobKey, priority int32, now int64, scratch *model.Vector) model.FreeCapacity {
	c, i := v.chunks[pos/ChunkSize], int(pos%ChunkSize)
	free := c.FreeCapacity(i)
	copied := false
	for _, claim := range c.extra(i).claims {
		if !claim.CountsAgainst(requester, priority, now) {
			continue
		}
		if !copied {
			free = v.copyCapacity(free, scratch)
			copied = true
		}
		scratch.Sub(&claim.Vec)
		free.Ports = append(free.Ports, claim.Ports...)
		subtractDevices(free.Devices, c.Node(i), claim.Devices, 1)
	}
	if copied {
		slices.Sort(free.Ports)
	}
	return free
}

// copyCapacity returns a copy with its amounts in scratch.
func (v *View) copyCapacity(r model.FreeCapacity, scratch *model.Vector) model.FreeCapacity {
	*scratch = model.Vector{}
	for d := range v.dims.Len() {
		scratch[d] = r.Free[d*r.Stride]
	}
	return model.NewFreeCapacity(scratch, slices.Clone(r.Ports), slices.Clone(r.Devices))
}
