package planner

import (
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
)

// nodeCapacity tracks the free capacity of the nodes that a plan touches, including the
// effect of the groups accepted so far. Every change is journaled, so that a group that
// does not hold can be rolled back. The zero value is ready. Its memory is reused: a
// plan costs the nodes that it touches, not those of the cluster.
type nodeCapacity struct {
	snap *state.Snapshot
	plan *model.Plan
	now  int64

	// slot holds, by node position, one more than the position in nodes; 0 if not
	// open.
	slot  []int32
	nodes []nodeState

	// lost lists the allocations that this plan ends on nodes that are not
	// registered.
	lost []*model.Allocation

	journal []change
}

// nodeState is one node as the plan changes it.
type nodeState struct {
	pos  int32
	node *model.Node

	free    model.Vector
	ports   []uint16 // taken, ascending; a port with two holders is listed twice
	devices []int32  // free, by position in Node.Devices
	// Most plans use neither ports nor devices, so these are shared with the state
	// until the first change.
	ownsPorts, ownsDevices bool

	// gone lists the allocations that the accepted groups and the current one end
	// here.
	gone []*model.Allocation
}

// A change is one entry of the journal.
type change struct {
	kind changeKind
	at   int32 // in open
	ask  *model.Ask
	uses []model.DeviceUse
}

type changeKind uint8

const (
	// changeEnded is always followed by the changeFreed of the same allocation, so that
	// a rollback in reverse order restores both.
	changeReserved changeKind = iota
	changeFreed
	changeEnded
	changeEndedOffNode
)

// reset prepares for a plan. slot grows with the cluster and is cleared by the nodes
// that were open, so a plan never pays for all nodes.
func (r *nodeCapacity) reset(snap *state.Snapshot, plan *model.Plan, now int64) {
	for i := range r.nodes {
		r.slot[r.nodes[i].pos] = 0
	}
	if n := snap.ChunkCount() * state.ChunkSize; n > len(r.slot) {
		r.slot = make([]int32, n)
	}
	r.snap, r.plan, r.now = snap, plan, now
	r.nodes, r.lost, r.journal = r.nodes[:0], r.lost[:0], r.journal[:0]
}

// release drops references to the last plan, so that an idle applier retains no old
// snapshot.
func (r *nodeCapacity) release() {
	for i := range r.nodes {
		n := &r.nodes[i]
		r.slot[n.pos] = 0
		n.node = nil
		clear(n.gone)
	}
	clear(r.lost)
	clear(r.journal)
	r.nodes, r.lost, r.journal = r.nodes[:0], r.lost[:0], r.journal[:0]
	r.snap, r.plan = nil, nil
}

// openNode returns the position in nodes of the node at a position. The first access
// copies the free capacity, less the claims of other jobs that count against this
// plan's job; later ones return the copy, with the changes of the plan.
func (r *nodeCapacity) openNode(pos int32) int32 {
	if i := r.slot[pos]; i > 0 {
		return i - 1
	}
	i := len(r.nodes)
	if i < cap(r.nodes) {
		r.nodes = r.nodes[:i+1] // reuses the memory of an earlier plan
	} else {
		r.nodes = append(r.nodes, nodeState{})
	}
	r.slot[pos] = int32(i) + 1
	n := &r.nodes[i]
	n.pos, n.node = pos, r.snap.NodeAt(pos)
	n.gone = n.gone[:0]

	room := r.snap.FreeCapacityFor(pos, r.plan.Job, r.plan.Priority, r.now, &n.free)
	// FreeCapacityFor did not use the scratch: the amounts are in the columns of the
	// chunk.
	if room.Stride != 1 {
		for d := range r.snap.Dims().Len() {
			n.free[d] = room.Free[d*room.Stride]
		}
	}
	// Owned slices of an earlier plan are not reused: they may be large, and ports
	// and devices are rare.
	n.ports, n.devices = room.Ports, room.Devices
	n.ownsPorts, n.ownsDevices = false, false
	return int32(i)
}

// fits calls model.Fits, the one test that scheduler, preemption and applier share.
func (r *nodeCapacity) fits(at int32, ask *model.Ask, choice []int16) model.Shortage {
	n := &r.nodes[at]
	return model.Fits(model.NewFreeCapacity(&n.free, n.ports, n.devices), ask, choice)
}

// reserve subtracts an ask from the node; unreserve returns it.
func (r *nodeCapacity) reserve(at int32, ask *model.Ask, uses []model.DeviceUse) {
	r.nodes[at].move(ask, uses, -1)
	r.journal = append(r.journal, change{changeReserved, at, ask, uses})
}

func (r *nodeCapacity) unreserve(at int32, ask *model.Ask, uses []model.DeviceUse) {
	r.nodes[at].move(ask, uses, 1)
	r.journal = append(r.journal, change{changeFreed, at, ask, uses})
}

// endAlloc frees what a live allocation uses and records that it ends. It returns
// false if this plan ended it before.
func (r *nodeCapacity) endAlloc(a *model.Allocation) bool {
	pos, ok := r.snap.Position(a.NodeID)
	if !ok {
		if slices.Contains(r.lost, a) {
			return false
		}
		r.lost = append(r.lost, a)
		r.journal = append(r.journal, change{kind: changeEndedOffNode})
		return true
	}
	at := r.openNode(pos)
	n := &r.nodes[at]
	if slices.Contains(n.gone, a) {
		return false
	}
	n.gone = append(n.gone, a)
	r.journal = append(r.journal, change{kind: changeEnded, at: at})
	r.unreserve(at, &a.Group.Ask, a.Devices)
	return true
}

// latest returns the time of the check, or that of the plan if it is later: the clock of
// the scheduler may be ahead.
func (r *nodeCapacity) latest() int64 { return max(r.now, r.plan.Now) }

// isLost reports whether a live allocation is lost with its node.
func (r *nodeCapacity) isLost(a *model.Allocation) bool {
	return a.LostWith(r.snap.Node(a.NodeID), r.latest())
}

// hasEnded reports whether this plan ends the allocation. The lists are short, as they
// hold only the allocations that one plan ends on one node.
func (r *nodeCapacity) hasEnded(a *model.Allocation) bool {
	pos, ok := r.snap.Position(a.NodeID)
	if !ok {
		return slices.Contains(r.lost, a)
	}
	i := r.slot[pos]
	return i > 0 && slices.Contains(r.nodes[i-1].gone, a)
}

// rollback reverts every change since the journal had this length. The reverse order
// matters: gone and lost are stacks.
func (r *nodeCapacity) rollback(length int) {
	for i := len(r.journal) - 1; i >= length; i-- {
		c := &r.journal[i]
		switch c.kind {
		case changeReserved:
			r.nodes[c.at].move(c.ask, c.uses, 1)
		case changeFreed:
			r.nodes[c.at].move(c.ask, c.uses, -1)
		case changeEnded:
			n := &r.nodes[c.at]
			n.gone = n.gone[:len(n.gone)-1]
		case changeEndedOffNode:
			r.lost = r.lost[:len(r.lost)-1]
		}
	}
	clear(r.journal[length:])
	r.journal = r.journal[:length]
}

// move adds sign times the request to the free capacity. Only the dimensions that the
// request uses are touched.
func (n *nodeState) move(ask *model.Ask, uses []model.DeviceUse, sign int64) {
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

// movePorts takes ports (sign -1) or frees them. A port that is taken already is listed
// a second time, so that it remains taken when one of its holders ends.
func (n *nodeState) movePorts(ports []uint16, sign int64) {
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

// moveDevices ignores device groups that the node no longer has.
func (n *nodeState) moveDevices(uses []model.DeviceUse, sign int32) {
	if !n.ownsDevices {
		n.devices, n.ownsDevices = slices.Clone(n.devices), true
	}
	for i := range uses {
		if at := n.node.DevicePosition(uses[i].ID); at >= 0 && at < len(n.devices) {
			n.devices[at] += sign * uses[i].Count
		}
	}
}
