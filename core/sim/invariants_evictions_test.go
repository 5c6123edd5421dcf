package sim_test

import (
	"cmp"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
)

// checkEvictions goes through a plan step by step: nobody goes without a
// placement of the same plan on the same node, at or above its priority, or in
// vain.
func (s *server) checkEvictions(after *state.Snapshot, plan *model.Plan) {
	gone := map[string]bool{}
	var more []*model.Allocation
	stops := false
	for i := range plan.Groups {
		g := &plan.Groups[i]
		stops = stops || len(g.Stops)+len(g.Updates) > 0
	}
	s.checkBudgets(after, plan)
	served := map[*model.CommitGroup]int{}
	for _, p := range inOrder(plan) {
		a, g := p.alloc, p.group
		node := after.Node(a.NodeID)
		var victims []*model.Allocation
		for _, e := range g.Evictions {
			if e.By == a.ID {
				victims = append(victims, s.before.Alloc(e.AllocID))
			}
		}
		served[g] += len(victims)
		for _, v := range victims {
			s.evicted++
			_, spared := v.Job.ProtectedFrom(v, a.Job.Priority, plan.Now)
			if !v.Live() || gone[v.ID] || v.Job.Priority >= a.Job.Priority || v.Job.Key() == a.Job.Key() || v.Job.NonPreemptible || spared {
				s.t.Fatalf("%s (%d) may not be evicted for %s (%d)", v.ID, v.Job.Priority, a.ID, a.Job.Priority)
			}
			if !s.concerns(a, v) && !slices.ContainsFunc(victims, func(w *model.Allocation) bool {
				return v.Job.AllOrNone && w.Job.Key() == v.Job.Key() && s.concerns(a, w)
			}) {
				s.t.Fatalf("%s is on %s, and evicted for %s on %s", v.ID, v.NodeID, a.ID, a.NodeID)
			}
			if a.Job.NeverPreempts || e2(after.EvalsOfJob(v.Job.Key()), after.Index()) == nil {
				s.t.Fatalf("%s is evicted by one that never preempts, or nothing follows", v.ID)
			}
			if got := after.Alloc(v.ID); got.Desired != model.DesiredEvict || got.PreemptedBy != a.ID {
				s.t.Fatalf("%s is %s by %q", v.ID, got.Desired, got.PreemptedBy)
			}
			gone[v.ID] = true
		}
		if len(victims) != len(after.Alloc(a.ID).Preempted) {
			s.t.Fatalf("%s lists %v", a.ID, after.Alloc(a.ID).Preempted)
		}
		more = append(more, a)
		on := slices.DeleteFunc(slices.Clone(more), func(a *model.Allocation) bool { return a.NodeID != node.ID })
		for _, v := range victims {
			if stops || !s.minimal || s.guarded && a.Job.Type.PerNode() {
				break // room may come from elsewhere, in an order that the plan does not tell
			}
			mates := []*model.Allocation{v}
			if v.Job.AllOrNone && !slices.ContainsFunc(s.before.AppendJobAllocs(nil, v.Job.Key()), func(w *model.Allocation) bool {
				return w.Live() && w.Job.AllOrNone && !gone[w.ID]
			}) {
				mates = slices.DeleteFunc(slices.Clone(victims), func(w *model.Allocation) bool {
					return !w.Job.AllOrNone || w.Job.Key() != v.Job.Key()
				})
			}
			apartFrom := false
			for _, w := range mates {
				gone[w.ID] = false
				apartFrom = apartFrom || apart(a.Group, w.Group, node, s.before.Node(w.NodeID))
			}
			if overfull(node, live(s.before, node.ID), gone, on) == "" && !apartFrom {
				s.t.Fatalf("%s is evicted for %s in vain\n%s", v.ID, a.ID, inWords(plan))
			}
			for _, w := range mates {
				gone[w.ID] = true
			}
		}
	}
	for i := range plan.Groups {
		if g := &plan.Groups[i]; served[g] != len(g.Evictions) {
			s.t.Fatalf("somebody is evicted for no placement\n%s", inWords(plan))
		}
	}
}

// placed is a placement and the commit group that it is in.
type placed struct {
	alloc *model.Allocation
	group *model.CommitGroup
}

// inOrder is the placements of a plan as a scheduler makes them: by group and index,
// and those of a gang, which has an order of its own, as it lists them.
func inOrder(plan *model.Plan) (list []placed) {
	for i := range plan.Groups {
		for _, a := range plan.Groups[i].Placements {
			list = append(list, placed{a, &plan.Groups[i]})
		}
	}
	slices.SortStableFunc(list, func(p, q placed) int {
		if p.alloc.Job.Type.PerNode() || p.alloc.Job.AllAtOnce {
			return 0
		}
		return cmp.Or(cmp.Compare(p.alloc.Group.Position, q.alloc.Group.Position), cmp.Compare(p.alloc.Index, q.alloc.Index))
	})
	return list
}

// concerns is whether a victim makes room on the node of a placement, or keeps it
// out from another one.
func (s *server) concerns(a, victim *model.Allocation) bool {
	return victim.NodeID == a.NodeID || apart(a.Group, victim.Group, s.before.Node(a.NodeID), s.before.Node(victim.NodeID))
}

// checkBudgets looks at what a plan takes from budgets, and whom it leaves behind.
func (s *server) checkBudgets(after *state.Snapshot, plan *model.Plan) {
	lost := map[*model.Budget]int{}
	for i := range plan.Groups {
		for _, e := range plan.Groups[i].Evictions {
			v := s.before.Alloc(e.AllocID)
			for _, b := range s.before.Budgets() {
				if v.Available() && b.Matches(v.Group) {
					lost[b]++
				}
			}
			if !v.Job.AllOrNone {
				continue
			}
			stay, ofGroup := 0, 0
			for _, mate := range s.before.AppendJobAllocs(nil, v.Job.Key()) {
				if mate.Live() && mate.Job.AllOrNone && after.Alloc(mate.ID).Live() {
					stay++
					if mate.Group.Name == v.Group.Name {
						ofGroup++
					}
				}
			}
			least := 0
			if g := s.before.Job(v.Job.Key()).Group(v.Group.Name); g != nil {
				least = g.MinCount
			}
			switch {
			case stay > 0 && (least == 0 || ofGroup < least):
				s.t.Fatalf("%s is evicted without %d others, and %d of its group", v.ID, stay, ofGroup)
			case stay > 0:
				s.scaledDown++
			}
		}
	}
	for at, b := range s.before.Budgets() {
		if b.Strict && lost[b] > max(0, s.before.DisruptionsAllowed(int32(at), plan.Now)) {
			s.t.Fatalf("budget %s has %d left and loses %d\n%s", b.Name, s.before.DisruptionsAllowed(int32(at), plan.Now), lost[b], inWords(plan))
		}
	}
}

// e2 finds the evaluation of an index.
func e2(evals []*model.Evaluation, index uint64) *model.Evaluation {
	for _, e := range evals {
		if e.CreateIndex == index {
			return e
		}
	}
	return nil
}

// apart is whether two groups exclude one another on these nodes.
func apart(a, b *model.Group, on, other *model.Node) bool {
	if a.Job.Namespace != b.Job.Namespace {
		return false
	}
	excludes := func(a, b *model.Group) bool {
		return slices.ContainsFunc(a.Separate, func(t model.LabelTerm) bool {
			x, ok := on.Domain(t.TopologyKey)
			y, too := other.Domain(t.TopologyKey)
			return t.Matches(b.Labels) && ok && too && x == y
		})
	}
	return excludes(a, b) || excludes(b, a)
}
