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
	if len(r.group.Colocate) == 0 || row.Group.Job.Namespace != r.group.Job.Namespace {
		return false
	}
	all := pos == preempt.AnyNode || r.group.Job.Type.PerNode()
	for _, t := range r.colocate {
		if t.rule.Matches(row.Group.Labels) && (all || !r.holdsWithout(pos, t)) {
			return true
		}
	}
	return false
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
