package planner

import (
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
)

// A PlacementVerifier checks at commit the rules that are not about amounts:
// co-location, separation, distinct hosts and properties, and spread with a maximum
// skew. An applier calls it from one goroutine at a time.
type PlacementVerifier interface {
	// StartPlan is called once for a plan, after all other checks of some group
	// succeeded. It returns nil if no rule concerns the placements of the plan. The
	// result is valid until the next StartPlan.
	StartPlan(snap *state.Snapshot, plan *model.Plan) PlacementCheck
}

// A PlacementCheck checks the commit groups of one plan.
type PlacementCheck interface {
	// Add checks commit groups, by ascending position, together with those added
	// before. If the rules hold, it returns an empty reason and the groups count
	// from then on; otherwise none of them does.
	Add(groups []int) (nodeID, reason string)
}

// ruleCheck calls the placement verifier for one plan.
type ruleCheck struct {
	verifier PlacementVerifier // nil: no rules are checked
	check    PlacementCheck    // nil: not started, or no rule applies
	started  bool
}

// checkRules checks the rules for groups, after those that were accepted before.
func (s *ruleCheck) checkRules(snap *state.Snapshot, plan *model.Plan, groups []int) rejection {
	if s.hasNoRules(snap, plan) {
		return rejection{}
	}
	nodeID, reason := s.check.Add(groups)
	return rejection{cause: CauseRules, nodeID: nodeID, reason: reason}
}

// hasNoRules reports whether no rule concerns the placements of the plan.
func (s *ruleCheck) hasNoRules(snap *state.Snapshot, plan *model.Plan) bool {
	if s.verifier != nil && !s.started {
		s.check, s.started = s.verifier.StartPlan(snap, plan), true
	}
	return s.check == nil
}
