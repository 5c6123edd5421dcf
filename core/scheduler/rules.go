package scheduler

import (
	"iter"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

// ruling is what rules between allocations say of a node.
type ruling int8

const (
	ruledIn      ruling = iota
	ruledByLocal        // only allocations on the node itself stand in the way
	ruledByWide         // and some on other nodes
	ruledOut
)

// groupRules holds what depends on where other allocations are: distinct hosts
// and properties, spread, co-location and separation, affinity and
// anti-affinity. Counts follow the plan. They are made when they are first
// asked for: most evaluations of a full cluster find no node that could take the
// group, whatever its rules say.
type groupRules struct {
	run    *run
	group  *model.Group
	others []model.JobKey // jobs that may want to be apart from the group

	distinctHosts bool
	spans         bool // a separation has domains of several nodes
	ranksOnly     bool // no rule can rule a node out
	affinityTotal float64
	discouraging  bool // some nodes have taints that are wishes

	counted    bool
	onNode     *tally // live instances of the group by node position
	properties []*property
	spreads    []*spread
	colocate   []*term
	sep        *separation
	away       *away
}

// newRules says what rules the group has; nil when it has none. A group whose
// instances merely prefer to be apart has rules too, once there is more than one,
// and so has every group where nodes have taints that are wishes.
func (r *run) newRules(g *model.Group) *groupRules {
	apart := r.separators(g)
	others := apart.jobs
	if !ownRules(g) && len(others) == 0 && !r.base.HasSoftTaints() {
		return nil
	}
	u := &groupRules{run: r, group: g, others: others, discouraging: r.base.HasSoftTaints()}
	u.distinctHosts = slices.ContainsFunc(g.Constraints, func(c model.Constraint) bool {
		return c.Operator == model.OpDistinctHosts
	})
	for i := range g.Affinities {
		u.affinityTotal += absolute(float64(g.Affinities[i].Weight))
	}
	u.spans = spansNodes(g.Separate) || apart.widely
	u.ranksOnly = !u.distinctHosts && !u.binds() && len(g.Separate)+len(others) == 0
	return u
}

// spansNodes is whether some term has domains of several nodes.
func spansNodes(terms []model.LabelTerm) bool {
	return slices.ContainsFunc(terms, func(t model.LabelTerm) bool { return !local(&t) })
}

// mayExcludeWidely is whether allocations of the job may keep others out of
// domains of several nodes. Of a job that is gone or was changed, allocations
// may be left with terms that it no longer has.
func (r *run) mayExcludeWidely(key model.JobKey) bool {
	job := r.base.Job(key)
	return job == nil || job.ModifyIndex != job.CreateIndex || job.SeparatesByDomain()
}

// ready makes the counts.
func (u *groupRules) ready() *groupRules {
	if u.counted {
		return u
	}
	u.counted = true
	r, g := u.run, u.group
	u.onNode = r.s.tallies.take(r.base)
	for i := range g.Constraints {
		if c := &g.Constraints[i]; c.Operator == model.OpDistinctProperty {
			u.properties = append(u.properties, newProperty(c))
		}
	}
	for i := range g.Spread {
		u.spreads = append(u.spreads, newSpread(&g.Spread[i], g, r))
	}
	u.colocate = r.newTerms(g.Colocate)
	u.sep, u.away = r.separation(g, u.others), &away{}
	u.countPresent()
	return u
}

// ownRules is whether the group itself says more than which nodes it may go to.
func ownRules(g *model.Group) bool {
	return g.Count > 1 || len(g.Affinities)+len(g.Spread)+len(g.Colocate)+len(g.Separate) > 0 ||
		slices.ContainsFunc(g.Constraints, func(c model.Constraint) bool { return c.Operator.CountsAllocations() })
}

// separators is the jobs that may want to be apart from groups that are alike in
// this, in a fixed order: separation binds both sides.
type separators struct {
	apart  string // Group.Apart of the groups
	jobs   []model.JobKey
	widely bool // some may exclude from domains of several nodes
}

// separators are looked for once for all groups of the job that are alike.
func (r *run) separators(g *model.Group) *separators {
	for _, s := range r.apart {
		if s.apart == g.SeparationClass() {
			return s
		}
	}
	s := &separators{apart: g.SeparationClass(), jobs: r.distinct(r.base.JobsSeparatedFrom(g.Labels), g.Job.Namespace)}
	s.widely = slices.ContainsFunc(s.jobs, r.mayExcludeWidely)
	r.apart = append(r.apart, s)
	return s
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

// countPresent counts the live allocations that the group's rules look at, as
// proposed: those of the group, and of jobs that carry the labels of its
// co-location terms.
func (u *groupRules) countPresent() {
	r := u.run
	if len(u.colocate) == 0 && !r.stopped {
		for _, a := range r.byGroup[u.group.Position] {
			if a.Live() {
				u.count(a, 1)
			}
		}
		return
	}
	keys := []model.JobKey{u.group.Job.Key()}
	for _, t := range u.colocate {
		keys = append(keys, r.distinct(r.proposed.JobsMatching(t.rule.Labels), u.group.Job.Namespace)...)
	}
	r.eachLive(keys, func(a *model.Allocation) { u.count(a, 1) })
}

// eachLive visits the live allocations of jobs, each job once, as proposed.
func (r *run) eachLive(keys []model.JobKey, visit func(*model.Allocation)) {
	slices.SortFunc(keys, model.JobKey.Compare)
	var allocs []*model.Allocation
	for _, key := range slices.Compact(keys) {
		allocs = r.proposed.AppendJobAllocs(allocs[:0], key)
		for _, a := range allocs {
			if a.Live() {
				visit(a)
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
func (u *groupRules) global() bool { return u != nil && (len(u.group.Spread) > 0 || u.binds()) }

// binds is whether placements of the group hold only together, so that they
// share a commit group.
func (u *groupRules) binds() bool {
	if u == nil {
		return false
	}
	g := u.group
	return u.spans || len(g.Colocate) > 0 ||
		slices.ContainsFunc(g.Spread, func(s model.Spread) bool { return s.MaxSkew > 0 }) ||
		slices.ContainsFunc(g.Constraints, func(c model.Constraint) bool { return c.Operator == model.OpDistinctProperty })
}

// count follows an allocation of any job that comes (1) or goes (-1). Before the
// counts are there it does nothing: they are made from the state as proposed.
func (u *groupRules) count(a *model.Allocation, by int) {
	if u == nil || !u.counted {
		return
	}
	if u.spans {
		u.away = &away{}
	}
	if a.Job.Namespace != u.group.Job.Namespace {
		return
	}
	own := a.Job.ID == u.group.Job.ID && a.Group.Name == u.group.Name
	if !own && len(u.colocate) == 0 {
		return
	}
	pos := a.NodePos
	node := u.run.proposed.NodeAt(pos)
	if node == nil {
		return
	}
	if own {
		u.onNode.add(pos, by)
		for _, p := range u.properties {
			p.count(node, by)
		}
		for _, s := range u.spreads {
			s.count(node, by)
		}
	}
	for _, t := range u.colocate {
		if !t.rule.Matches(a.Group.Labels) {
			continue
		}
		if t.count(node, pos, by); a.Job.ID != u.group.Job.ID {
			t.countOther(node, by)
		}
	}
}

// place is what the rules say of placing one more instance on a node.
func (u *groupRules) place(pos int32, n *model.Node) ruling {
	if u.ranksOnly {
		return ruledIn
	}
	switch {
	case u.fixedBy(pos, n) != "":
		return ruledOut
	case u.spans && u.sep.widelyBy(pos, n) != "":
		return ruledByWide
	case u.sep.apart.at(pos) > 0:
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
	if why := u.fixedBy(pos, n); why != "" {
		return why
	}
	return u.sep.widelyBy(pos, n)
}

// fixedBy names the rule that no eviction at all can satisfy; "" when there is none.
func (u *groupRules) fixedBy(pos int32, n *model.Node) string {
	u.ready()
	if u.distinctHosts && u.onNode.at(pos) > 0 {
		return string(model.OpDistinctHosts)
	}
	for _, p := range u.properties {
		if !p.allows(n) {
			return p.forbids
		}
	}
	for _, s := range u.spreads {
		if !s.allows(n) {
			return s.forbids
		}
	}
	for _, t := range u.colocate {
		if !t.hosts(pos, n, u.group) {
			return t.colocates
		}
	}
	return u.sep.fixedBy(pos)
}

// Components ranks a node beside its fit.
func (u *groupRules) Components(pos int32) (values [sdk.NumComponents]float64, present uint8) {
	u.ready()
	wishes := u.affinityTotal != 0 || len(u.spreads) != 0 || u.discouraging
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

// taintWeight is the weight of a taint that is a wish, as if it were an affinity
// of the group: the strongest there is.
const taintWeight = 100

// affinity is the sum of the weights of the wishes that hold over the sum of
// all weights' magnitudes. A taint that the group does not tolerate is a wish to
// be elsewhere.
func (u *groupRules) affinity(n *model.Node) float64 {
	sum, total := 0.0, u.affinityTotal
	if u.discouraging {
		against := float64(taintWeight * u.group.CountSoftTaints(n))
		sum, total = -against, total+against
	}
	if total == 0 {
		return 0
	}
	for i := range u.group.Affinities {
		a := &u.group.Affinities[i]
		if value, set := n.Attribute(a.Attribute); a.Holds(value, set) {
			sum += float64(a.Weight)
		}
	}
	return sum / total
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

// HasSeparation is whether some allocation may have to leave for the group.
func (u *groupRules) HasSeparation() bool { return len(u.group.Separate)+len(u.others) > 0 }

// HasSeparatedRows is whether somebody on a node and the group exclude one another.
func (u *groupRules) HasSeparatedRows(pos int32) bool { return u.ready().sep.apart.at(pos) > 0 }

// Separated is whether a row of the node and the group exclude one another.
func (u *groupRules) Separated(pos int32, row *state.Row) bool {
	if !u.HasSeparatedRows(pos) {
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
