package scheduler

import (
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/preempt"
)

// placer places the instances of one group, one after another: on the best node
// that has room, else on the best option that eviction opens.
type placer struct {
	run      *run
	group    *model.Group
	feasible *feasibility
	rules    *groupRules
	ranker   *ranker
	since    uint64 // nodes whose room did not change after it cannot help
	waits    int64  // since when the instance is missing that has waited longest

	searching bool // the finder has been begun for this group
	fickle    bool // what a search that is over found does not depend on room alone
	known     *model.Explanation
	seen      *classes                   // as the failure that is recalled knows them; nil: there is none
	spared    map[*model.Allocation]bool // who is no candidate, beside others; nil: nobody
	cut       bool                       // a search for whom to spare gave up; see chooseSparing
	among     []int32                    // nodes that an explanation is about, in tie order; nil: all
}

func (r *run) newPlacer(g *model.Group, rules *groupRules) *placer {
	p := &placer{
		run: r, group: g, feasible: r.s.feasible.reset(g, r.base.ClassCount()),
		rules: rules, ranker: &r.s.ranker,
	}
	p.feasible.within = r.within[g]
	if f, ok := r.recall(g, rules); ok {
		p.since, p.known, p.seen = f.index, f.why, f.classes
		r.alsoUnblock(&f)
	}
	p.ranker.build(r, g, p.feasible, p.rules, p.since)
	return p
}

// close gives the policies' instances back.
func (p *placer) close() {
	if p.searching {
		p.run.recheck(p.recheckAt())
		p.fickle = p.isFickle()
		p.run.s.finder.Release()
		p.searching = false
	}
}

// recheckAt is when the policy wants to be asked about the group again; 0: not
// by time.
func (p *placer) recheckAt() int64 {
	if !p.searching {
		return 0
	}
	return p.run.s.finder.RecheckAt()
}

// isFickle is whether something beside the room of nodes stood in the way of an
// eviction, so that it may be possible later though no node changes.
func (p *placer) isFickle() bool {
	return p.fickle || p.recheckAt() != 0 || p.searching && p.run.s.finder.NonFinal()
}

// recheck notes the earliest such time.
func (r *run) recheck(at int64) {
	if at != 0 && (r.out.RecheckAt == 0 || at < r.out.RecheckAt) {
		r.out.RecheckAt = at
	}
}

// place finds a place for one instance and adds it to the plan. more says that
// others of the group are to follow.
func (p *placer) place(w want, more bool) (ok bool, err error) {
	var before *stateSnapshot
	if w.replaces != nil {
		before = p.run.keep()
		p.leave(w.replaces)
	}
	choice, ok, err := p.choose()
	if err != nil || !ok {
		if w.replaces != nil {
			p.comeBack(w.replaces, before)
		}
		return false, err
	}
	a := p.allocation(w, choice)
	p.run.plan.place(a, choice.Victims, versionOf(choice), w.replaces, w.reason)
	return true, p.follow(a, choice, more)
}

func versionOf(c preempt.Choice) string {
	if len(c.Victims) == 0 {
		return ""
	}
	return c.Version.ID
}

// count lets every count of the evaluation follow an allocation that comes (1)
// or goes (-1).
func (p *placer) count(a *model.Allocation, by int) {
	p.rules.count(a, by)
	for _, s := range p.run.separations {
		s.count(a, by)
	}
}

// leave frees the room of an allocation that is being replaced.
func (p *placer) leave(a *model.Allocation) {
	p.run.propose(nil, []*model.Allocation{a}, model.DesiredStop)
	p.count(a, -1)
	p.changed(a)
}

// comeBack undoes leave: no place was found, so the old one stays.
func (p *placer) comeBack(a *model.Allocation, before *stateSnapshot) {
	p.run.proposed, p.run.draft = before, nil
	p.count(a, 1)
	p.changed(a)
}

// changed lets ranker and finder look at an allocation's node again.
func (p *placer) changed(a *model.Allocation) {
	pos := a.NodePos
	if p.run.proposed.NodeAt(pos) == nil {
		return
	}
	if p.rules.global() {
		p.ranker.rebuild()
	} else {
		p.ranker.update(pos)
	}
	p.close() // the next search begins afresh
}

// choose is the best node with room, else the best option.
func (p *placer) choose() (preempt.Choice, bool, error) {
	if pos, score, ok := p.ranker.best(); ok {
		choice, _ := p.ranker.device(pos, p.run.proposed.NodeAt(pos))
		return preempt.Choice{Pos: pos, Device: choice, Score: score}, true, nil
	}
	if !p.run.preempts {
		return preempt.Choice{}, false, nil
	}
	if !p.searching {
		nodes := p.ranker.full()
		if len(nodes) == 0 {
			return preempt.Choice{}, false, nil
		}
		if err := p.search(nodes); err != nil {
			return preempt.Choice{}, false, err
		}
	}
	choice, ok, err := p.run.s.finder.Best()
	if ok || err != nil {
		return choice, ok, err
	}
	return p.chooseSparing()
}

// search begins a search for victims on the given nodes.
func (p *placer) search(nodes []int32) error {
	r := p.run
	p.searching = true
	if open := r.version.Breaker.OpenError(r.now); open != nil {
		return open
	}
	r.asked = true
	request := preempt.Request{
		Group: p.group, Now: r.now, Algorithm: r.algorithm, Delta: r.base.Config().PriorityDelta,
		Waiting: max(0, r.now-p.waits), Attempts: r.eval.Attempts,
		Policy: r.version, Default: r.policies.Default(),
		Nodes: nodes, Excluded: p.spared, Evictions: &r.evicted, Weights: r.s.config.Weights,
		TieOrder: r.s.config.Ties, Workers: r.s.config.Workers, OnCall: r.s.tell,
		// What runs on every node has nowhere else to go, and its instances are placed
		// together.
		RemoteEvictions: !r.job.Type.PerNode(),
	}
	if p.rules != nil {
		request.Rules = p.rules.ready() // before workers share them
	}
	return r.s.finder.Start(r.keep(), request)
}

// allocation makes the new instance.
func (p *placer) allocation(w want, c preempt.Choice) *model.Allocation {
	node := p.run.proposed.NodeAt(c.Pos)
	a := &model.Allocation{
		ID:  p.run.s.config.NewID(p.group, w.index, w.incarnation),
		Job: p.group.Job, Group: p.group, Index: w.index, Incarnation: w.incarnation,
		NodeID: node.ID, NodePos: c.Pos, EvalID: p.run.eval.ID, SavedWork: w.saved,
		CreateTime: p.run.now, Score: c.Score, PolicyVersion: versionOf(c),
	}
	for r, at := range c.Device {
		a.Devices = append(a.Devices, model.DeviceUse{ID: node.Devices[at].ID, Count: p.group.Ask.Devices[r].Count})
	}
	for _, v := range c.Victims {
		a.Preempted = append(a.Preempted, v.ID)
	}
	slices.Sort(a.Preempted)
	return a
}

// follow brings everything up to date with a placement: the state as proposed and
// the counts, and with more instances to come the ranking and the search.
func (p *placer) follow(a *model.Allocation, c preempt.Choice, more bool) error {
	r := p.run
	if p.searching || len(c.Victims) > 0 { // the finder keeps what it was shown
		r.propose([]*model.Allocation{a}, c.Victims, model.DesiredEvict)
	} else {
		r.proposeOne(a)
	}
	var groups []*model.Group
	touched := []int32{c.Pos}
	for _, v := range c.Victims {
		r.evicted.Add(v.Group)
		if !slices.Contains(groups, v.Group) {
			groups = append(groups, v.Group)
		}
		if !slices.Contains(touched, v.NodePos) {
			touched = append(touched, v.NodePos)
		}
	}
	p.count(a, 1)
	for _, v := range c.Victims {
		p.count(v, -1)
	}
	if !more {
		return nil
	}
	if p.rules.global() {
		p.ranker.rebuild()
		p.close()
		return nil
	}
	for _, pos := range touched {
		if r.proposed.NodeAt(pos) != nil {
			p.ranker.update(pos)
		}
	}
	if p.searching {
		return r.s.finder.Update(r.proposed, touched, groups)
	}
	return nil
}
