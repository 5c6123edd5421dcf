package sim

import (
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/preempt"
	"github.com/cede-scheduler/cede/core/sim/metrics"
	"github.com/cede-scheduler/cede/core/state"
)

// replayState is the state as a plan's placements take effect one by one, so that
// each choice is judged by the state before it.
type replayState struct {
	snap  *state.Snapshot
	since []replayedPlacement // applied on top of snap; most plans have no victims and do not need the state
}

// replayedPlacement is a placement with its victims.
type replayedPlacement struct {
	alloc   *model.Allocation
	victims []*model.Allocation
}

// apply applies a placement and its victims. Placements without victims count as
// well: they use capacity that the next one lacks.
func (u *replayState) apply(a *model.Allocation, victims []*model.Allocation) {
	u.since = append(u.since, replayedPlacement{a, victims})
}

// current returns the state with all placements applied so far.
func (u *replayState) current() *state.Snapshot {
	if len(u.since) == 0 {
		return u.snap
	}
	txn := u.snap.Fork(u.snap.Index() + 1)
	for _, p := range u.since {
		for _, v := range p.victims {
			gone := *v
			gone.Desired = model.DesiredEvict
			txn.AllocWriter().Upsert(&gone)
		}
		came := *p.alloc
		txn.AllocWriter().Upsert(&came)
	}
	u.snap, u.since = txn.Snapshot(), u.since[:0]
	return u.snap
}

// choose describes the choice that a preemption made: the shortfall of the node, and
// the amounts that each eligible allocation there frees of it.
func (r *recorder) choose(e *engine, snap *state.Snapshot, a *model.Allocation) *metrics.Choice {
	pos, ok := snap.Position(a.NodeID)
	version, err := e.policies.Select(a.Job.Policy, snap.Config().Policy)
	if !ok || err != nil {
		return nil
	}
	var claims model.Vector
	room := snap.FreeCapacityFor(pos, a.Job.Key(), a.Job.Priority, e.now(), &claims)
	q := newShortfall(a, snap.NodeAt(pos), room)
	rows := snap.Chunk(int(pos) / state.ChunkSize).Rows(int(pos) % state.ChunkSize)
	ceiling := preempt.Ceiling(a.Job.Priority, version, snap.Config().PriorityDelta)
	r.choice.Reset(q.need(rows)...)
	for i := range rows {
		row := &rows[i]
		if int64(row.Priority) > ceiling || row.Group.Job.NonPreemptible || row.Group.Job.Key() == a.Job.Key() {
			continue
		}
		if _, spared := row.Group.Job.ProtectedFrom(row.Alloc, a.Job.Priority, e.now()); spared {
			continue
		}
		r.choice.Add(q.frees(row)...)
	}
	return &r.choice
}

// A shortfall holds the resources that a placement lacked before its victims were evicted.
type shortfall struct {
	alloc   *model.Allocation
	dims    []uint8 // dimensions with a shortfall
	short   []int64 // by dims
	devices map[string]int64
	ids     []string // of device groups with a shortfall, in the order of requests
}

func newShortfall(a *model.Allocation, n *model.Node, room model.FreeCapacity) *shortfall {
	q := &shortfall{alloc: a, devices: map[string]int64{}}
	for _, d := range a.Group.Ask.Dims {
		if short := a.Group.Ask.Vec[d] - room.Free[int(d)*room.Stride]; short > 0 {
			q.dims, q.short = append(q.dims, d), append(q.short, short)
		}
	}
	asked := map[string]int64{}
	for _, u := range a.Devices {
		asked[u.ID] += int64(u.Count)
	}
	for _, u := range a.Devices {
		at := n.DevicePosition(u.ID)
		if at < 0 || q.devices[u.ID] > 0 {
			continue
		}
		if short := asked[u.ID] - int64(room.Devices[at]); short > 0 {
			q.devices[u.ID], q.ids = short, append(q.ids, u.ID)
		}
	}
	return q
}

// need returns the amounts that must be freed, one per dimension: resources, devices,
// and the number of rows that hold a needed port.
func (q *shortfall) need(rows []state.Row) []int64 {
	need := append([]int64(nil), q.short...)
	for _, id := range q.ids {
		need = append(need, q.devices[id])
	}
	if len(q.alloc.Group.Ask.Ports) == 0 {
		return need
	}
	holders := int64(0)
	for i := range rows {
		holders += q.holdsPort(&rows[i])
	}
	if holders > 0 {
		need = append(need, holders)
	}
	return need
}

func (q *shortfall) holdsPort(row *state.Row) int64 {
	for _, p := range q.alloc.Group.Ask.Ports {
		if slices.Contains(row.Group.Ask.Ports, p) {
			return 1
		}
	}
	return 0
}

// frees returns the amounts of need that evicting a row frees.
func (q *shortfall) frees(row *state.Row) []int64 {
	var frees []int64
	for _, d := range q.dims {
		frees = append(frees, row.Group.Ask.Vec[d])
	}
	for _, id := range q.ids {
		n := int64(0)
		for _, u := range row.Alloc.Devices {
			if u.ID == id {
				n += int64(u.Count)
			}
		}
		frees = append(frees, n)
	}
	if len(q.alloc.Group.Ask.Ports) > 0 {
		frees = append(frees, q.holdsPort(row))
	}
	return frees
}
