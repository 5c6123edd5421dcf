package scheduler

import (
	"iter"
	"slices"
	"strconv"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

// ruling is what rules between allocations say of a node.
type ruling int8

const (
	ruledIn      ruling = iota
	ruledByLocal        // only allocations on the node itself stand in the way
	ruledOut
)

// groupRules holds what depends on where other allocations are: distinct hosts
// and properties, spread, co-location and separation, affinity and
// anti-affinity. Counts follow the plan.
type groupRules struct {
	run   *run
	group *model.Group

	onNode        *tally // live instances of the group by node position
	distinctHosts bool
	properties    []*property
	spreads       []*spread
	colocate      []*term
	separate      []*term // the group's own terms
	foreign       []*term // what keeps away from the group, one for each topology key
	apart         *tally  // allocations of others on the node that exclude the group
	ownApart      *tally  // those of its own job, which are never evicted

	affinityTotal float64
	// ranksOnly says that no rule can rule a node out.
	ranksOnly bool
}

// newRules counts what the group's rules look at; nil when nothing does. A group
// whose instances merely prefer to be apart has rules too, once there is more
// than one.
func (r *run) newRules(g *model.Group) *groupRules {
	others := r.separators(g)
	if !ownRules(g) && len(others) == 0 {
		return nil
	}
	u := &groupRules{run: r, group: g}
	u.onNode, u.apart, u.ownApart = r.s.tallies.take(r.base), r.s.tallies.take(r.base), r.s.tallies.take(r.base)
	for i := range g.Constraints {
		switch c := &g.Constraints[i]; c.Operator {
		case model.OpDistinctHosts:
			u.distinctHosts = true
		case model.OpDistinctProperty:
			u.properties = append(u.properties, newProperty(c))
		}
	}
	for i := range g.Spread {
		u.spreads = append(u.spreads, newSpread(&g.Spread[i], g, r))
	}
	for i := range g.Affinities {
		u.affinityTotal += absolute(float64(g.Affinities[i].Weight))
	}
	u.colocate, u.separate = r.newTerms(g.Colocate), r.newTerms(g.Separate)
	u.countPresent(others)
	u.ranksOnly = !u.distinctHosts && !u.binds() && len(u.separate)+len(u.foreign) == 0
	return u
}

// ownRules is whether the group itself says more than which nodes it may go to.
func ownRules(g *model.Group) bool {
	return g.Count > 1 || len(g.Affinities)+len(g.Spread)+len(g.Colocate)+len(g.Separate) > 0 ||
		slices.ContainsFunc(g.Constraints, func(c model.Constraint) bool { return c.Operator.Counts() })
}

// separators lists the jobs that may want to be apart from the group, in a
// fixed order: separation binds both sides.
func (r *run) separators(g *model.Group) []model.JobKey {
	return r.distinct(r.base.Separating(g.Labels), g.Job.Namespace)
}

// distinct collects the keys of a namespace, each once, ascending.
func (r *run) distinct(keys iter.Seq[model.JobKey], namespace string) (list []model.JobKey) {
	for key := range keys {
		if key.Namespace == namespace {
			list = append(list, key)
		}
	}
	slices.SortFunc(list, model.JobKey.Compare)
	return slices.Compact(list)
}

// countPresent counts every live allocation that some rule looks at, as
// proposed: those of the group's own job, of jobs that carry the labels of its
// terms, and of jobs that want to be apart from it.
func (u *groupRules) countPresent(others []model.JobKey) {
	r := u.run
	keys := append([]model.JobKey{u.group.Job.Key()}, others...)
	for _, list := range [][]*term{u.colocate, u.separate} {
		for _, t := range list {
			keys = append(keys, r.distinct(r.proposed.Labelled(t.rule.Labels), u.group.Job.Namespace)...)
		}
	}
	slices.SortFunc(keys, model.JobKey.Compare)
	var allocs []*model.Allocation
	for _, key := range slices.Compact(keys) {
		allocs = r.proposed.AppendJobAllocs(allocs[:0], key)
		for _, a := range allocs {
			if a.Live() {
				u.count(a, 1)
			}
		}
	}
}

func absolute(x float64) float64 {
	if x < 0 {
		return -x
	}
	return x
}

// global is whether one placement may change the rank of every node.
func (u *groupRules) global() bool { return len(u.spreads) > 0 || u.binds() }

// binds is whether placements of the group hold only together, so that they
// share a commit group.
func (u *groupRules) binds() bool {
	if u == nil {
		return false
	}
	for _, s := range u.spreads {
		if s.rule.MaxSkew > 0 {
			return true
		}
	}
	return len(u.properties)+len(u.colocate) > 0 || u.wide()
}

// wide is whether separation has domains that span nodes.
func (u *groupRules) wide() bool {
	for _, t := range slices.Concat(u.separate, u.foreign) {
		if !local(t.rule) {
			return true
		}
	}
	return false
}

// count follows an allocation of any job that comes (1) or goes (-1).
func (u *groupRules) count(a *model.Allocation, by int) {
	pos, ok := u.run.proposed.Position(a.NodeID)
	if !ok || a.Job.Namespace != u.group.Job.Namespace {
		return
	}
	node := u.run.proposed.NodeAt(pos)
	own := a.Job.ID == u.group.Job.ID
	if own && a.Group.Name == u.group.Name {
		u.onNode.add(pos, by)
		for _, p := range u.properties {
			p.count(node, by)
		}
		for _, s := range u.spreads {
			s.count(node, by)
		}
	}
	for _, t := range u.colocate {
		if t.rule.Matches(a.Group.Labels) {
			t.count(node, pos, by)
		}
	}
	if !u.countApart(a, node, pos, by) {
		return
	}
	if own {
		u.ownApart.add(pos, by)
	} else {
		u.apart.add(pos, by)
	}
}

// countApart counts an allocation for the terms that keep it and the group
// apart, and tells whether any does on this node.
func (u *groupRules) countApart(a *model.Allocation, node *model.Node, pos int32, by int) (apart bool) {
	for _, t := range u.separate {
		if t.rule.Matches(a.Group.Labels) {
			apart = t.count(node, pos, by) || apart
		}
	}
	for i := range a.Group.Separate {
		rule := &a.Group.Separate[i]
		if !rule.Matches(u.group.Labels) {
			continue
		}
		apart = u.foreignTerm(rule).count(node, pos, by) || apart
	}
	return apart
}

// foreignTerm is the count for the topology key of a foreign term.
func (u *groupRules) foreignTerm(rule *model.LabelTerm) *term {
	for _, t := range u.foreign {
		if t.rule.TopologyKey == rule.TopologyKey {
			return t
		}
	}
	t := u.run.newTerm(rule)
	u.foreign = append(u.foreign, t)
	return t
}

// place is what the rules say of placing one more instance on a node.
func (u *groupRules) place(pos int32, n *model.Node) ruling {
	if u.ranksOnly {
		return ruledIn
	}
	if u.ruledOutBy(pos, n) != "" {
		return ruledOut
	}
	if u.apart.at(pos) > 0 {
		return ruledByLocal
	}
	return ruledIn
}

// Allows is whether no rule forbids the node whatever leaves it.
func (u *groupRules) Allows(pos int32) bool {
	return u.ranksOnly || u.ruledOutBy(pos, u.run.proposed.NodeAt(pos)) == ""
}

// ruledOutBy names the rule that no eviction on the node itself can satisfy; ""
// when there is none.
func (u *groupRules) ruledOutBy(pos int32, n *model.Node) string {
	if u.distinctHosts && u.onNode.at(pos) > 0 {
		return string(model.OpDistinctHosts)
	}
	for _, p := range u.properties {
		if !p.allows(n) {
			return p.String()
		}
	}
	for _, s := range u.spreads {
		if !s.allows(n) {
			return "spread over " + s.rule.Attribute + " with maxSkew " + strconv.Itoa(s.rule.MaxSkew)
		}
	}
	for _, t := range u.colocate {
		if !t.hosts(pos, n, u.group) {
			return "colocate with " + t.String()
		}
	}
	if u.ownApart.at(pos) > 0 {
		return "separate from allocations of its own job"
	}
	return u.ruledOutAround(pos, n)
}

// ruledOutAround names the separation by something elsewhere in the node's
// domain; "" when there is none.
func (u *groupRules) ruledOutAround(pos int32, n *model.Node) string {
	for _, t := range u.separate {
		if !local(t.rule) && t.inDomain(pos, n) > t.onNode.at(pos) {
			return "separate from " + t.String()
		}
	}
	for _, t := range u.foreign {
		if !local(t.rule) && t.inDomain(pos, n) > t.onNode.at(pos) {
			return "separate from allocations that exclude it by " + t.rule.TopologyKey
		}
	}
	return ""
}

// Components ranks a node beside its fit.
func (u *groupRules) Components(pos int32) (values [sdk.NumComponents]float64, present uint8) {
	wishes := u.affinityTotal != 0 || len(u.spreads) != 0
	if u.onNode.empty() && !wishes {
		return values, present
	}
	set := func(k sdk.Component, v float64) {
		values[k] = v
		present |= 1 << k
	}
	if n := u.onNode.at(pos); n > 0 && u.group.Count > 0 {
		set(sdk.AntiAffinity, -float64(n+1)/float64(u.group.Count))
	}
	if !wishes {
		return values, present
	}
	node := u.run.proposed.NodeAt(pos)
	if v := u.affinity(node); v != 0 {
		set(sdk.Affinity, v)
	}
	if v := u.balance(node); v != 0 {
		set(sdk.Spread, v)
	}
	return values, present
}

// affinity is the sum of the weights of the wishes that hold over the sum of
// all weights' magnitudes.
func (u *groupRules) affinity(n *model.Node) float64 {
	if u.affinityTotal == 0 {
		return 0
	}
	sum := 0.0
	for i := range u.group.Affinities {
		a := &u.group.Affinities[i]
		if value, set := n.Attribute(a.Attribute); a.Holds(value, set) {
			sum += float64(a.Weight)
		}
	}
	return sum / u.affinityTotal
}

// balance is the weighted mean of the spreads' wishes.
func (u *groupRules) balance(n *model.Node) float64 {
	sum, weights := 0.0, 0.0
	for _, s := range u.spreads {
		sum += float64(s.boost(n) * float64(s.rule.Weight))
		weights += float64(s.rule.Weight)
	}
	if weights == 0 {
		return 0
	}
	return sum / weights
}

// Separates is whether some allocation may have to leave for the group.
func (u *groupRules) Separates() bool { return len(u.separate)+len(u.foreign) > 0 }

// Separated is whether a row of the node and the group exclude one another.
func (u *groupRules) Separated(pos int32, row *state.Row) bool {
	if u.apart.at(pos) == 0 {
		return false
	}
	if row.Group.Job.Namespace != u.group.Job.Namespace {
		return false
	}
	node := u.run.proposed.NodeAt(pos)
	return excludes(u.group, row.Group, node) || excludes(row.Group, u.group, node)
}

// excludes is whether a term of a keeps b away from where both would be.
func excludes(a, b *model.Group, n *model.Node) bool {
	for i := range a.Separate {
		if t := &a.Separate[i]; t.Matches(b.Labels) {
			if _, ok := n.Domain(t.TopologyKey); ok {
				return true
			}
		}
	}
	return false
}

// Anchors is whether the group is placed beside the row: such a row is never a
// candidate, since evicting it may take away the reason for the place.
func (u *groupRules) Anchors(row *state.Row) bool {
	if row.Group.Job.Namespace != u.group.Job.Namespace {
		return false
	}
	for _, t := range u.colocate {
		if t.rule.Matches(row.Group.Labels) {
			return true
		}
	}
	return false
}
