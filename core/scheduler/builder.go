package scheduler

import (
	"maps"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
)

// builder collects a plan's commit groups in the order in which they were
// first touched. What happens on one node shares a group, unless the placements
// are bound together.
type builder struct {
	list  []model.CommitGroup
	byKey map[string]int
	bound string               // key that everything shares while it is set
	whole map[model.JobKey]int // the commit group that evicts of a job that goes whole
}

func newBuilder() builder { return builder{byKey: map[string]int{}} }

// stopsKey is the group of stops that make room for nothing.
const stopsKey = ""

// at is the commit group for what happens on a node.
func (b *builder) at(nodeID string) *model.CommitGroup {
	return &b.list[b.index(nodeID)]
}

func (b *builder) index(nodeID string) int {
	if b.bound != "" {
		return b.keyed(b.bound)
	}
	known := len(b.list)
	i := b.keyed("node " + nodeID)
	if i == known {
		b.list[i].Divisible = true // until something else than placements comes to it
	}
	return i
}

func (b *builder) keyed(key string) int {
	i, ok := b.byKey[key]
	if !ok {
		i = len(b.list)
		b.byKey[key] = i
		b.list = append(b.list, model.CommitGroup{})
	}
	return i
}

// stop ends an allocation for its own sake.
func (b *builder) stop(a *model.Allocation, reason string, lost bool) {
	g := &b.list[b.keyed(stopsKey)]
	g.Stops = append(g.Stops, model.Stop{AllocID: a.ID, Reason: reason, Lost: lost})
}

// place adds a placement with its victims, and the allocation it replaces.
func (b *builder) place(a *model.Allocation, victims []*model.Allocation, policyVersion string, replaces *model.Allocation, reason string) {
	g := b.at(a.NodeID)
	g.Placements = append(g.Placements, a)
	for _, v := range victims {
		g.Evictions = append(g.Evictions, model.Eviction{AllocID: v.ID, By: a.ID, Policy: policyVersion})
	}
	if replaces != nil {
		g.Stops = append(g.Stops, model.Stop{AllocID: replaces.ID, Reason: reason})
	}
	for _, v := range victims {
		if v.Job.AllOrNone {
			b.join(v.Job.Key(), a.NodeID)
		}
	}
}

// join puts all evictions of a job that is evicted whole into one commit group:
// whoever takes the rest of it counts on those who took some before.
func (b *builder) join(job model.JobKey, nodeID string) {
	from := b.index(nodeID)
	into, taken := b.whole[job]
	if b.whole == nil {
		b.whole = map[model.JobKey]int{}
	}
	b.list[from].Divisible = false
	if !taken || into == from {
		b.whole[job] = from
		return
	}
	into, from = min(into, from), max(into, from)
	g, more := &b.list[into], &b.list[from]
	g.Placements, g.Updates = append(g.Placements, more.Placements...), append(g.Updates, more.Updates...)
	g.Stops, g.Evictions = append(g.Stops, more.Stops...), append(g.Evictions, more.Evictions...)
	*more = model.CommitGroup{}
	for key, at := range b.byKey {
		if at == from {
			b.byKey[key] = into
		}
	}
	for key, at := range b.whole {
		if at == from {
			b.whole[key] = into
		}
	}
}

// update moves an allocation to the job's newest version where it runs.
func (b *builder) update(a *model.Allocation) {
	g := b.at(a.NodeID)
	g.Updates = append(g.Updates, a)
}

// groups is the plan. What replaces something, or is changed where it runs, takes
// effect at once with all else on the node.
func (b *builder) groups() []model.CommitGroup {
	for i := range b.list {
		g := &b.list[i]
		g.Divisible = g.Divisible && len(g.Placements) > 1 && len(g.Stops)+len(g.Updates) == 0
	}
	if len(b.whole) == 0 {
		return b.list
	}
	return slices.DeleteFunc(b.list, func(g model.CommitGroup) bool {
		return len(g.Placements)+len(g.Updates)+len(g.Stops)+len(g.Evictions) == 0
	})
}

// mark remembers the plan so that rollback can forget what came after: a gang
// that cannot be placed whole leaves no trace.
func (b *builder) mark() int { return len(b.list) }

// rollback forgets every commit group made since mark. The caller must have
// bound what it may want to forget, so that earlier groups are untouched.
func (b *builder) rollback(mark int) {
	b.list = b.list[:mark]
	maps.DeleteFunc(b.byKey, func(_ string, at int) bool { return at >= mark })
	maps.DeleteFunc(b.whole, func(_ model.JobKey, at int) bool { return at >= mark })
}
