package proposal

import "github.com/cede-scheduler/cede/core/model"

// A Move relocates an instance to make room. Both allocations are of the same instance and of
// the same version of a job other than that of the plan. The planner commits both halves or
// neither.
type Move struct {
	From *model.Allocation // it is stopped
	To   *model.Allocation // it is placed on another node
}

// Moved returns the allocations that some moves stop.
func Moved(moves []Move) []*model.Allocation {
	from := make([]*model.Allocation, len(moves))
	for i := range moves {
		from[i] = moves[i].From
	}
	return from
}

// add adds both halves of a move to the commit group of the placement that it serves. The group
// is that of the node that the instance leaves, although the other half is on another node:
// a group is indivisible once it contains a stop.
func (m *Move) add(g *model.CommitGroup, by string) {
	g.Stops = append(g.Stops, model.Stop{AllocID: m.From.ID, Reason: "moved to make room for " + by, MovedTo: m.To.ID})
	g.Placements = append(g.Placements, m.To)
}

// Vacate proposes the stop of allocations that are moved. Unlike Apply it concerns no
// allocation of the evaluation's own job.
func (s *State) Vacate(moved []*model.Allocation) {
	txn := s.snap.Fork(s.snap.Index() + 1)
	for _, a := range moved {
		stopped := *a
		// A budget counts the stop as a disruption only if it is part of a move, whose
		// other half has no ID yet.
		stopped.Desired, stopped.EndTime, stopped.MovedTo = model.DesiredStop, s.now, a.ID
		txn.AllocWriter().Upsert(&stopped)
	}
	s.snap, s.draft = txn.Snapshot(), nil
}
