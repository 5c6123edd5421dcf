package feasible

import (
	"sync"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/preempt"
	"github.com/cede-scheduler/cede/core/state"
)

// IsAffinityTarget reports whether evicting the row might remove the allocation that lets
// the group be placed at pos by co-location, or the last one near instances of another group
// of the job that require one. Such a row is never a candidate. It is one if another match
// stays in the domain, or if the group may be the first that matches its own term.
//
// Instances of a system job are placed on all nodes in one search, and two nodes
// could each rely on a match that the other one evicts. For those, and for
// pos == preempt.AnyNode, every match is retained. It is part of preempt.Rules.
func (r *Rules) IsAffinityTarget(pos int32, row *state.Row) bool {
	if row.Group.Job.Namespace != r.group.Job.Namespace {
		return false
	}
	if r.group.Job.Type.PerNode() {
		pos = preempt.AnyNode
	}
	if r.isTargetOfSibling(pos, row) {
		return true
	}
	for _, t := range r.colocate {
		if t.rule.Matches(row.Group.Labels) && (pos == preempt.AnyNode || !r.holdsWithout(pos, t)) {
			return true
		}
	}
	return false
}

// A dependency is a co-location term of another group of the job, by the domains in which
// that group has instances. Those of earlier plans count as well: what one plan must not
// evict because of its own placements, the next one must not evict either.
type dependency struct {
	term    *model.LabelTerm
	domains map[string]*matches
}

// matches describes the allocations in a domain that match the term of a dependency.
type matches struct {
	// fixed counts those that no eviction for the job removes: its own, and those that have
	// too high a priority or are not preemptible. An instance does not match itself.
	fixed int
	// evictable is set if there are others, and elsewhere if they are not all on the node at
	// position first.
	evictable, elsewhere bool
	first                int32
}

// stay reports whether a match stays if everything is evicted from the node at pos that
// may be. For preempt.AnyNode that holds for all nodes.
func (m *matches) stay(pos int32) bool {
	return m.fixed > 0 || pos != preempt.AnyNode && m.evictable && (m.elsewhere || m.first != pos)
}

// dependencies are those of a group on its siblings. They are computed on first use, by any
// search worker, and are valid until something is placed or evicted.
type dependencies struct {
	once sync.Once
	list []dependency
}

// isTargetOfSibling reports whether the eviction of the row might remove the last match of
// a co-location term near an instance of another group of the job.
func (r *Rules) isTargetOfSibling(pos int32, row *state.Row) bool {
	if len(r.siblings) == 0 {
		return false
	}
	r.dependencies.once.Do(r.findDependencies)
	for i := range r.dependencies.list {
		d := &r.dependencies.list[i]
		if !d.term.Matches(row.Group.Labels) {
			continue
		}
		if m := d.matchesNear(r.ctx.State.Snapshot(), row.Alloc); m != nil && !m.stay(pos) {
			return true
		}
	}
	return false
}

// matchesNear returns the matches in the domain of an allocation; nil if no instance of the
// sibling is there.
func (d *dependency) matchesNear(snap *state.Snapshot, a *model.Allocation) *matches {
	if n := snap.NodeAt(a.NodePos); n != nil {
		if domain, ok := n.Domain(d.term.TopologyKey); ok {
			return d.domains[domain]
		}
	}
	return nil
}

// findDependencies sets the dependencies. It costs a pass over the allocations of the job,
// and of the jobs with the labels of the terms.
func (r *Rules) findDependencies() {
	for _, sibling := range r.siblings {
		for i := range sibling.Colocate {
			d := dependency{&sibling.Colocate[i], map[string]*matches{}}
			r.addDomains(&d, sibling)
			if len(d.domains) > 0 {
				r.countMatches(&d)
				r.dependencies.list = append(r.dependencies.list, d)
			}
		}
	}
}

// addDomains adds the domains with instances of a sibling.
func (r *Rules) addDomains(d *dependency, sibling *model.Group) {
	snap := r.ctx.State.Snapshot()
	eachLive(snap, []model.JobKey{sibling.Job.Key()}, func(a *model.Allocation) {
		n := snap.NodeAt(a.NodePos)
		if n == nil || a.Group.Name != sibling.Name {
			return
		}
		domain, ok := n.Domain(d.term.TopologyKey)
		if !ok || d.domains[domain] != nil {
			return
		}
		d.domains[domain] = &matches{}
		if d.term.Matches(sibling.Labels) {
			d.domains[domain].fixed = -1
		}
	})
}

// countMatches counts the matches in the domains of a dependency.
func (r *Rules) countMatches(d *dependency) {
	snap, own := r.ctx.State.Snapshot(), r.group.Job
	keys := append(sortedKeys(snap.JobsMatching(d.term.Labels), own.Namespace), own.Key())
	eachLive(snap, keys, func(a *model.Allocation) {
		m := d.matchesNear(snap, a)
		switch {
		case m == nil || !d.term.Matches(a.Group.Labels):
		case sameJob(a.Job, own) || int64(a.Job.Priority) > r.ctx.Preemption.Ceiling || a.Job.NonPreemptible:
			m.fixed++
		case !m.evictable:
			m.evictable, m.first = true, a.NodePos
		default:
			m.elsewhere = m.elsewhere || a.NodePos != m.first
		}
	})
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
