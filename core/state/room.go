package state

import (
	"slices"

	"github.com/cede-scheduler/cede/core/model"
)

// FreeCapacityFor is what the node at pos offers to an asker: its room less the claims
// that count against this asker at now. Where there are none it is Chunk.Room
// and scratch stays as it is; else the amounts are in scratch, which must live
// as long as the result.
func (v *View) FreeCapacityFor(pos int32, asker model.JobKey, priority int32, now int64, scratch *model.Vector) model.FreeCapacity {
	c, i := v.chunks[pos/ChunkSize], int(pos%ChunkSize)
	room := c.FreeCapacity(i)
	taken := false
	for _, claim := range c.extra(i).claims {
		if !claim.CountsAgainst(asker, priority, now) {
			continue
		}
		if !taken {
			room = v.ownRoom(room, scratch)
			taken = true
		}
		scratch.Sub(&claim.Vec)
		room.Ports = append(room.Ports, claim.Ports...)
		takeDevices(room.Devices, c.Node(i), claim.Devices, 1)
	}
	if taken {
		slices.Sort(room.Ports)
	}
	return room
}

func (v *View) ownRoom(r model.FreeCapacity, scratch *model.Vector) model.FreeCapacity {
	*scratch = model.Vector{}
	for d := range v.dims.Len() {
		scratch[d] = r.Free[d*r.Stride]
	}
	return model.NewFreeCapacity(scratch, slices.Clone(r.Ports), slices.Clone(r.Devices))
}
