package fsm

import (
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/replication/codec"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/state/apply"
)

func (a *applier) applyPlans(c *replication.ApplyPlans) *replication.Refusal {
	if c.Batch == nil {
		return replication.Refuse(replication.CodeInvalid, "plans without a batch")
	}
	a.resolve(c.Batch, nil)
	a.notice(c.Batch)
	evals, dropped := c.Batch.Apply(a.txn)
	a.addEvals(evals)
	a.result.Dropped = dropped
	return nil
}

// applyWhole writes a batch of which nothing may have changed since it was
// made: whoever confirmed it saw these placements and these victims.
func (a *applier) applyWhole(b *apply.Batch, registered *model.Job) *replication.Refusal {
	a.resolve(b, registered)
	for p := range b.Plans {
		for _, i := range b.Plans[p].Groups {
			if r := a.stillHolds(&b.Plans[p].Plan.Groups[i]); r != nil {
				return r
			}
		}
	}
	a.notice(b)
	evals, dropped := b.Apply(a.txn)
	if len(dropped) > 0 {
		return replication.Refuse(replication.CodeConflict, "the plan no longer holds: a node that it places on takes no work")
	}
	a.addEvals(evals)
	for _, id := range sortedSet(placedOn(b)) {
		if what := overfull(&a.txn.View, id); what != "" {
			return replication.Refuse(replication.CodeConflict, "the plan no longer holds: node %s lacks %s", id, what)
		}
	}
	return nil
}

func (a *applier) stillHolds(g *model.CommitGroup) *replication.Refusal {
	for _, p := range g.Placements {
		switch n := a.txn.Node(p.NodeID); {
		case p.Group == nil:
			return replication.Refuse(replication.CodeConflict, "the plan no longer holds: allocation %s exists, or its group is gone", p.ID)
		case n == nil:
			return replication.Refuse(replication.CodeConflict, "the plan no longer holds: node %s is gone", p.NodeID)
		case !n.IsEligible():
			return replication.Refuse(replication.CodeConflict, "the plan no longer holds: node %s takes no work", p.NodeID)
		}
	}
	for _, u := range g.Updates {
		if old := a.txn.Alloc(u.ID); u.Group == nil || old == nil || !old.Live() {
			return replication.Refuse(replication.CodeConflict, "the plan no longer holds: allocation %s is not there to be updated", u.ID)
		}
	}
	for i := range g.Evictions {
		if v := a.txn.Alloc(g.Evictions[i].AllocID); v == nil || !v.Live() {
			return replication.Refuse(replication.CodeConflict, "the plan no longer holds: allocation %s is not there to be evicted", g.Evictions[i].AllocID)
		}
	}
	for i := range g.Stops {
		if v := a.txn.Alloc(g.Stops[i].AllocID); v == nil || !v.Live() && !g.Stops[i].Lost {
			return replication.Refuse(replication.CodeConflict, "the plan no longer holds: allocation %s is not there to be stopped", g.Stops[i].AllocID)
		}
	}
	return nil
}

func placedOn(b *apply.Batch) (nodes []string) {
	for p := range b.Plans {
		for _, i := range b.Plans[p].Groups {
			g := &b.Plans[p].Plan.Groups[i]
			for _, list := range [2][]*model.Allocation{g.Placements, g.Updates} {
				for _, alloc := range list {
					nodes = append(nodes, alloc.NodeID)
				}
			}
		}
	}
	return nodes
}

// overfull is what more of a node is in use than it has; "" when nothing is.
func overfull(v *state.View, nodeID string) string {
	pos, ok := v.Position(nodeID)
	if !ok {
		return ""
	}
	room := v.Chunk(int(pos / state.ChunkSize)).FreeCapacity(int(pos % state.ChunkSize))
	for d := range v.Dims().Len() {
		if room.Free[d*room.Stride] < 0 {
			return v.Dims().Name(d)
		}
	}
	for i := 1; i < len(room.Ports); i++ {
		if room.Ports[i] == room.Ports[i-1] {
			return "a free port"
		}
	}
	for _, free := range room.Devices {
		if free < 0 {
			return "a free device"
		}
	}
	return ""
}

// resolve puts the versions of jobs in place of the references that an entry
// holds, and the state's own spelling of node ids, so that a million
// allocations do not each keep a copy. A placement whose version is not known
// any more, or that is there already, gets no group, and its commit group is
// dropped by whoever applies the batch.
func (a *applier) resolve(b *apply.Batch, registered *model.Job) {
	versions := map[*model.Job]*model.Job{}
	version := func(ref *model.Job) *model.Job {
		j, ok := versions[ref]
		if !ok {
			j = a.findVersion(ref, registered)
			versions[ref] = j
		}
		return j
	}
	for p := range b.Plans {
		for _, i := range b.Plans[p].Groups {
			g := &b.Plans[p].Plan.Groups[i]
			for _, alloc := range g.Placements {
				codec.Bind(alloc, version(alloc.Job))
				if a.txn.Alloc(alloc.ID) != nil {
					alloc.Group = nil
				}
				if n := a.txn.Node(alloc.NodeID); n != nil {
					alloc.NodeID = n.ID
				}
			}
			for _, alloc := range g.Updates {
				codec.Bind(alloc, version(alloc.Job))
			}
		}
	}
}

// findVersion returns the job version that a reference names, or nil if it is
// gone. Index 0 names the version that the same entry registers.
func (a *applier) findVersion(ref, registered *model.Job) *model.Job {
	if ref.ModifyIndex == 0 {
		if registered != nil && registered.Key() == ref.Key() {
			return registered
		}
		return nil
	}
	return codec.FindVersion(&a.txn.View, ref)
}

// notice notes the nodes on which a batch makes room, and those on which it
// places work that carries labels. It is called before the batch is applied.
func (a *applier) notice(b *apply.Batch) {
	for p := range b.Plans {
		for _, i := range b.Plans[p].Groups {
			g := &b.Plans[p].Plan.Groups[i]
			for k := range g.Stops {
				a.roomOf(g.Stops[k].AllocID)
			}
			for k := range g.Evictions {
				a.roomOf(g.Evictions[k].AllocID)
			}
			for _, u := range g.Updates {
				a.result.Freed = append(a.result.Freed, u.NodeID)
			}
			a.noticeBindings(b.Plans[p].Plan.Job, g)
			for _, alloc := range g.Placements {
				if alloc.Group != nil && len(alloc.Group.Labels) > 0 {
					a.result.Placed = append(a.result.Placed, alloc.NodeID)
				}
			}
		}
	}
}

// roomOf notes the node of an allocation that is about to end.
func (a *applier) roomOf(id string) {
	if alloc := a.txn.Alloc(id); alloc != nil && alloc.Live() {
		a.result.Freed = append(a.result.Freed, alloc.NodeID)
	}
}
