package proposal

import (
	"iter"
	"maps"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
)

// Plan collects commit groups in the order in which they were first touched.
// Everything on one node shares a group, unless Bind puts it into another one.
type Plan struct {
	groups []model.CommitGroup
	byKey  map[string]int // key -> position in groups
	bound  string         // key of the group that placements share; "": one per node
	// cohorts holds, per job that is evicted all-or-none, the group that evicts it.
	// Invariant: all evictions of such a job are in one group.
	// Between Bind and Unbind, evictions in the bound group are the exception.
	cohorts map[model.JobKey]int
	// joins are the jobs of which the bound group and an earlier one evict instances.
	joins []model.JobKey
}

// NewPlan returns an empty plan.
func NewPlan() *Plan { return &Plan{byKey: map[string]int{}} }

// Clone returns a copy that can be changed independently. Allocations and other values
// are shared.
func (p *Plan) Clone() *Plan {
	c := &Plan{groups: slices.Clone(p.groups), byKey: maps.Clone(p.byKey), bound: p.bound, cohorts: maps.Clone(p.cohorts), joins: slices.Clone(p.joins)}
	for i := range c.groups {
		g := &c.groups[i]
		g.Placements, g.Updates = slices.Clone(g.Placements), slices.Clone(g.Updates)
		g.Stops, g.Evictions, g.Choices = slices.Clone(g.Stops), slices.Clone(g.Evictions), slices.Clone(g.Choices)
	}
	return c
}

// stopsKey is the key of the group for stops that free capacity for no placement.
const stopsKey = ""

// Bind puts all further placements into one commit group, because they are valid
// only together. It returns false, and does nothing, if a binding is
// already active: the outer one covers the inner one.
func (p *Plan) Bind(key string) bool {
	if p.bound != "" {
		return false
	}
	p.bound = key
	return true
}

// Unbind ends the effect of Bind. Earlier groups that evict some of a cohort whose rest the
// bound group evicts are merged with it.
func (p *Plan) Unbind() {
	for _, job := range p.joins {
		p.merge(job, p.index(p.bound))
	}
	p.bound, p.joins = "", nil
}

// onNode returns the commit group for changes on a node.
func (p *Plan) onNode(nodeID string) *model.CommitGroup { return &p.groups[p.nodeIndex(nodeID)] }

func (p *Plan) nodeIndex(nodeID string) int {
	if p.bound != "" {
		return p.index(p.bound)
	}
	n := len(p.groups)
	i := p.index("node " + nodeID)
	if i == n {
		p.groups[i].Divisible = true // until it receives anything but placements
	}
	return i
}

// index returns the position of the group with a key and adds it if it is missing.
func (p *Plan) index(key string) int {
	i, ok := p.byKey[key]
	if !ok {
		i = len(p.groups)
		p.byKey[key] = i
		p.groups = append(p.groups, model.CommitGroup{})
	}
	return i
}

// Stop stops an allocation that nothing replaces at once.
func (p *Plan) Stop(a *model.Allocation, reason string, lost bool) {
	g := &p.groups[p.index(stopsKey)]
	g.Stops = append(g.Stops, model.Stop{AllocID: a.ID, Reason: reason, Lost: lost})
}

// Stops yields the IDs of all allocations that the plan stops.
func (p *Plan) Stops() iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range p.groups {
			for _, s := range p.groups[i].Stops {
				if !yield(s.AllocID) {
					return
				}
			}
		}
	}
}

// Evictions yields the IDs of all allocations that the plan evicts.
func (p *Plan) Evictions() iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range p.groups {
			for _, x := range p.groups[i].Evictions {
				if !yield(x.AllocID) {
					return
				}
			}
		}
	}
}

// A Placement is a new allocation and the allocations that are removed for it.
type Placement struct {
	Alloc    *model.Allocation
	Victims  []*model.Allocation
	Policy   string            // version that chose the victims; "": there are none
	Why      *model.Choice     // explains the evictions; nil: they are not explained
	Replaces *model.Allocation // nil: nothing
	Reason   string            // why Replaces is replaced
	Moves    []Move            // relocated to make room for it
}

// Place adds a placement, its evictions and moves, and the stop of the allocation that it
// replaces.
func (p *Plan) Place(x *Placement) {
	g := p.onNode(x.Alloc.NodeID)
	g.Placements = append(g.Placements, x.Alloc)
	for _, v := range x.Victims {
		g.Evictions = append(g.Evictions, model.Eviction{AllocID: v.ID, By: x.Alloc.ID, Policy: x.Policy})
	}
	// A choice among free nodes is not explained: plans of thousands of placements would
	// grow, and such a placement costs no other job anything.
	if x.Why != nil && len(x.Victims) > 0 {
		x.Why.By = x.Alloc.ID
		g.Choices = append(g.Choices, x.Why)
	}
	if x.Replaces != nil {
		g.Stops = append(g.Stops, model.Stop{AllocID: x.Replaces.ID, Reason: x.Reason})
	}
	for i := range x.Moves {
		x.Moves[i].add(g, x.Alloc.ID)
	}
	for _, v := range x.Victims {
		if v.Job.AllOrNone {
			p.joinCohort(v.Job.Key(), x.Alloc.NodeID)
		}
	}
}

// joinCohort merges all evictions of a job that is evicted all-or-none into one
// commit group: evicting the rest of a cohort is only valid if its other members
// are evicted as well.
func (p *Plan) joinCohort(job model.JobKey, nodeID string) {
	at := p.nodeIndex(nodeID)
	other, found := p.cohorts[job]
	if p.cohorts == nil {
		p.cohorts = map[model.JobKey]int{}
	}
	p.groups[at].Divisible = false
	switch {
	case !found || other == at:
		p.cohorts[job] = at
	case p.bound != "":
		p.joins = append(p.joins, job) // Rollback could not undo a merger
	default:
		p.merge(job, at)
	}
}

// merge merges a group with the one that evicts a cohort.
func (p *Plan) merge(job model.JobKey, at int) {
	into, from := min(p.cohorts[job], at), max(p.cohorts[job], at)
	if into == from {
		return
	}
	g, more := &p.groups[into], &p.groups[from]
	g.Placements, g.Updates = append(g.Placements, more.Placements...), append(g.Updates, more.Updates...)
	g.Stops, g.Evictions = append(g.Stops, more.Stops...), append(g.Evictions, more.Evictions...)
	g.Choices = append(g.Choices, more.Choices...)
	*more = model.CommitGroup{} // Groups drops it; positions must not shift before
	for key, at := range p.byKey {
		if at == from {
			p.byKey[key] = into
		}
	}
	for key, at := range p.cohorts {
		if at == from {
			p.cohorts[key] = into
		}
	}
}

// Update moves an allocation to the newest version of its job without a restart.
func (p *Plan) Update(a *model.Allocation) {
	g := p.onNode(a.NodeID)
	g.Updates = append(g.Updates, a)
}

// Groups returns the commit groups of the finished plan. A group stays divisible
// only if it holds nothing but several placements: a replacement or an in-place
// update takes effect together with everything else on the node.
func (p *Plan) Groups() []model.CommitGroup {
	for i := range p.groups {
		g := &p.groups[i]
		g.Divisible = g.Divisible && len(g.Placements) > 1 && len(g.Stops)+len(g.Updates) == 0
	}
	if len(p.cohorts) == 0 {
		return p.groups
	}
	return slices.DeleteFunc(p.groups, func(g model.CommitGroup) bool {
		return len(g.Placements)+len(g.Updates)+len(g.Stops)+len(g.Evictions) == 0
	})
}

// Mark returns a position for Rollback and GroupAt.
func (p *Plan) Mark() int { return len(p.groups) }

// GroupAt returns the first commit group added after a mark, or nil if there is none.
func (p *Plan) GroupAt(mark int) *model.CommitGroup {
	if mark >= len(p.groups) {
		return nil
	}
	return &p.groups[mark]
}

// Rollback removes every commit group added since the mark. The caller must have
// called Bind with a new key after Mark, so that earlier groups are unchanged.
func (p *Plan) Rollback(mark int) {
	p.groups, p.joins = p.groups[:mark], nil
	maps.DeleteFunc(p.byKey, func(_ string, at int) bool { return at >= mark })
	maps.DeleteFunc(p.cohorts, func(_ model.JobKey, at int) bool { return at >= mark })
}
