package fsm

import (
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/replication/codec"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/state/apply"
)

// applyPlans applies the commit groups that the planner accepted. Commit groups that no
// longer match the state are dropped. The plan is not refused: the other groups take effect,
// and the result lists what was dropped.
func (a *applier) applyPlans(c *replication.ApplyPlans) *replication.Refusal {
	if c.Batch == nil {
		return replication.Refuse(replication.CodeInvalid, "batch of plans is required")
	}
	a.resolve(c.Batch, nil)
	a.recordFreed(c.Batch)
	evals, dropped := applyMeasured(a.txn, a.now, c.Batch)
	a.addEvals(evals)
	a.result.Dropped = dropped
	return nil
}

// applyAllOrNone applies a confirmed plan, or refuses it if anything changed since: the
// user confirmed exactly these placements and victims. The refusal aborts the
// transaction, so checking after the changes is safe.
func (a *applier) applyAllOrNone(b *apply.Batch, registered *model.Job) *replication.Refusal {
	a.resolve(b, registered)
	for p := range b.Plans {
		for _, i := range b.Plans[p].Groups {
			if r := checkCurrent(&a.txn.View, &b.Plans[p].Plan.Groups[i]); r != nil {
				return r
			}
		}
	}
	a.recordFreed(b)
	evals, dropped := applyMeasured(a.txn, a.now, b)
	if len(dropped) > 0 {
		return replication.Refuse(replication.CodeConflict, "plan is out of date: a node of its placements is ineligible")
	}
	a.addEvals(evals)
	for _, id := range sortedSet(placedOn(b)) {
		if what := overcommitted(&a.txn.View, id); what != "" {
			return replication.Refuse(replication.CodeConflict, "plan is out of date: node %s lacks %s", id, what)
		}
	}
	return nil
}

// checkCurrent refuses a commit group of a confirmed plan if a node or an allocation that it
// changes is not as the plan assumed. Whether its placements fit is checked after it was applied.
func checkCurrent(view *state.View, g *model.CommitGroup) *replication.Refusal {
	for _, p := range g.Placements {
		switch n := view.Node(p.NodeID); {
		case p.Group == nil:
			return replication.Refuse(replication.CodeConflict, "plan is out of date: allocation %s already exists, or its group no longer does", p.ID)
		case n == nil:
			return replication.Refuse(replication.CodeConflict, "plan is out of date: node %s no longer exists", p.NodeID)
		case !n.IsEligible():
			return replication.Refuse(replication.CodeConflict, "plan is out of date: node %s is ineligible", p.NodeID)
		}
	}
	for _, u := range g.Updates {
		if old := view.Alloc(u.ID); u.Group == nil || old == nil || !old.Live() {
			return replication.Refuse(replication.CodeConflict, "plan is out of date: allocation %s to be updated is not running", u.ID)
		}
	}
	for i := range g.Evictions {
		if v := view.Alloc(g.Evictions[i].AllocID); v == nil || !v.Live() {
			return replication.Refuse(replication.CodeConflict, "plan is out of date: allocation %s to be evicted is not running", g.Evictions[i].AllocID)
		}
	}
	for i := range g.Stops {
		if v := view.Alloc(g.Stops[i].AllocID); v == nil || !v.Live() && !g.Stops[i].Lost {
			return replication.Refuse(replication.CodeConflict, "plan is out of date: allocation %s to be stopped is not running", g.Stops[i].AllocID)
		}
	}
	return nil
}

// placedOn returns the nodes of a batch's placements and updates, with duplicates.
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

// overcommitted returns the name of a resource of which a node's allocations use more
// than the node has, or "". It checks every resource, since other allocations may have
// been placed meanwhile.
func overcommitted(v *state.View, nodeID string) string {
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

// resolve replaces the references of an entry by job versions, and node IDs by the
// state's own strings, so that a million allocations do not each retain a copy. A
// placement gets no group if its version no longer exists or its ID exists;
// Batch.Apply drops its commit group.
func (a *applier) resolve(b *apply.Batch, registered *model.Job) {
	versions := map[*model.Job]*model.Job{}
	version := func(ref *model.Job) *model.Job {
		j, ok := versions[ref]
		if !ok {
			j = findVersion(&a.txn.View, ref, registered)
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

// findVersion returns the job version that a reference names, or nil if it is gone.
// Index 0 names the version that the same entry registers. It costs a pass over the
// job's allocations if the version is no longer retained.
func findVersion(v *state.View, ref, registered *model.Job) *model.Job {
	if ref.ModifyIndex == 0 {
		if registered != nil && registered.Key() == ref.Key() {
			return registered
		}
		return nil
	}
	return codec.FindVersion(v, ref)
}

// recordFreed records the nodes on which a batch frees capacity, and those on which it
// places allocations with labels: other jobs' affinities depend on them. It must be
// called before the batch is applied, while the allocations are live.
func (a *applier) recordFreed(b *apply.Batch) {
	for p := range b.Plans {
		for _, i := range b.Plans[p].Groups {
			g := &b.Plans[p].Plan.Groups[i]
			for k := range g.Stops {
				a.recordFreedNode(g.Stops[k].AllocID)
			}
			for k := range g.Evictions {
				a.recordFreedNode(g.Evictions[k].AllocID)
			}
			for _, u := range g.Updates {
				a.result.Freed = append(a.result.Freed, u.NodeID)
			}
			a.recordFreedClusters(b.Plans[p].Plan.Job, g)
			for _, alloc := range g.Placements {
				if alloc.Group != nil && len(alloc.Group.Labels) > 0 {
					a.result.Placed = append(a.result.Placed, alloc.NodeID)
				}
			}
		}
	}
}

// recordFreedNode records the node of an allocation that is about to end.
func (a *applier) recordFreedNode(id string) {
	if alloc := a.txn.Alloc(id); alloc != nil && alloc.Live() {
		a.result.Freed = append(a.result.Freed, alloc.NodeID)
	}
}
