package feasible

import (
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/preempt"
	"github.com/cede-scheduler/cede/core/state"
)

var _ preempt.Rules = (*Rules)(nil)

// A Verdict is the decision of a group's rules about a node.
type Verdict int8

// The verdicts.
const (
	Allowed        Verdict = iota
	LocalConflict          // only allocations on the node itself exclude the group
	DomainConflict         // allocations on other nodes of a domain do as well
	Forbidden              // no eviction helps
)

// Rules are the rules of one group that depend on where other allocations are:
// distinct hosts and properties, spread, co-location, anti-affinity, affinity. The
// counts follow the plan through Count.
//
// The counts are made on first use, because most evaluations on a full cluster
// find no node with enough capacity anyway. A nil *Rules has no
// rules; Count, IsGlobal and Binds accept it.
type Rules struct {
	ctx       *Context
	group     *model.Group
	repellers []model.JobKey // jobs with terms that may match the group
	siblings  []*model.Group // other groups of the job with co-location terms
	// dependencies are those of the siblings.
	dependencies *dependencies

	distinctHosts bool
	spans         bool // an anti-affinity term has domains of several nodes
	ranksOnly     bool // no rule can exclude a node
	affinityTotal float64
	softTaints    bool // some nodes have taints with a preference as effect

	// Set by Prepare.
	counted    bool
	onNode     *nodeCounter // live instances of the group
	properties []*property
	spreads    []*spread
	colocate   []*labelTerm
	anti       *antiAffinity
	remote     *remoteConflicts
}

// NewRules returns the rules of a group, or nil if it has none. A group of several
// instances always has rules, since its instances prefer different nodes; so has
// every group if a node has a taint that is a preference.
func NewRules(x *Context, g *model.Group) *Rules {
	repellers := x.findRepellers(g)
	softTaints := x.State.Base.HasSoftTaints()
	siblings := colocatedSiblings(g)
	if !hasRules(g) && len(repellers.jobs)+len(siblings) == 0 && !softTaints {
		return nil
	}
	r := &Rules{
		ctx: x, group: g, repellers: repellers.jobs, siblings: siblings, dependencies: &dependencies{},
		softTaints: softTaints, distinctHosts: DistinctHosts(g),
	}
	for i := range g.Affinities {
		r.affinityTotal += absolute(float64(g.Affinities[i].Weight))
	}
	r.spans = SpansNodes(g.Separate) || repellers.spans
	r.ranksOnly = !r.distinctHosts && !r.Binds() && len(g.Separate)+len(r.repellers) == 0
	return r
}

// hasRules reports whether the group itself has rules beyond node constraints.
func hasRules(g *model.Group) bool {
	return g.Count > 1 || len(g.Affinities)+len(g.Spread)+len(g.Colocate)+len(g.Separate) > 0 ||
		slices.ContainsFunc(g.Constraints, func(c model.Constraint) bool { return c.Operator.CountsAllocations() })
}

// colocatedSiblings returns the other groups of a group's job that have co-location
// terms.
func colocatedSiblings(g *model.Group) (list []*model.Group) {
	for _, other := range g.Job.Groups {
		if other != g && len(other.Colocate) > 0 {
			list = append(list, other)
		}
	}
	return list
}

// DistinctHosts reports whether at most one instance of the group may be on a node.
func DistinctHosts(g *model.Group) bool {
	return slices.ContainsFunc(g.Constraints, func(c model.Constraint) bool { return c.Operator == model.OpDistinctHosts })
}

func absolute(x float64) float64 {
	if x < 0 {
		return -x
	}
	return x
}

// Prepare makes the counts if they are missing, and returns r. After it, methods
// that only read may be called concurrently.
func (r *Rules) Prepare() *Rules {
	if r.counted {
		return r
	}
	r.counted = true
	x, g := r.ctx, r.group
	r.onNode = x.newCounter()
	for i := range g.Constraints {
		if c := &g.Constraints[i]; c.Operator == model.OpDistinctProperty {
			r.properties = append(r.properties, newProperty(c))
		}
	}
	for i := range g.Spread {
		r.spreads = append(r.spreads, newSpread(&g.Spread[i], g, x.State.Base))
	}
	r.colocate = x.newLabelTerms(g.Colocate)
	r.anti, r.remote = x.antiAffinity(g, r.repellers), &remoteConflicts{}
	r.countPresent()
	return r
}

// countPresent counts the proposed live allocations that the rules concern: those
// of the group, and those of jobs with the labels of its co-location terms.
func (r *Rules) countPresent() {
	x := r.ctx
	if len(r.colocate) == 0 && !x.State.JobStopped() {
		for _, a := range x.Allocs[r.group.Position] { // as they are in the proposed state
			if a.Live() {
				r.Count(a, 1)
			}
		}
		return
	}
	snap := x.State.Snapshot()
	keys := []model.JobKey{r.group.Job.Key()}
	for _, t := range r.colocate {
		keys = append(keys, sortedKeys(snap.JobsMatching(t.rule.Labels), r.group.Job.Namespace)...)
	}
	eachLive(snap, keys, func(a *model.Allocation) { r.Count(a, 1) })
}

// Count updates the counts when an allocation of any job is placed (1) or removed
// (-1). Before Prepare it changes no count, since Prepare counts the proposed state.
func (r *Rules) Count(a *model.Allocation, by int) {
	if r == nil {
		return
	}
	if len(r.siblings) > 0 {
		r.dependencies = &dependencies{} // computed again on demand
	}
	if !r.counted {
		return
	}
	if r.spans {
		r.remote = &remoteConflicts{} // likewise
	}
	if a.Job.Namespace != r.group.Job.Namespace {
		return
	}
	own := a.Job.ID == r.group.Job.ID && a.Group.Name == r.group.Name
	if !own && len(r.colocate) == 0 {
		return
	}
	pos := a.NodePos
	node := r.ctx.State.Snapshot().NodeAt(pos)
	if node == nil {
		return
	}
	if own {
		r.onNode.add(pos, by)
		for _, p := range r.properties {
			p.count(node, by)
		}
		for _, s := range r.spreads {
			s.count(node, by)
		}
	}
	for _, t := range r.colocate {
		if !t.rule.Matches(a.Group.Labels) {
			continue
		}
		if t.count(node, pos, by); a.Job.ID != r.group.Job.ID {
			t.countOtherJob(node, by)
		}
	}
}

// RanksOnly reports whether the rules rank nodes and cannot exclude any.
func (r *Rules) RanksOnly() bool { return r.ranksOnly }

// IsGlobal reports whether one placement may change the rank of every node.
func (r *Rules) IsGlobal() bool {
	return r != nil && (len(r.group.Spread)+len(r.siblings) > 0 || r.Binds())
}

// Binds reports whether the placements of the group hold only together, so that
// they must share a commit group.
func (r *Rules) Binds() bool {
	return r != nil && (len(r.group.Colocate) > 0 || !r.BindsByColocationAlone())
}

// BindsByColocationAlone reports whether no other rule than co-location binds.
func (r *Rules) BindsByColocationAlone() bool {
	g := r.group
	return !r.spans &&
		!slices.ContainsFunc(g.Spread, func(s model.Spread) bool { return s.MaxSkew > 0 }) &&
		!slices.ContainsFunc(g.Constraints, func(c model.Constraint) bool { return c.Operator == model.OpDistinctProperty })
}

// IsLocalWithin reports whether placements change the decision about their own nodes alone
// as long as the group is limited to a domain: co-location is the only rule that concerns
// other nodes, the domain satisfies it everywhere, and nothing but the group itself matches.
func (r *Rules) IsLocalWithin(d *Domain) bool {
	g := r.group
	if d == nil || len(g.Colocate) == 0 || r.spans || len(g.Spread)+len(r.siblings) > 0 ||
		slices.ContainsFunc(g.Constraints, func(c model.Constraint) bool { return c.Operator == model.OpDistinctProperty }) {
		return false
	}
	own := 0
	for _, pos := range r.Prepare().onNode.positions() {
		if n := r.ctx.State.Snapshot().NodeAt(pos); n != nil && d.Contains(n) {
			own += r.onNode.at(pos)
		}
	}
	return own > 0 && !slices.ContainsFunc(r.colocate, func(t *labelTerm) bool {
		return t.total != own || !t.rule.Matches(g.Labels) || !d.Covers(t.rule.TopologyKey)
	})
}

// Check returns the decision about one more instance on a node.
func (r *Rules) Check(pos int32, n *model.Node) Verdict {
	if r.ranksOnly {
		return Allowed
	}
	switch {
	case r.fixedViolation(pos, n) != "":
		return Forbidden
	case r.spans && r.anti.domainViolation(pos, n) != "":
		return DomainConflict
	case r.anti.others.at(pos) > 0:
		return LocalConflict
	}
	return Allowed
}

// Allows reports whether the node may take one more instance, perhaps after
// evictions on the node itself. It is part of preempt.Rules.
func (r *Rules) Allows(pos int32) bool {
	return r.ranksOnly || r.Violation(pos, r.ctx.State.Snapshot().NodeAt(pos)) == ""
}

// Violation returns the rule that no eviction on the node itself can satisfy, or "".
func (r *Rules) Violation(pos int32, n *model.Node) string {
	if why := r.fixedViolation(pos, n); why != "" {
		return why
	}
	return r.anti.domainViolation(pos, n)
}

// fixedViolation returns the rule that no eviction at all can satisfy, or "".
func (r *Rules) fixedViolation(pos int32, n *model.Node) string {
	r.Prepare()
	if r.distinctHosts && r.onNode.at(pos) > 0 {
		return string(model.OpDistinctHosts)
	}
	for _, p := range r.properties {
		if why := p.violation(n); why != "" {
			return why
		}
	}
	for _, s := range r.spreads {
		if why := s.violation(n); why != "" {
			return why
		}
	}
	for _, t := range r.colocate {
		if !t.hasTarget(pos, n, r.group) {
			return t.untargetedReason(n)
		}
	}
	return r.anti.ownViolation(pos)
}

// LacksAffinityTarget reports whether a co-location term of the group does not hold
// on a node.
func (r *Rules) LacksAffinityTarget(pos int32, n *model.Node) bool {
	for _, t := range r.Prepare().colocate {
		if !t.hasTarget(pos, n, r.group) {
			return true
		}
	}
	return false
}

// HasSeparation reports whether an allocation may have to be evicted because of
// anti-affinity. It is part of preempt.Rules.
func (r *Rules) HasSeparation() bool { return len(r.group.Separate)+len(r.repellers) > 0 }

// HasSeparatedRows reports whether the group and some allocation on a node exclude each
// other. It is part of preempt.Rules.
func (r *Rules) HasSeparatedRows(pos int32) bool { return r.Prepare().anti.others.at(pos) > 0 }

// Separated reports whether the group and a row of the node exclude each other.
// It is part of preempt.Rules.
func (r *Rules) Separated(pos int32, row *state.Row) bool {
	if !r.HasSeparatedRows(pos) || row.Group.Job.Namespace != r.group.Job.Namespace {
		return false
	}
	node := r.ctx.State.Snapshot().NodeAt(pos)
	return Repels(r.group, row.Group, node) || Repels(row.Group, r.group, node)
}
