package scheduler

import (
	"fmt"
	"math"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/preempt/protect"
)

// gang places all that is missing of a job, or nothing of it.
//
// Group by group, each instance on the node that is best for it, is quick and
// nearly always enough, but blind: a small group may take the one node that a large
// one needs, the first of a group that stays together may begin where there is too
// little room for the rest. So where that finds nothing, and amounts do not rule it
// out, the largest group first is tried (gang_order.go), one rack or zone after
// another for groups that stay together (gang_domain.go), and last gangSearch, which
// goes back on what was decided. All of it is tried without evictions first: a gang
// that finds room evicts nobody.
type gang struct {
	run   *run
	wants [][]want // by the position of the group
	begin gangBegin
	cut   int // steps after which a search gave up; 0: none did
	// futile is whether a search found already that nothing can be placed.
	futile bool
}

// gangBegin is the run before any of the gang was placed.
type gangBegin struct {
	proposed *stateSnapshot
	stopped  bool
	out      Outcome
	mark     int
}

// placeGang places all groups or none.
func (r *run) placeGang(wants [][]want) error {
	g := &gang{run: r, wants: wants, begin: gangBegin{r.keep(), r.stopped, r.out, r.plan.mark()}}
	r.plan.bound = "gang"
	defer func() { r.plan.bound = "" }()
	if r.preempts && !g.hopeless() {
		if placed, err := g.placeFreely(); placed || err != nil {
			return err
		}
		g.futile = !r.mayEvict()
	}
	if placed, err := g.place(); placed || err != nil {
		return err
	}
	g.fail()
	return nil
}

// hopeless is whether it is known of some group that nothing that changed since
// could take it.
func (g *gang) hopeless() bool {
	r := g.run
	for i, group := range r.job.Groups {
		if len(g.wants[i]) == 0 || slices.ContainsFunc(g.wants[i], func(w want) bool { return w.replaces != nil }) {
			continue
		}
		if _, hopeless := r.stillHopeless(group, r.newRules(group)); hopeless {
			return true
		}
	}
	return false
}

// placeFreely is place as if nobody might be evicted. What it learns is not
// remembered: it is not what evaluations ask for.
func (g *gang) placeFreely() (placed bool, err error) {
	r := g.run
	memorable, ceiling := r.memorable, r.ceiling
	r.preempts, r.memorable, r.ceiling = false, false, math.MinInt64
	placed, err = g.place()
	r.preempts, r.memorable, r.ceiling = true, memorable, ceiling
	if err == nil && !placed {
		g.rollback()
	}
	return placed, err
}

// place places the gang as best it can. Where it cannot, the outcome says why.
func (g *gang) place() (placed bool, err error) {
	r := g.run
	if err := g.oneByOne(g.inOrder()); err != nil {
		return false, err
	}
	if !r.out.Placed() {
		failed := r.out
		if placed, err = g.search(); err != nil || !placed {
			at := r.out.RecheckAt
			r.out = failed
			r.recheck(at)
			return false, err
		}
	}
	g.spare()
	return true, nil
}

// oneByOne places group after group, each instance where it is best.
func (g *gang) oneByOne(groups []*model.Group) error {
	for _, group := range groups {
		if err := g.run.placeGroup(group, g.wants[group.Position]); err != nil {
			return err
		}
	}
	return nil
}

// inOrder is the groups as the job lists them.
func (g *gang) inOrder() []*model.Group { return g.run.job.Groups }

// rollback forgets everything about the gang.
func (g *gang) rollback() {
	r := g.run
	r.plan.rollback(g.begin.mark)
	r.proposed, r.stopped, r.out = g.begin.proposed, g.begin.stopped, g.begin.out
	r.draft, r.separations, r.merged, r.evicted = nil, nil, nil, protect.EvictionCounts{}
}

// fail says of every group why it is not placed.
func (g *gang) fail() {
	r := g.run
	r.plan.rollback(g.begin.mark)
	why := "all at once: another group of the job has no place"
	if g.cut > 0 {
		why = fmt.Sprintf("all at once: no places that go together were found in %d steps, and the rest was not tried", g.cut)
	}
	for i, group := range r.job.Groups {
		n := len(g.wants[i])
		if n <= r.out.Queued[group.Name] {
			continue
		}
		r.fail(group, n-r.out.Queued[group.Name], &model.Explanation{
			Nodes:    r.base.NodeCount(),
			Filtered: map[string]int{why: r.base.NodeCount()},
		})
	}
	if g.cut == 0 {
		return
	}
	r.out.SearchesCut++
	for _, e := range r.out.Failed {
		if e.Filtered[why] == 0 {
			model.CountReason(&e.Preempted, why, e.Nodes)
		}
	}
}

// search looks for places that go together where choosing the best for each
// instance found none.
func (g *gang) search() (placed bool, err error) {
	g.rollback()
	if g.futile || g.greedySuffices() || !g.mayFit() {
		return false, nil
	}
	if placed, err = g.tryOrders(); placed || err != nil {
		return placed, err
	}
	if placed, err = g.placeTogether(); placed || err != nil {
		return placed, err
	}
	s := newGangSearch(g)
	placed, err = s.find(0)
	if s.cut {
		g.cut += s.steps
	}
	if placed {
		s.write()
	} else {
		g.rollback()
	}
	return placed, err
}

// greedySuffices is whether one instance after the other is all there is to try:
// they are alike, and each takes from its node alone.
func (g *gang) greedySuffices() bool {
	r := g.run
	missing := 0
	for i, group := range r.job.Groups {
		if len(g.wants[i]) == 0 {
			continue
		}
		missing++
		rules := r.newRules(group)
		if len(group.Ask.Devices) > 0 || rules.binds() || rules != nil && rules.HasSeparation() {
			return false
		}
	}
	return missing < 2 && (!r.preempts || r.base.StrictBudgetCount() == 0 && !r.guarded())
}

// mayEvict is whether somebody's priority is low enough.
func (r *run) mayEvict() bool {
	for c := range r.base.ChunkCount() {
		chunk := r.base.Chunk(c)
		for i := range chunk.Len() {
			if int64(chunk.MinPriority(i)) <= r.ceiling {
				return true
			}
		}
	}
	return false
}

// guarded is whether something says more of who may be evicted than priorities.
func (r *run) guarded() bool {
	for c := range r.base.ChunkCount() {
		if r.base.Chunk(c).HasEvictionRules() != 0 {
			return true
		}
	}
	return false
}

// mayFit is whether there is room for each group by itself, with everything gone
// that may be evicted. Most gangs that wait are told so by one look at each node.
func (g *gang) mayFit() bool {
	for i, group := range g.run.job.Groups {
		if !g.groupMayFit(group, len(g.wants[i])) {
			return false
		}
	}
	return true
}

func (g *gang) groupMayFit(group *model.Group, need int) bool {
	r := g.run
	feasible := newFeasibility(group, r.base.ClassCount())
	feasible.within = r.within[group]
	perNode := math.MaxInt
	if slices.ContainsFunc(group.Constraints, func(c model.Constraint) bool { return c.Operator == model.OpDistinctHosts }) {
		perNode = 1
	}
	for c := range r.proposed.ChunkCount() {
		chunk := r.proposed.Chunk(c)
		for i := range chunk.Len() {
			if need <= 0 {
				return true
			}
			if chunk.Eligible()>>i&1 == 1 && feasible.node(chunk, i) {
				most := r.mostRoom(int32(c*chunkSize + i))
				need -= times(&most, &group.Ask, min(need, perNode))
			}
		}
	}
	return need <= 0
}

// times is how often an ask fits into an amount, up to a number.
func times(room *model.Vector, ask *model.Ask, most int) int {
	n := int64(most)
	for _, d := range ask.Dims {
		if ask.Vec[d] > 0 {
			n = min(n, max(0, room[d])/ask.Vec[d])
		}
	}
	return int(n)
}
