package scheduler

import "github.com/cede-scheduler/cede/core/model"

// builder collects a plan's commit groups in the order in which they were
// first touched. What happens on one node shares a group, unless the placements
// are bound together.
type builder struct {
	list  []model.CommitGroup
	byKey map[string]int
	bound string // key that everything shares while it is set
}

func newBuilder() builder { return builder{byKey: map[string]int{}} }

// stopsKey is the group of stops that make room for nothing.
const stopsKey = ""

// at is the commit group for what happens on a node.
func (b *builder) at(nodeID string) *model.CommitGroup {
	key := "node " + nodeID
	if b.bound != "" {
		key = b.bound
	}
	return b.keyed(key)
}

func (b *builder) keyed(key string) *model.CommitGroup {
	i, ok := b.byKey[key]
	if !ok {
		i = len(b.list)
		b.byKey[key] = i
		b.list = append(b.list, model.CommitGroup{})
	}
	return &b.list[i]
}

// stop ends an allocation for its own sake.
func (b *builder) stop(a *model.Allocation, reason string, lost bool) {
	g := b.keyed(stopsKey)
	g.Stop = append(g.Stop, model.Stop{AllocID: a.ID, Reason: reason, Lost: lost})
}

// place adds a placement with its victims, and the allocation it replaces.
func (b *builder) place(a *model.Allocation, victims []*model.Allocation, policyVersion string, replaces *model.Allocation, reason string) {
	g := b.at(a.NodeID)
	g.Place = append(g.Place, a)
	for _, v := range victims {
		g.Evict = append(g.Evict, model.Eviction{AllocID: v.ID, By: a.ID, Policy: policyVersion})
	}
	if replaces != nil {
		g.Stop = append(g.Stop, model.Stop{AllocID: replaces.ID, Reason: reason})
	}
}

// update moves an allocation to the job's newest version where it runs.
func (b *builder) update(a *model.Allocation) {
	g := b.at(a.NodeID)
	g.Update = append(g.Update, a)
}

func (b *builder) groups() []model.CommitGroup { return b.list }

// mark remembers the plan so that rollback can forget what came after: a gang
// that cannot be placed whole leaves no trace.
func (b *builder) mark() int { return len(b.list) }

// rollback forgets every commit group made since mark. The caller must have
// bound what it may want to forget, so that earlier groups are untouched.
func (b *builder) rollback(mark int) {
	b.list = b.list[:mark]
	for key, i := range b.byKey {
		if i >= mark {
			delete(b.byKey, key)
		}
	}
}
