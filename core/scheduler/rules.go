package scheduler

import (
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
	foreign       []*term // terms of others that match the group
	wide          []*term // those of the last two whose domains span nodes
	apart         *tally  // allocations on the node that keep the group away from it

	affinityTotal float64
	// ranksOnly says that no rule can rule a node out.
	ranksOnly bool
}

// needsRules is whether a group has any rule beyond its own constraints. A
// group whose instances merely prefer to be apart needs them too, once there is
// more than one.
func (r *run) needsRules(g *model.Group) bool {
	if g.Count > 1 || len(g.Affinities)+len(g.Spread)+len(g.Colocate)+len(g.Separate) > 0 {
		return true
	}
	for i := range g.Constraints {
		if g.Constraints[i].Operator.Counts() {
			return true
		}
	}
	return len(r.separators(g)) > 0
}

func (r *run) newRules(g *model.Group) *groupRules {
	if !r.needsRules(g) {
		return nil
	}
	u := &groupRules{run: r, group: g, onNode: r.s.tallies.take(r.base), apart: r.s.tallies.take(r.base)}
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
	u.countOwn()
	u.colocate = r.termsOf(g.Colocate, g.Job.Namespace, nil)
	u.separate = r.termsOf(g.Separate, g.Job.Namespace, u.apart)
	u.foreign = r.foreignTerms(g, u.apart)
	for _, t := range slices.Concat(u.separate, u.foreign) {
		if !local(t.rule) {
			u.wide = append(u.wide, t)
		}
	}
	u.ranksOnly = !u.distinctHosts && !u.binds() && len(u.separate)+len(u.foreign) == 0
	return u
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
	return len(u.properties)+len(u.colocate)+len(u.wide) > 0
}

// countOwn counts the live instances of the group as proposed.
func (u *groupRules) countOwn() {
	for _, a := range u.run.s.allocs {
		if a.Live() && a.Group.Name == u.group.Name {
			u.count(a, 1)
		}
	}
}

// count follows an instance of the group that comes (1) or goes (-1).
func (u *groupRules) count(a *model.Allocation, by int) {
	pos, ok := u.run.proposed.Position(a.NodeID)
	if !ok {
		return
	}
	node := u.run.proposed.NodeAt(pos)
	u.onNode.add(pos, by)
	for _, p := range u.properties {
		p.count(node, by)
	}
	for _, s := range u.spreads {
		s.count(node, by)
	}
	for _, list := range [][]*term{u.colocate, u.separate} {
		for _, t := range list {
			if t.rule.Matches(a.Group.Labels) {
				t.count(node, pos, by)
			}
		}
	}
	for _, t := range u.foreign {
		if t.owner == a.Group.Name && t.ownerJob == a.Job.Key() {
			t.count(node, pos, by)
		}
	}
}

// gone follows an allocation of another job that becomes a victim.
func (u *groupRules) gone(a *model.Allocation) {
	pos, ok := u.run.proposed.Position(a.NodeID)
	if !ok || a.Job.Namespace != u.group.Job.Namespace {
		return
	}
	node := u.run.proposed.NodeAt(pos)
	for _, list := range [][]*term{u.colocate, u.separate} {
		for _, t := range list {
			if t.rule.Matches(a.Group.Labels) {
				t.count(node, pos, -1)
			}
		}
	}
	for _, t := range u.foreign {
		if t.owner == a.Group.Name && t.ownerJob == a.Job.Key() {
			t.count(node, pos, -1)
		}
	}
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
	for _, t := range u.wide {
		if t.inDomain(pos, n) > t.onNode.at(pos) {
			return "separate from " + t.String()
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
