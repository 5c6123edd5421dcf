package relocate

import (
	"math"
	"math/bits"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/preempt/fit"
	"github.com/cede-scheduler/cede/core/state"
)

// findTargets finds the two nodes on which evictions for a shape cost least.
func (f *Finder) findTargets(s *shape) {
	g, total := s.row.Group, 0
	for c := range f.nodes {
		chunk := f.Snap.Chunk(c)
		f.nodes[c] = chunk.Eligible() & chunk.Preemptible(f.ceiling(g))
		total += bits.OnesCount64(f.nodes[c])
	}
	s.lastTarget = f.examine(total, func(chunk *state.Chunk, i int, pos int32) (enough bool) {
		s.addTarget(f.target(g, chunk, i, pos))
		return false
	})
}

// ceiling returns the highest priority of what may be evicted for a group.
func (f *Finder) ceiling(g *model.Group) int64 { return int64(g.Job.Priority) - f.Gap }

// isCandidate reports whether a node is among those that findTargets examines.
func (f *Finder) isCandidate(g *model.Group, snap *state.Snapshot, pos int32) bool {
	chunk, i := snap.Chunk(int(pos)/state.ChunkSize), int(pos)%state.ChunkSize
	return chunk.Eligible()>>i&1 == 1 && int64(chunk.MinPriority(i)) <= f.ceiling(g)
}

// target returns what evictions for a group on a node cost at least by ascending priority.
// Its position is -1 if they do not suffice.
func (f *Finder) target(g *model.Group, chunk *state.Chunk, i int, pos int32) target {
	best := target{pos: -1}
	n := fit.Node{Chunk: chunk, Index: int32(i), Rows: chunk.Rows(i)}
	if chunk.HasClaims()>>i&1 == 1 {
		capacity := f.Snap.FreeCapacityFor(pos, model.JobKey{}, g.Job.Priority, f.Now, new(model.Vector))
		n.Claimed = &capacity
	}
	f.deficit = f.dims.AppendDeficit(f.deficit[:0], &n, &g.Ask)
	if len(g.Ask.Ports)+len(g.Ask.Devices) == 0 {
		return f.evict(g, &n, nil, pos)
	}
	for _, choice := range n.Model().DeviceChoices(&g.Ask) {
		if t := f.evict(g, &n, choice, pos); t.less(&best) {
			best = t
		}
	}
	return best
}

// evict evicts rows of a node by ascending priority until a group fits, and then reprieves
// those that are not needed. Rows that anything but their priority may protect stay.
func (f *Finder) evict(g *model.Group, n *fit.Node, choice []int16, pos int32) target {
	f.check.Reset(n, &fit.Setup{Ask: &g.Ask, Dims: &f.dims, Deficit: f.deficit, Choice: choice})
	ceiling := f.ceiling(g)
	f.victims = f.victims[:0]
	fits := f.check.Fits() // nothing may be missing now, if the home of a shape became free
	for x := range n.Rows {
		row := &n.Rows[x]
		if fits || int64(row.Priority) > ceiling {
			break
		}
		if f.isProtected(g, row) {
			continue
		}
		f.check.Remove(row, 0)
		f.victims = append(f.victims, row)
		fits = f.check.Fits()
	}
	if !fits {
		return target{pos: -1}
	}
	return f.reprieve(pos)
}

// reprieve restores the victims that are not needed, in reverse order, and returns the cost
// of the others.
func (f *Finder) reprieve(pos int32) target {
	t := target{pos: pos, priority: math.MinInt32}
	for k, row := range slices.Backward(f.victims) {
		if k < len(f.victims)-1 {
			f.check.Restore(row, 0)
			if f.check.Fits() {
				continue
			}
			f.check.Remove(row, 0)
		}
		t.priority = max(t.priority, row.Priority)
		t.lostWork += row.Group.LostWork(row.Alloc.Age(f.Now))
	}
	return t
}

// isProtected reports whether a row may be protected from eviction for a group by more than
// its priority: by its job, or by a strict budget.
func (f *Finder) isProtected(g *model.Group, row *state.Row) bool {
	job := row.Group.Job
	if job.NonPreemptible || job.HasEvictionRules() || job.Key() == g.Job.Key() {
		return true
	}
	if !row.Started || f.Snap.StrictBudgetCount() == 0 {
		return false
	}
	budgets := f.Snap.Budgets()
	return slices.ContainsFunc(f.Snap.GroupBudgets(row.Group), func(b int32) bool { return budgets[b].Strict })
}
