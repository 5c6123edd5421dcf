package protect

import (
	"cmp"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
)

// A Cohort is the live allocations of an all-or-none job, without those that are lost with
// their node: evicting one evicts all of them, except that those above a group's minimum count may leave alone.
type Cohort struct {
	Rows []*state.Row // in tie order
	// Protected is set if one of them may not be evicted, so that the cohort may not.
	Protected bool
	// Surplus is how many of a group may be evicted alone, by group name; nil if none.
	Surplus map[string]int

	byNode []int32 // positions in Rows, by node, then ascending
	costs  Charges // to strict budgets
}

// newCohort collects the cohort of a job. Findings of tolerations go to the guard.
func newCohort(g *Guard, key model.JobKey) *Cohort {
	s := g.scope
	c := &Cohort{}
	live := map[string]int{}
	for _, a := range s.Snap.AppendJobAllocs(nil, key) {
		if !a.InCohort() || a.LostWith(s.Snap.Node(a.NodeID), s.Now) {
			continue
		}
		row := RowOf(s.Snap, a)
		c.Rows = append(c.Rows, row)
		live[a.Group.Name]++
		c.Protected = c.Protected || s.Excluded[a] || int64(row.Priority) > s.Ceiling || a.Job.NonPreemptible || g.IsTolerated(row) ||
			s.Affinity != nil && s.Affinity.IsAffinityTarget(AnyNode, row)
		if !s.Strict || !a.Available() {
			continue
		}
		for _, cost := range g.strictCosts(row) {
			c.costs.Add(cost.Budget, 1)
		}
	}
	slices.SortFunc(c.Rows, func(a, b *state.Row) int { return s.Order.Compare(a.Alloc.ID, b.Alloc.ID) })
	c.indexNodes()
	c.countSurplus(s.Snap.Job(key), live)
	return c
}

// countSurplus computes Surplus from the number of live allocations by group. job is
// nil if it has been deleted.
func (c *Cohort) countSurplus(job *model.Job, live map[string]int) {
	if job == nil {
		return
	}
	for group, n := range live {
		if n = job.SurplusInstances(group, n); n > 0 {
			if c.Surplus == nil {
				c.Surplus = map[string]int{}
			}
			c.Surplus[group] = n
		}
	}
}

// indexNodes computes byNode.
func (c *Cohort) indexNodes() {
	c.byNode = slices.Grow(c.byNode[:0], len(c.Rows))
	for at := range c.Rows {
		c.byNode = append(c.byNode, int32(at))
	}
	slices.SortFunc(c.byNode, func(a, b int32) int {
		return cmp.Or(cmp.Compare(c.Rows[a].Alloc.NodePos, c.Rows[b].Alloc.NodePos), cmp.Compare(a, b))
	})
}

// On returns the positions in Rows of the members on a node, ascending.
func (c *Cohort) On(pos int32) []int32 {
	find := func(pos int32) int {
		at, _ := slices.BinarySearchFunc(c.byNode, pos, func(at, pos int32) int {
			return cmp.Compare(c.Rows[at].Alloc.NodePos, pos)
		})
		return at
	}
	return c.byNode[find(pos):find(pos+1)]
}

// AppendMembers appends the whole cohort: row itself, then the others on its node, then
// those on other nodes. A job may have as many rows as there are nodes, and an option
// on each of them, so rows on other nodes are copied in runs.
func (c *Cohort) AppendMembers(list []*state.Row, row *state.Row) []*state.Row {
	list = append(list, row)
	here := c.On(row.Alloc.NodePos)
	for _, at := range here {
		if c.Rows[at].Alloc != row.Alloc {
			list = append(list, c.Rows[at])
		}
	}
	next := int32(0)
	for _, at := range here {
		list = append(list, c.Rows[next:at]...)
		next = at + 1
	}
	return append(list, c.Rows[next:]...)
}

// RowOf returns the row of a live allocation.
func RowOf(snap *state.Snapshot, a *model.Allocation) *state.Row {
	rows := snap.Chunk(int(a.NodePos) / state.ChunkSize).Rows(int(a.NodePos) % state.ChunkSize)
	return &rows[slices.IndexFunc(rows, func(row state.Row) bool { return row.Alloc == a })]
}
