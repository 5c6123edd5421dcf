package planner

import (
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
)

// PlacementVerifier checks at commit what is no vector: co-location, separation, distinct
// hosts and properties, spread with a maximal skew. An applier asks it from one
// goroutine at a time.
type PlacementVerifier interface {
	// StartPlan is called once for a plan, when all else about some of it holds. It
	// returns nil when no rule concerns what the plan places; anything else is
	// good until the next Begin.
	StartPlan(snap *state.Snapshot, plan *model.Plan) PlacementCheck
}

// PlacementCheck follows the commit groups of one plan.
type PlacementCheck interface {
	// Add says whether commit groups, by ascending position, keep the rules
	// behind those added before. When they do, reason is "" and they count from
	// now on; else none of them does.
	Add(groups []int) (nodeID, reason string)
}

// ruled asks the rules about groups behind those that hold already.
func (s *Scratch) ruled(groups []int) refusal {
	if s.unruled() {
		return refusal{}
	}
	nodeID, reason := s.check.Add(groups)
	return refusal{cause: CauseRules, nodeID: nodeID, reason: reason}
}

// unruled is whether no rule concerns what the plan places.
func (s *Scratch) unruled() bool {
	if s.rules != nil && !s.asked {
		s.check, s.asked = s.rules.StartPlan(s.snap, s.plan), true
	}
	return s.check == nil
}
