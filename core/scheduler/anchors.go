package scheduler

import (
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/preempt"
	"github.com/cede-scheduler/cede/core/state"
)

// IsAffinityTarget is whether evicting the row may take away the reason why the group may go to
// the node at pos. It is never a candidate then. Where another one that matches stays
// in the domain, or where nobody is left to be beside and the group may be the first of
// its like, the row goes like any other: on other nodes nobody who matches is evicted
// for the same place. What runs on every node is placed on all at once, and two of its
// places could each count on whom the other evicts: for it all who match stay.
func (u *groupRules) IsAffinityTarget(pos int32, row *state.Row) bool {
	if len(u.group.Colocate) == 0 || row.Group.Job.Namespace != u.group.Job.Namespace {
		return false
	}
	all := pos == preempt.AnyNode || u.group.Job.Type.PerNode()
	for _, t := range u.colocate {
		if t.rule.Matches(row.Group.Labels) && (all || !u.hostsWithout(pos, t)) {
			return true
		}
	}
	return false
}

// hostsWithout is whether a term holds on a node with everybody gone who matches it
// there and may be evicted. Only allocations of other jobs count: the plan at hand may
// place and stop those of its own in another order than it is committed in.
func (u *groupRules) hostsWithout(pos int32, t *term) bool {
	chunk := u.run.proposed.Chunk(int(pos) / state.ChunkSize)
	rows, here := chunk.Rows(int(pos)%state.ChunkSize), 0
	for i := range rows {
		g := rows[i].Group
		if sameJob(g.Job, u.group.Job) || g.Job.Namespace != u.group.Job.Namespace || !t.rule.Matches(g.Labels) {
			continue
		}
		if int64(rows[i].Priority) > u.run.ceiling || g.Job.NonPreemptible {
			return true
		}
		here++
	}
	if domain, ok := u.run.proposed.NodeAt(pos).Domain(t.rule.TopologyKey); ok && !local(t.rule) && t.others[domain] > here {
		return true
	}
	return t.total == here && t.rule.Matches(u.group.Labels)
}

func sameJob(a, b *model.Job) bool { return a.ID == b.ID && a.Namespace == b.Namespace }
