package placement

import (
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/preempt"
	"github.com/cede-scheduler/cede/core/scheduler/feasible"
	"github.com/cede-scheduler/cede/core/scheduler/proposal"
	"github.com/cede-scheduler/cede/core/scheduler/rank"
	"github.com/cede-scheduler/cede/core/scheduler/reconcile"
	"github.com/cede-scheduler/cede/core/state"
)

// A Placer places the instances of one group one after another.
//
// It shares the workspace's ranker and finder: only one Placer may be in use at a
// time, and Close must be called before the next one is made.
type Placer struct {
	Rules  *feasible.Rules // nil: the group has none
	Ranker *rank.Ranker
	// WaitingSince is since when the group's longest-waiting instance is missing.
	WaitingSince int64

	e       *Evaluation
	group   *model.Group
	checker *feasible.NodeChecker

	searching bool // the finder was started for this group
	volatile  bool // see isVolatile, of searches that were released
	// excluded allocations are not candidates for eviction; nil: none.
	excluded Exclusions
	// settled is set if placements change the ranks of their own nodes alone; see isGlobal.
	settled bool
	// cut is set if a budget search for the group ended at its bound.
	cut bool

	known         *model.Explanation // made already, or cached
	cachedClasses *classSet          // of the cached failure; nil: there is none
	among         []int32            // nodes to be explained, in tie order; nil: all
	local         bool               // see NewLocalPlacer
	ahead         outlooks           // of the instance that is being placed
}

// NewPlacer returns a Placer for a group with the rules of feasible.NewRules. If
// the group's failure is cached, it examines only nodes that have changed since.
func (e *Evaluation) NewPlacer(g *model.Group, rules *feasible.Rules) *Placer {
	if f, ok := e.lookupFailure(g, rules); ok {
		p := e.newPlacer(g, e.NodeChecker(g), rules, f.index)
		p.known, p.cachedClasses = f.why, f.classes
		e.Unplaced.addCached(&f)
		return p
	}
	return e.newPlacer(g, e.NodeChecker(g), rules, 0)
}

// NewUncachedPlacer is NewPlacer without the cache of failures.
func (e *Evaluation) NewUncachedPlacer(g *model.Group) *Placer {
	return e.newPlacer(g, e.NodeChecker(g), feasible.NewRules(e.Rules, g), 0)
}

// NewLocalPlacer returns a Placer that places on some nodes only, and evicts nothing
// elsewhere. It examines no other node. Failures are not cached.
func (e *Evaluation) NewLocalPlacer(g *model.Group, nodes *state.NodeSet) *Placer {
	in := e.rankerInput(g, e.NodeChecker(g), feasible.NewRules(e.Rules, g))
	in.Nodes = nodes
	p := e.build(in)
	p.local = true
	return p
}

// NewSystemPlacer returns a Placer for a group of a system job and the checker
// that NodeChecker returned for it.
func (e *Evaluation) NewSystemPlacer(g *model.Group, checker *feasible.NodeChecker) *Placer {
	return e.newPlacer(g, checker, feasible.NewRules(e.Rules, g), 0)
}

// NodeChecker returns the checker for a group. It is valid until the next call.
func (e *Evaluation) NodeChecker(g *model.Group) *feasible.NodeChecker {
	c := e.ws.checker.Reset(g, e.State.Base.ClassCount())
	c.Within = e.domains[g]
	return c
}

func (e *Evaluation) newPlacer(g *model.Group, checker *feasible.NodeChecker, rules *feasible.Rules, since uint64) *Placer {
	in := e.rankerInput(g, checker, rules)
	in.Since = since
	return e.build(in)
}

func (e *Evaluation) rankerInput(g *model.Group, checker *feasible.NodeChecker, rules *feasible.Rules) rank.Input {
	return rank.Input{
		State: e.State, Order: &e.ws.Order, Group: g, Checker: checker, Rules: rules,
		Algorithm: e.State.Base.Config().Algorithm, Now: e.Now, Preemption: e.Preemption,
	}
}

func (e *Evaluation) build(in rank.Input) *Placer {
	p := &Placer{e: e, group: in.Group, checker: in.Checker, Rules: in.Rules, Ranker: &e.ws.ranker}
	p.Ranker.Build(in)
	return p
}

// Place finds a node for one instance and adds it to the plan, or returns false.
// more states whether other instances of the group follow.
func (p *Placer) Place(m reconcile.Missing, more bool) (ok bool, err error) {
	var before *state.Snapshot
	if m.Replaces != nil {
		before = p.e.State.Freeze()
		p.remove(m.Replaces)
	}
	choice, ok, err := p.choose(m)
	if err != nil || !ok {
		if m.Replaces != nil {
			p.restore(m.Replaces, before)
		}
		return false, err
	}
	a := p.e.NewAllocation(p.group, m, choice.Choice)
	p.e.Plan.Place(&proposal.Placement{
		Alloc: a, Victims: choice.Victims, Policy: PolicyID(choice.Choice), Why: choice.Why, Replaces: m.Replaces, Reason: m.Reason, Moves: choice.moves,
	})
	return true, p.follow(a, choice, more)
}

// PolicyID returns the ID of the version that chose the victims, or "" if there are none.
func PolicyID(c preempt.Choice) string {
	if len(c.Victims) == 0 {
		return ""
	}
	return c.Version.ID
}

// Count updates all counts of the evaluation when an allocation is placed (1) or
// removed (-1).
func (p *Placer) Count(a *model.Allocation, by int) {
	p.Rules.Count(a, by)
	p.e.Rules.Count(a, by)
}

// remove frees the capacity of an allocation that is to be replaced.
func (p *Placer) remove(a *model.Allocation) {
	p.e.State.Apply(nil, []*model.Allocation{a}, model.DesiredStop)
	p.Count(a, -1)
	p.refresh(a)
}

// restore undoes remove: its replacement has no node, so the allocation is retained.
// before must be the state that remove changed, with nothing placed since.
func (p *Placer) restore(a *model.Allocation, before *state.Snapshot) {
	p.e.State.Restore(before)
	p.Count(a, 1)
	p.refresh(a)
}

// isGlobal reports whether a placement may change the rank of every node. Within a domain,
// co-location holds everywhere, and mostly changes nothing.
func (p *Placer) isGlobal() bool {
	if !p.Rules.IsGlobal() {
		return false
	}
	p.settled = p.settled || p.Rules.IsLocalWithin(p.e.domains[p.group])
	return !p.settled
}

// refresh ranks an allocation's node again after it was removed or restored.
func (p *Placer) refresh(a *model.Allocation) {
	pos := a.NodePos
	if p.e.State.Snapshot().NodeAt(pos) == nil {
		return
	}
	if p.Rules.IsGlobal() {
		p.Ranker.Rebuild()
	} else {
		p.Ranker.Update(pos)
	}
	p.Close() // the next search has to start over
}

// found is the way in which an instance is placed.
type found struct {
	preempt.Choice
	moves []proposal.Move // that make room for it
}

// choose returns the best node with free capacity, else the cheapest one that moves make room
// on, else the best option for eviction. An instance never evicts while some node has enough
// free capacity, or could have it at the price of a restart that loses no more work.
func (p *Placer) choose(m reconcile.Missing) (found, bool, error) {
	p.ahead = outlooks{p, m}
	if pos, score, ok := p.Ranker.Best(); ok {
		device, _ := p.Ranker.Device(pos, p.e.State.Snapshot().NodeAt(pos))
		return found{Choice: preempt.Choice{Pos: pos, Device: device, Score: score}}, true, nil
	}
	moves, movable := p.chooseMoves(m)
	moved := proposal.Moved(moves.moves)
	if movable && !LosesWork(p.e, moved) {
		return moves, true, nil
	}
	choice, ok, err := p.chooseEvictions()
	switch {
	case !movable:
	case err == nil && (!ok || !PrefersEvictions(p.e, p.e.State.Freeze(), choice.Victims, moved)), p.e.Policy.Ignore(err):
		return moves, true, nil // also if the policy is at fault: it has no part in moves
	}
	return found{Choice: choice}, ok, err
}

// chooseEvictions returns the best option for eviction.
func (p *Placer) chooseEvictions() (preempt.Choice, bool, error) {
	if !p.e.Preemption.Allowed {
		return preempt.Choice{}, false, nil
	}
	if !p.searching {
		nodes := p.Ranker.Full()
		if len(nodes) == 0 {
			return preempt.Choice{}, false, nil
		}
		if err := p.search(nodes); err != nil {
			return preempt.Choice{}, false, err
		}
	}
	choice, ok, err := p.e.ws.finder.Best()
	if ok || err != nil {
		return choice, ok, err
	}
	return p.chooseUnderBudgets()
}

// NewAllocation returns the new allocation for a missing instance and a choice.
func (e *Evaluation) NewAllocation(g *model.Group, m reconcile.Missing, c preempt.Choice) *model.Allocation {
	return newAllocation(e, g, m, c, e.ws.Options.NewID(g, m.Index, m.Incarnation))
}

func newAllocation(e *Evaluation, g *model.Group, m reconcile.Missing, c preempt.Choice, id string) *model.Allocation {
	node := e.State.Snapshot().NodeAt(c.Pos)
	a := &model.Allocation{
		ID:  id,
		Job: g.Job, Group: g, Index: m.Index, Incarnation: m.Incarnation,
		NodeID: node.ID, NodePos: c.Pos, EvalID: e.Eval.ID, SavedWork: m.SavedWork,
		CreateTime: e.Now, Score: c.Score, PolicyVersion: PolicyID(c),
	}
	for r, at := range c.Device {
		a.Devices = append(a.Devices, model.DeviceUse{ID: node.Devices[at].ID, Count: g.Ask.Devices[r].Count})
	}
	for _, v := range c.Victims {
		a.Preempted = append(a.Preempted, v.ID)
	}
	slices.Sort(a.Preempted)
	return a
}

// follow updates the proposed state and the counts after a placement, and if more
// instances follow, the ranking and the search as well. With rules that concern all
// nodes, it costs a scan of them for each instance.
func (p *Placer) follow(a *model.Allocation, c found, more bool) error {
	e := p.e
	changed, groups := []int32{c.Pos}, []*model.Group(nil)
	// Each victim and moved instance changes its own node. The finder needs the groups to
	// update what it has computed for other instances of them.
	leaves := func(v *model.Allocation) {
		if !slices.Contains(groups, v.Group) {
			groups = append(groups, v.Group)
		}
		if !slices.Contains(changed, v.NodePos) {
			changed = append(changed, v.NodePos)
		}
		p.Count(v, -1)
	}
	e.Moves.apply(e.State, c.moves)
	if p.searching || len(c.Victims)+len(c.moves) > 0 { // the finder retains chunks
		e.State.PlaceRetained(a, c.Victims)
	} else {
		e.State.Place(a)
	}
	e.CountEvictions(c.Victims)
	p.Count(a, 1)
	for _, v := range c.Victims {
		leaves(v)
	}
	for _, m := range c.moves {
		leaves(m.From)
		p.Count(m.To, 1)
		changed = append(changed, m.To.NodePos)
	}
	if !more {
		return nil
	}
	if len(c.moves) > 0 {
		p.Close() // the next search excludes what was moved
	}
	if p.isGlobal() {
		p.Ranker.Rebuild()
		p.Close()
		return nil
	}
	for _, pos := range changed {
		if e.State.Snapshot().NodeAt(pos) != nil {
			p.Ranker.Update(pos)
		}
	}
	if p.searching {
		return e.ws.finder.Update(e.State.Snapshot(), changed, groups)
	}
	return nil
}
