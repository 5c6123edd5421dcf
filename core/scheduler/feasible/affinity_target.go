package feasible

import (
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/preempt"
	"github.com/cede-scheduler/cede/core/state"
)

// IsAffinityTarget reports whether evicting the row might remove the allocation that lets
// the group be placed at pos by co-location. Such a row is never a candidate. It
// is one if another match stays in the domain, or if the group may be the first
// that matches its own term.
//
// Instances of a system job are placed on all nodes in one search, and two nodes
// could each rely on a match that the other one evicts. For those, and for
// pos == preempt.AnyNode, every match is retained. It is part of preempt.Rules.
func (r *Rules) IsAffinityTarget(pos int32, row *state.Row) bool {
	if row.Group.Job.Namespace != r.group.Job.Namespace {
		return false
	}
	for _, sibling := range r.siblings {
		if r.isTargetOf(sibling, pos, row) {
			return true
		}
	}
	all := pos == preempt.AnyNode || r.group.Job.Type.PerNode()
	for _, t := range r.colocate {
		if t.rule.Matches(row.Group.Labels) && (all || !r.holdsWithout(pos, t)) {
			return true
		}
	}
	return false
}

// isTargetOf reports whether an instance that the plan has placed for another group of
// the job might lose the last match of a co-location term by the eviction of the row.
// Instances of earlier plans do not count: a term concerns the moment of a placement.
func (r *Rules) isTargetOf(sibling *model.Group, pos int32, row *state.Row) bool {
	for i := range sibling.Colocate {
		t := &sibling.Colocate[i]
		if !t.Matches(row.Group.Labels) {
			continue
		}
		domain, ok := r.ctx.State.Snapshot().NodeAt(row.Alloc.NodePos).Domain(t.TopologyKey)
		if ok && r.hasPlaced(sibling, t, domain) && !r.staysIn(domain, sibling, t, pos) {
			return true
		}
	}
	return false
}

// hasPlaced reports whether the plan has placed an instance of a group of the job in a
// domain of a term.
func (r *Rules) hasPlaced(g *model.Group, t *model.LabelTerm, domain string) (found bool) {
	snap := r.ctx.State.Snapshot()
	eachLive(snap, []model.JobKey{g.Job.Key()}, func(a *model.Allocation) {
		if found || a.Group.Name != g.Name || r.ctx.State.Base.Alloc(a.ID) != nil {
			return
		}
		value, ok := snap.NodeAt(a.NodePos).Domain(t.TopologyKey)
		found = ok && value == domain
	})
	return found
}

// staysIn reports whether a term of a sibling still holds in a domain if everything is
// evicted from the node at pos that may be. For preempt.AnyNode that holds for all nodes.
// What the plan itself has placed stays, but an instance is no match of its own.
func (r *Rules) staysIn(domain string, sibling *model.Group, t *model.LabelTerm, pos int32) (stays bool) {
	snap, placed := r.ctx.State.Snapshot(), 0
	if t.Matches(sibling.Labels) {
		placed = -1
	}
	keys := sortedKeys(snap.JobsMatching(t.Labels), r.group.Job.Namespace)
	eachLive(snap, keys, func(a *model.Allocation) {
		if value, ok := snap.NodeAt(a.NodePos).Domain(t.TopologyKey); !ok || value != domain || !t.Matches(a.Group.Labels) {
			return
		}
		if sameJob(a.Job, r.group.Job) {
			if r.ctx.State.Base.Alloc(a.ID) == nil {
				placed++
			}
			return
		}
		evictable := int64(a.Job.Priority) <= r.ctx.Preemption.Ceiling && !a.Job.NonPreemptible
		stays = stays || !evictable || pos != preempt.AnyNode && a.NodePos != pos
	})
	return stays || placed > 0
}

// holdsWithout reports whether a co-location term still holds on a node after the
// eviction of every match there that may be evicted. Only allocations of other
// jobs count: the plan may place and stop those of its own job in another order
// than the one in which it is committed.
func (r *Rules) holdsWithout(pos int32, t *labelTerm) bool {
	snap := r.ctx.State.Snapshot()
	chunk := snap.Chunk(int(pos) / state.ChunkSize)
	rows, evictable := chunk.Rows(int(pos)%state.ChunkSize), 0
	for i := range rows {
		g := rows[i].Group
		if sameJob(g.Job, r.group.Job) || g.Job.Namespace != r.group.Job.Namespace || !t.rule.Matches(g.Labels) {
			continue
		}
		if int64(rows[i].Priority) > r.ctx.Preemption.Ceiling || g.Job.NonPreemptible {
			return true
		}
		evictable++
	}
	if domain, ok := snap.NodeAt(pos).Domain(t.rule.TopologyKey); ok && !IsNodeLocal(t.rule) && t.otherJobs[domain] > evictable {
		return true
	}
	return t.total == evictable && t.rule.Matches(r.group.Labels)
}

func sameJob(a, b *model.Job) bool { return a.ID == b.ID && a.Namespace == b.Namespace }
