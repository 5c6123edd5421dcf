package planner

import (
	"slices"

	"github.com/cede-scheduler/cede/core/model"
)

// Two workers that fill the same nodes on the same snapshot plan more for a node than
// it has room for. To refuse the later one's group whole would waste the room that
// is left, and a plan of hundreds of instances on a few nodes with it: so of a group
// whose placements hold each by itself, those that fit are committed. Its evaluation
// is told which were not, and plans them on the state that follows.

// divide accepts what holds of groups that were refused and may be divided.
func (s *Scratch) divide() (int, refusal) {
	for i := range s.refused {
		if s.refused[i].reason == "" || !s.divisible(i) {
			continue
		}
		if r := s.parts(i); r.malformed {
			return i, r
		}
	}
	return 0, refusal{}
}

// divisible is whether a group's placements hold each by itself, whoever made the
// plan. Rules between placements are asked about groups as they were planned, so
// where there are any the group stays whole.
func (s *Scratch) divisible(i int) bool {
	g := &s.plan.Groups[i]
	return g.Divisible && len(g.Placements) > 1 && len(g.Updates)+len(g.Stops)+len(g.Claims) == 0 && !g.HasBindingChanges() &&
		s.job != nil && !s.job.AllAtOnce && s.unruled()
}

// parts accepts the placements of a group that hold, one after the other, each with
// the evictions that are for it.
func (s *Scratch) parts(i int) refusal {
	g := &s.plan.Groups[i]
	mark := len(s.parted)
	for k := range g.Placements {
		r := s.part(i, k)
		if r.malformed {
			return r
		}
		if r.reason != "" {
			s.parted = append(s.parted, omission{i, k})
		}
	}
	if len(s.parted)-mark == len(g.Placements) {
		s.parted = s.parted[:mark]
		return refusal{}
	}
	s.accepted = append(s.accepted, i)
	if len(s.parted) == mark { // room came up behind its last check
		s.refused[i] = refusal{}
	}
	return refusal{}
}

// part checks one placement; one that does not hold leaves no trace.
func (s *Scratch) part(i, k int) refusal {
	g := &s.plan.Groups[i]
	journal, taken, omitted, charged := len(s.journal), len(s.taken), len(s.omitted), len(s.charged)
	var r refusal
	for e := range g.Evictions {
		if r.reason == "" && g.Evictions[e].By == g.Placements[k].ID {
			r = s.evicts(g, i, e)
		}
	}
	if s.whole {
		// It counts on what else the group evicts of that job.
		s.whole = false
		r = s.refused[i]
	}
	if r.reason == "" {
		r = s.place(g.Placements[k])
	}
	if r.reason != "" {
		s.undo(journal)
		s.untake(taken)
		s.uncharge(charged)
		s.omitted = s.omitted[:omitted]
	}
	return r
}

// leftOut is the positions of the placements that are left out of a group of which
// a part holds; nil: there is no such part.
func (s *Scratch) leftOut(group int) []int {
	var places []int
	for _, o := range s.parted {
		if o.group == group {
			places = append(places, o.which)
		}
	}
	return places
}

// leaveOut takes placements out of a group, and the evictions that were for them.
func leaveOut(g *model.CommitGroup, places []int) {
	gone := map[string]bool{}
	var rest []*model.Allocation
	for k, a := range g.Placements {
		if slices.Contains(places, k) {
			gone[a.ID] = true
		} else {
			rest = append(rest, a)
		}
	}
	g.Placements = rest
	g.Evictions = slices.DeleteFunc(slices.Clone(g.Evictions), func(e model.Eviction) bool { return gone[e.By] })
}
