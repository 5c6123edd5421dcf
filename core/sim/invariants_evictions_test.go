package sim_test

import (
	"cmp"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
)

// checkEvictions replays a plan placement by placement. Each victim must belong to a
// placement of the plan that it affects, have a lower priority, and be necessary.
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
	for _, p := range inPlacementOrder(plan) {
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
				s.t.Fatalf("%s (%d) must not be evicted for %s (%d)", v.ID, v.Job.Priority, a.ID, a.Job.Priority)
			}
			if !s.affects(a, v) && !slices.ContainsFunc(victims, func(w *model.Allocation) bool {
				return v.Job.AllOrNone && w.Job.Key() == v.Job.Key() && s.affects(a, w)
			}) {
				s.t.Fatalf("%s on %s is evicted for %s on %s", v.ID, v.NodeID, a.ID, a.NodeID)
			}
			if a.Job.NeverPreempts || evalCreatedAt(after.EvalsOfJob(v.Job.Key()), after.Index()) == nil {
				s.t.Fatalf("%s is evicted by a job that never preempts, or has no follow-up evaluation", v.ID)
			}
			if got := after.Alloc(v.ID); got.Desired != model.DesiredEvict || got.PreemptedBy != a.ID {
				s.t.Fatalf("%s has desired status %s, preempted by %q", v.ID, got.Desired, got.PreemptedBy)
			}
			gone[v.ID] = true
		}
		if len(victims) != len(after.Alloc(a.ID).Preempted) {
			s.t.Fatalf("%s has victims %v, want %d", a.ID, after.Alloc(a.ID).Preempted, len(victims))
		}
		more = append(more, a)
		on := slices.DeleteFunc(slices.Clone(more), func(a *model.Allocation) bool { return a.NodeID != node.ID })
		for _, v := range victims {
			if stops || !s.minimal || s.guarded && a.Job.Type.PerNode() {
				break // capacity may be freed by stops, in an order that the plan does not contain
			}
			mates := []*model.Allocation{v}
			if v.Job.AllOrNone && !slices.ContainsFunc(s.before.AppendJobAllocs(nil, v.Job.Key()), func(w *model.Allocation) bool {
				return s.remains(w) && w.Job.AllOrNone && !gone[w.ID]
			}) {
				mates = slices.DeleteFunc(slices.Clone(victims), func(w *model.Allocation) bool {
					return !w.Job.AllOrNone || w.Job.Key() != v.Job.Key()
				})
			}
			apartFrom := false
			for _, w := range mates {
				gone[w.ID] = false
				apartFrom = apartFrom || mutuallyExclusive(a.Group, w.Group, node, s.before.Node(w.NodeID))
			}
			if overfull(node, live(s.before, node.ID), gone, on) == "" && !apartFrom {
				s.t.Fatalf("%s is evicted for %s unnecessarily\n%s", v.ID, a.ID, planText(plan))
			}
			for _, w := range mates {
				gone[w.ID] = true
			}
		}
	}
	for i := range plan.Groups {
		if g := &plan.Groups[i]; served[g] != len(g.Evictions) {
			s.t.Fatalf("eviction without a placement\n%s", planText(plan))
		}
	}
}

// placed is a placement with its commit group.
type placed struct {
	alloc *model.Allocation
	group *model.CommitGroup
}

// inPlacementOrder returns the placements of a plan in the order in which the
// scheduler makes them: by group and index. A gang has its own order, which the plan
// retains.
func inPlacementOrder(plan *model.Plan) (list []placed) {
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

// remains reports whether an allocation is live before the plan and not lost with its
// node: a lost one has ended, so it is never a victim.
func (s *server) remains(a *model.Allocation) bool {
	return a.Live() && !a.LostWith(s.before.Node(a.NodeID), s.now())
}

// affects reports whether evicting victim frees capacity on the node of a placement,
// or removes a conflict with it from another node.
func (s *server) affects(a, victim *model.Allocation) bool {
	return victim.NodeID == a.NodeID || mutuallyExclusive(a.Group, victim.Group, s.before.Node(a.NodeID), s.before.Node(victim.NodeID))
}

// checkBudgets checks that a plan does not exceed strict budgets and leaves no cohort
// below its minimum.
func (s *server) checkBudgets(after *state.Snapshot, plan *model.Plan) {
	disrupted := map[*model.Budget]int{}
	for i := range plan.Groups {
		for _, e := range plan.Groups[i].Evictions {
			v := s.before.Alloc(e.AllocID)
			for _, b := range s.before.Budgets() {
				if v.Available() && b.Matches(v.Group) {
					disrupted[b]++
				}
			}
			if !v.Job.AllOrNone {
				continue
			}
			stay, ofGroup := 0, 0
			for _, mate := range s.before.AppendJobAllocs(nil, v.Job.Key()) {
				if s.remains(mate) && mate.Job.AllOrNone && after.Alloc(mate.ID).Live() {
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
				s.t.Fatalf("%s is evicted while %d of its cohort and %d of its group remain", v.ID, stay, ofGroup)
			case stay > 0:
				s.scaledDown++
			}
		}
	}
	for at, b := range s.before.Budgets() {
		if b.Strict && disrupted[b] > max(0, s.before.DisruptionsAllowed(int32(at), plan.Now)) {
			s.t.Fatalf("budget %s allows %d disruptions and has %d\n%s", b.Name, s.before.DisruptionsAllowed(int32(at), plan.Now), disrupted[b], planText(plan))
		}
	}
}

// evalCreatedAt returns the evaluation with a create index, or nil.
func evalCreatedAt(evals []*model.Evaluation, index uint64) *model.Evaluation {
	for _, e := range evals {
		if e.CreateIndex == index {
			return e
		}
	}
	return nil
}

// mutuallyExclusive reports whether two groups exclude one another on these nodes.
func mutuallyExclusive(a, b *model.Group, on, other *model.Node) bool {
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
