package planner

import (
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
)

// rooms is what the nodes that a plan touches have left for it, the groups
// accepted so far taken into account. Every change is journalled, so that a
// group that turns out not to hold can be taken back.
type rooms struct {
	snap *state.Snapshot
	plan *model.Plan
	now  int64

	// slot has, by node position, one more than the position in open.
	slot []int32
	open []nodeRoom

	// lost lists what this plan ends on nodes that are not registered any more.
	lost []*model.Allocation

	journal []change
}

// nodeRoom is one node as the plan finds it.
type nodeRoom struct {
	pos  int32
	node *model.Node

	free    model.Vector
	ports   []uint16 // taken, ascending; a port that two hold is listed twice
	devices []int32  // free, by position in Node.Devices
	// Most plans touch neither ports nor devices, so they are shared with the
	// state until the first change.
	ownsPorts, ownsDevices bool

	// gone lists what the accepted groups and this one stop or evict here.
	gone []*model.Allocation
}

// change is one entry of the journal.
type change struct {
	kind changeKind
	at   int32 // in open
	ask  *model.Ask
	uses []model.DeviceUse
}

type changeKind uint8

const (
	changeTook changeKind = iota
	changeGave
	changeGone
	changeLost
)

// reset starts a plan.
func (r *rooms) reset(snap *state.Snapshot, plan *model.Plan, now int64) {
	for i := range r.open {
		r.slot[r.open[i].pos] = 0
	}
	if n := snap.ChunkCount() * state.ChunkSize; n > len(r.slot) {
		r.slot = make([]int32, n)
	}
	r.snap, r.plan, r.now = snap, plan, now
	r.open, r.lost, r.journal = r.open[:0], r.lost[:0], r.journal[:0]
}

// release forgets what the last plan referred to, so that an idle applier
// holds no old snapshot in memory.
func (r *rooms) release() {
	for i := range r.open {
		n := &r.open[i]
		r.slot[n.pos] = 0
		n.node = nil
		clear(n.gone)
	}
	clear(r.lost)
	clear(r.journal)
	r.open, r.lost, r.journal = r.open[:0], r.lost[:0], r.journal[:0]
	r.snap, r.plan = nil, nil
}

// at opens the node at a position.
func (r *rooms) at(pos int32) int32 {
	if i := r.slot[pos]; i > 0 {
		return i - 1
	}
	i := len(r.open)
	if i < cap(r.open) {
		r.open = r.open[:i+1] // with the memory that an earlier plan left there
	} else {
		r.open = append(r.open, nodeRoom{})
	}
	r.slot[pos] = int32(i) + 1
	n := &r.open[i]
	n.pos, n.node = pos, r.snap.NodeAt(pos)
	n.gone = n.gone[:0]

	room := r.snap.FreeCapacityFor(pos, r.plan.Job, r.plan.Priority, r.now, &n.free)
	if room.Stride != 1 {
		for d := range r.snap.Dims().Len() {
			n.free[d] = room.Free[d*room.Stride]
		}
	}
	// What was owned for an earlier plan is not reused: it may be large, and
	// ports and devices are rare.
	n.ports, n.devices = room.Ports, room.Devices
	n.ownsPorts, n.ownsDevices = false, false
	return int32(i)
}

// fits is the one test.
func (r *rooms) fits(at int32, ask *model.Ask, choice []int16) model.Shortage {
	n := &r.open[at]
	return model.Fits(model.NewFreeCapacity(&n.free, n.ports, n.devices), ask, choice)
}

// take takes an ask off the node, give gives it back.
func (r *rooms) take(at int32, ask *model.Ask, uses []model.DeviceUse) {
	r.open[at].move(ask, uses, -1)
	r.journal = append(r.journal, change{changeTook, at, ask, uses})
}

func (r *rooms) give(at int32, ask *model.Ask, uses []model.DeviceUse) {
	r.open[at].move(ask, uses, 1)
	r.journal = append(r.journal, change{changeGave, at, ask, uses})
}

// end frees what a live allocation takes and remembers that it is gone; false
// when this plan had ended it before.
func (r *rooms) end(a *model.Allocation) bool {
	pos, ok := r.snap.Position(a.NodeID)
	if !ok {
		if slices.Contains(r.lost, a) {
			return false
		}
		r.lost = append(r.lost, a)
		r.journal = append(r.journal, change{kind: changeLost})
		return true
	}
	at := r.at(pos)
	n := &r.open[at]
	if slices.Contains(n.gone, a) {
		return false
	}
	n.gone = append(n.gone, a)
	r.journal = append(r.journal, change{kind: changeGone, at: at})
	r.give(at, &a.Group.Ask, a.Devices)
	return true
}

// ended is whether this plan ends the allocation.
func (r *rooms) ended(a *model.Allocation) bool {
	pos, ok := r.snap.Position(a.NodeID)
	if !ok {
		return slices.Contains(r.lost, a)
	}
	i := r.slot[pos]
	return i > 0 && slices.Contains(r.open[i-1].gone, a)
}

// undo takes back everything since the journal had this length.
func (r *rooms) undo(length int) {
	for i := len(r.journal) - 1; i >= length; i-- {
		c := &r.journal[i]
		switch c.kind {
		case changeTook:
			r.open[c.at].move(c.ask, c.uses, 1)
		case changeGave:
			r.open[c.at].move(c.ask, c.uses, -1)
		case changeGone:
			n := &r.open[c.at]
			n.gone = n.gone[:len(n.gone)-1]
		case changeLost:
			r.lost = r.lost[:len(r.lost)-1]
		}
	}
	clear(r.journal[length:])
	r.journal = r.journal[:length]
}

func (n *nodeRoom) move(ask *model.Ask, uses []model.DeviceUse, sign int64) {
	for _, d := range ask.Dims {
		n.free[d] += sign * ask.Vec[d]
	}
	if len(ask.Ports) > 0 {
		n.movePorts(ask.Ports, sign)
	}
	if len(uses) > 0 {
		n.moveDevices(uses, int32(sign))
	}
}

func (n *nodeRoom) movePorts(ports []uint16, sign int64) {
	if !n.ownsPorts {
		n.ports, n.ownsPorts = slices.Clone(n.ports), true
	}
	for _, p := range ports {
		at, found := slices.BinarySearch(n.ports, p)
		switch {
		case sign < 0:
			n.ports = slices.Insert(n.ports, at, p)
		case found:
			n.ports = slices.Delete(n.ports, at, at+1)
		}
	}
}

// moveDevices leaves out device groups that the node no longer has.
func (n *nodeRoom) moveDevices(uses []model.DeviceUse, sign int32) {
	if !n.ownsDevices {
		n.devices, n.ownsDevices = slices.Clone(n.devices), true
	}
	for i := range uses {
		if at := n.node.DevicePosition(uses[i].ID); at >= 0 && at < len(n.devices) {
			n.devices[at] += sign * uses[i].Count
		}
	}
}
