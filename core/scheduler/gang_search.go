package scheduler

import (
	"cmp"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/preempt"
	"github.com/cede-scheduler/cede/core/preempt/protect"
	"github.com/cede-scheduler/cede/core/state"
)

const chunkSize = state.ChunkSize

// A search for a gang ends after so many steps, or when it has looked at so many
// nodes: about a tenth of a second on a large cluster. A step ranks all nodes for
// one instance.
const (
	maxGangSteps = 1024
	maxGangLooks = 1 << 18
)

// gangSearch places the instances of a gang one after another, in the order of
// preference, and goes back to the last one that has another place when one finds
// none: it finds places that go together whenever there are any, unless it is cut.
// What several orders of placing have in common, it looks at once.
type gangSearch struct {
	run    *run
	wanted []gangWant
	path   []gangStep
	dead   map[string]bool // by situation: nothing came of it

	steps, looks int
	cut          bool
}

// gangWant is an instance to place.
type gangWant struct {
	group *model.Group
	want  want
	since int64 // since when the one of its group is missing that has waited longest
}

// gangStep is an instance that was placed.
type gangStep struct {
	option gangOption
	alloc  *model.Allocation
	before *stateSnapshot
}

// gangOption is a place for an instance.
type gangOption struct {
	choice preempt.Choice
	left   *stateSnapshot // the state once the allocation that it replaces has left
}

func newGangSearch(g *gang) *gangSearch {
	s := &gangSearch{run: g.run, dead: map[string]bool{}}
	for i, group := range g.run.job.Groups {
		since := int64(0)
		for k, w := range g.wants[i] {
			if k == 0 || w.since < since {
				since = w.since
			}
		}
		for _, w := range g.wants[i] {
			s.wanted = append(s.wanted, gangWant{group, w, since})
		}
	}
	return s
}

// find places the instances from one on.
func (s *gangSearch) find(at int) (found bool, err error) {
	if at == len(s.wanted) {
		return true, nil
	}
	situation := s.situation()
	if s.dead[situation] || !s.afford() {
		return false, nil
	}
	options, kept, err := s.options(&s.wanted[at])
	if err != nil {
		return false, err
	}
	if found, err = s.try(at, options); found || err != nil {
		return found, err
	}
	if found, err = s.tryOtherVictims(at, options, kept); found || err != nil {
		return found, err
	}
	s.dead[situation] = true // or the search is over
	return false, nil
}

// try places an instance in one way after another, and those after it.
func (s *gangSearch) try(at int, options []gangOption) (found bool, err error) {
	for i := range options {
		s.take(&s.wanted[at], options[i])
		if found, err = s.find(at + 1); found || err != nil {
			return found, err
		}
		s.takeBack()
	}
	return false, nil
}

// afford pays for a step; false when there is nothing left to pay with.
func (s *gangSearch) afford() bool {
	nodes := s.run.base.NodeCount()
	if s.cut = s.cut || s.steps >= maxGangSteps || s.looks+nodes > maxGangLooks; s.cut {
		return false
	}
	s.steps++
	s.looks += nodes
	return true
}

// situation names what was placed where, over whom, in whatever order.
func (s *gangSearch) situation() string {
	words := make([]string, 0, 2*len(s.path))
	for i := range s.path {
		a := s.path[i].alloc
		word := []string{"+" + a.Group.Name, a.NodeID}
		for _, d := range a.Devices {
			word = append(word, d.ID)
		}
		words = append(words, strings.Join(word, "\x00"))
		for _, v := range s.path[i].option.choice.Victims {
			words = append(words, "-"+v.ID)
		}
	}
	slices.Sort(words)
	return strings.Join(words, "\x01")
}

// options lists the places for an instance in the order of preference: nodes that
// have room, then those where somebody is evicted. kept are nodes where strict budgets
// keep who would have to go.
func (s *gangSearch) options(w *gangWant) (list []gangOption, kept []int32, err error) {
	r := s.run
	// Counts are made afresh, from the state as proposed.
	r.separations, r.stopped = nil, true
	r.s.tallies.reclaim()
	before := r.proposed
	defer func() { r.proposed = before }()
	p := s.placer(w)
	defer p.close()
	list = p.roomy()
	if r.preempts {
		if nodes := p.ranker.full(); len(nodes) > 0 {
			evicting, err := p.evicting(nodes)
			if err != nil {
				return nil, nil, err
			}
			list, kept = append(list, evicting...), p.protected()
		}
	}
	for i := range list {
		list[i].left = r.proposed
	}
	return list, kept, nil
}

// placer looks for places for an instance, as if what it replaces had left.
func (s *gangSearch) placer(w *gangWant) *placer {
	r := s.run
	if w.want.replaces != nil {
		r.propose(nil, []*model.Allocation{w.want.replaces}, model.DesiredStop)
	}
	memorable := r.memorable
	r.memorable = false
	p := r.newPlacer(w.group, r.newRules(w.group))
	r.memorable, p.waits = memorable, w.since
	return p
}

// evicting lists the options on nodes where somebody is evicted, the best first.
func (p *placer) evicting(nodes []int32) (list []gangOption, err error) {
	if err := p.search(nodes); err != nil {
		return nil, err
	}
	err = p.run.s.finder.EachRanked(func(c preempt.Choice) bool {
		c.Victims, c.Device = slices.Clone(c.Victims), slices.Clone(c.Device)
		list = append(list, gangOption{choice: c})
		return true
	})
	return list, err
}

// roomy lists the nodes that have room, the best first.
func (p *placer) roomy() (list []gangOption) {
	k := p.ranker
	for rank, stands := range k.standing {
		if stands == standsReady {
			list = append(list, gangOption{choice: preempt.Choice{Pos: p.run.s.order.byRank[rank], Score: k.score[rank]}})
		}
	}
	slices.SortStableFunc(list, func(a, b gangOption) int { return cmp.Compare(b.choice.Score, a.choice.Score) })
	for i := range list {
		c := &list[i].choice
		device, _ := k.device(c.Pos, p.run.proposed.NodeAt(c.Pos))
		c.Device = slices.Clone(device)
	}
	return list
}

// take places an instance.
func (s *gangSearch) take(w *gangWant, o gangOption) {
	r := s.run
	p := placer{run: r, group: w.group}
	step := gangStep{o, p.allocation(w.want, o.choice), r.keep()}
	r.proposed = o.left
	r.propose([]*model.Allocation{step.alloc}, o.choice.Victims, model.DesiredEvict)
	s.path = append(s.path, step)
	s.countEvicted()
}

// takeBack undoes the last take.
func (s *gangSearch) takeBack() {
	last := len(s.path) - 1
	s.run.proposed = s.path[last].before
	s.path = s.path[:last]
	s.countEvicted()
}

func (s *gangSearch) countEvicted() {
	s.run.evicted = protect.EvictionCounts{}
	for i := range s.path {
		for _, v := range s.path[i].option.choice.Victims {
			s.run.evicted.Add(v.Group)
		}
	}
}

// write puts what was found into the plan.
func (s *gangSearch) write() {
	for i := range s.path {
		w, c := &s.wanted[i].want, &s.path[i].option.choice
		s.run.plan.place(s.path[i].alloc, c.Victims, versionOf(*c), w.replaces, w.reason)
	}
}

// spare keeps victims that the gang as a whole can do without: an instance that
// came later may have freed more than it needed. It goes back from the last one.
func (g *gang) spare() {
	r := g.run
	if len(r.plan.list) <= g.begin.mark || r.version.KeepsRedundant() {
		return
	}
	group := &r.plan.list[g.begin.mark]
	// needed is the jobs that went whole of which one cannot stay: so none can.
	needed := map[model.JobKey]bool{}
	for i := len(group.Evictions) - 2; i >= 0; i-- { // the last one was needed by all
		if i >= len(group.Evictions) {
			continue // several went from the list
		}
		victim := r.base.Alloc(group.Evictions[i].AllocID)
		if victim.Job.AllOrNone && needed[victim.Job.Key()] {
			continue
		}
		stay := g.staysWith(group, victim)
		if !g.bringBack(group.Placements, stay) {
			if len(stay) > 1 {
				needed[victim.Job.Key()] = true
			}
			continue
		}
		stays := func(id string) bool {
			return slices.ContainsFunc(stay, func(a *model.Allocation) bool { return a.ID == id })
		}
		group.Evictions = slices.DeleteFunc(group.Evictions, func(e model.Eviction) bool { return stays(e.AllocID) })
		for _, a := range group.Placements {
			a.Preempted = slices.DeleteFunc(a.Preempted, stays)
		}
	}
}

// staysWith is who stays when a victim does: of a job of which nothing else is left
// that goes whole, all who went.
func (g *gang) staysWith(group *model.CommitGroup, victim *model.Allocation) []*model.Allocation {
	r := g.run
	alone := []*model.Allocation{victim}
	if !victim.Job.AllOrNone || slices.ContainsFunc(r.proposed.AppendJobAllocs(nil, victim.Job.Key()), (*model.Allocation).InCohort) {
		return alone
	}
	return append(alone, g.mates(group, victim)...)
}

// mates is who goes whole of a victim's job among the other victims.
func (g *gang) mates(group *model.CommitGroup, victim *model.Allocation) (list []*model.Allocation) {
	for _, e := range group.Evictions {
		if a := g.run.base.Alloc(e.AllocID); a != victim && a.Job.AllOrNone && a.Job.Key() == victim.Job.Key() {
			list = append(list, a)
		}
	}
	return list
}

// bringBack lets victims stay if there is room for all of them beside everything that
// was placed.
func (g *gang) bringBack(placed, victims []*model.Allocation) bool {
	before := g.run.keep()
	for _, v := range victims {
		if !g.fitsBack(placed, v) {
			g.run.proposed, g.run.draft = before, nil
			return false
		}
		g.run.propose([]*model.Allocation{v}, nil, model.DesiredRun)
	}
	return true
}

// fitsBack is whether a victim may stay beside everything that was placed.
func (g *gang) fitsBack(placed []*model.Allocation, victim *model.Allocation) bool {
	r := g.run
	node := r.proposed.NodeAt(victim.NodePos)
	room := r.proposed.FreeCapacityFor(victim.NodePos, r.job.Key(), r.job.Priority, r.now, new(model.Vector))
	if model.Fits(room, &victim.Group.Ask, devicesOf(node, victim)).Kind != model.ShortageNone {
		return false
	}
	return !slices.ContainsFunc(placed, func(a *model.Allocation) bool { return r.keepsApart(a, victim) })
}

// devicesOf is the positions of the device groups that an allocation uses.
func devicesOf(n *model.Node, a *model.Allocation) (choice []int16) {
	for i := range a.Devices {
		choice = append(choice, int16(n.DevicePosition(a.Devices[i].ID)))
	}
	return choice
}

// keepsApart is whether separation forbids two allocations where they are.
func (r *run) keepsApart(a, b *model.Allocation) bool {
	return a.Job.Namespace == b.Job.Namespace && (r.excludesAt(a, b) || r.excludesAt(b, a))
}

// excludesAt is whether a term of a keeps b out of where it is.
func (r *run) excludesAt(a, b *model.Allocation) bool {
	for i := range a.Group.Separate {
		t := &a.Group.Separate[i]
		if !t.Matches(b.Group.Labels) {
			continue
		}
		if local(t) {
			if a.NodePos == b.NodePos {
				return true
			}
			continue
		}
		here, ok := r.proposed.NodeAt(a.NodePos).Domain(t.TopologyKey)
		there, also := r.proposed.NodeAt(b.NodePos).Domain(t.TopologyKey)
		if ok && also && here == there {
			return true
		}
	}
	return false
}
