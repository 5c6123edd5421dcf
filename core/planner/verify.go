package planner

import (
	"fmt"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/state"
)

// A Verification is the result of checking a plan against one state.
type Verification struct {
	// Plan is the given plan, or a copy without the removals of allocations that
	// have ended and without the placements that do not hold of partially accepted
	// groups.
	Plan      *model.Plan
	Committed []int             // positions of accepted groups, also partially accepted ones, ascending
	Rejected  []model.Rejection // in the order of Plan.Groups
	Causes    []RejectionCause  // of Rejected, by position in it
	Nodes     int               // nodes checked
}

// Empty reports whether committing the plan would change nothing.
func (v *Verification) Empty() bool {
	for _, i := range v.Committed {
		g := &v.Plan.Groups[i]
		if len(g.Placements)+len(g.Updates)+len(g.Stops)+len(g.Evictions)+len(g.Claims) > 0 || g.HasBindingChanges() {
			return false
		}
	}
	return true
}

// retries bounds how often rejected groups are checked again because a later group
// freed capacity.
const retries = 3

// A Scratch is the reusable memory of Verify. It serves one call at a time. Each
// embedded value is one part of the check and can be rolled back by itself.
type Scratch struct {
	nodeCapacity
	ruleCheck
	instanceTable
	budgetCharges
	planTrim

	job      *model.Job // current version; nil if it was deleted
	priority int32      // allocations at or above it may not be victims

	// written holds the IDs that the plan places or updates.
	written map[string]struct{}
	updates bool // some group updates in place

	evictsCohort bool // the current group evicts from an all-or-none job

	accepted    []int
	rejected    []rejection // by group
	choice      []int16
	beneficiary int // position in CommitGroup.Placements at which hasBeneficiary last stopped
}

// instanceTable maps every instance that the plan places to the live allocation that is
// that instance, or to one that completed it; otherwise to nil. Invariant: after a rollback
// to 0, instances holds the result of collectInstances.
type instanceTable struct {
	instances   map[instance]*model.Allocation
	instanceLog []holding // earlier values, for rollback
	existing    []*model.Allocation
}

// An instance is a unit that may run once: an index of a group, or the node
// position for per-node jobs.
type instance struct{ group, which int32 }

// A holding is an earlier value of an instance.
type holding struct {
	instance
	before *model.Allocation
}

// An omission is one stop (from 0) or eviction (from -1 down) of a group or, in
// dropped, a placement. Two ranges of one integer avoid a third field in a list that is
// sorted and compared.
type omission struct{ group, which int }

func omittedStop(group, i int) omission     { return omission{group, i} }
func omittedEviction(group, i int) omission { return omission{group, -1 - i} }

// A rejection is the reason why a group does not hold.
type rejection struct {
	cause     RejectionCause
	nodeID    string
	reason    string // "" if the group holds
	malformed bool   // reason describes a malformed plan
}

func malformed(format string, args ...any) rejection {
	return rejection{malformed: true, reason: fmt.Sprintf(format, args...)}
}

// Verify checks a plan against a state. It changes nothing, and the same arguments
// result in the same verification. If rules is nil, no rules are checked. now, in
// Unix nanoseconds, is the time at which claims are read. It returns a *PlanError
// if the plan is malformed.
//
// Checking the groups one after the other would reject plans that hold: a scheduler
// may move an instance off a node that an earlier group of the same plan fills. So
// all groups are checked together first, removals before placements: a plan made on
// this very state passes here. Only if that fails are they checked one by one, with
// further rounds for groups that were rejected before capacity was freed. Divisible
// groups that still do not hold are checked placement by placement.
func Verify(snap *state.Snapshot, plan *model.Plan, now int64, rules PlacementVerifier, s *Scratch) (Verification, error) {
	if err := Validate(plan); err != nil {
		return Verification{}, err
	}
	defer s.release()
	if err := s.start(snap, plan, now, rules); err != nil {
		return Verification{}, err
	}
	group, r := s.checkTogether()
	if r.reason != "" && !r.malformed {
		s.rollbackAll()
		if group, r = s.checkOneByOne(); !r.malformed {
			group, r = s.checkDivisible()
		}
	}
	if r.malformed {
		return Verification{}, &PlanError{EvalID: plan.EvalID, Group: group, Fault: r.reason}
	}
	return s.verdict(), nil
}

// start prepares the scratch for a plan. The priority for evictions is the lower one of
// plan and job: after a priority was lowered, an old plan must not evict at the old
// one.
func (s *Scratch) start(snap *state.Snapshot, plan *model.Plan, now int64, rules PlacementVerifier) error {
	s.reset(snap, plan, now)
	s.ruleCheck, s.job, s.priority = ruleCheck{verifier: rules}, snap.Job(plan.Job), plan.Priority
	if s.job != nil {
		s.priority = min(s.priority, s.job.Priority)
	}
	s.omitted, s.dropped, s.accepted, s.beneficiary = s.omitted[:0], s.dropped[:0], s.accepted[:0], 0
	s.rejected = append(s.rejected[:0], make([]rejection, len(plan.Groups))...)
	if err := s.collectWritten(); err != nil {
		return err
	}
	s.collectInstances()
	return nil
}

// rollbackAll reverts checkTogether.
func (s *Scratch) rollbackAll() {
	s.rollback(0)
	s.rollbackInstances(0)
	s.rollbackCharges(0)
	s.omitted, s.accepted = s.omitted[:0], s.accepted[:0]
}

// release drops references to the call's arguments, so that an idle applier retains
// no old snapshot.
func (s *Scratch) release() {
	s.nodeCapacity.release()
	s.rollbackCharges(0)
	s.ruleCheck, s.job = ruleCheck{}, nil
	// Clearing a map costs its capacity, so a large one is dropped.
	if len(s.written)+len(s.instances) > 1<<14 {
		s.written, s.instances = nil, nil
	}
	clear(s.written)
	clear(s.instances)
	clear(s.existing)
	clear(s.instanceLog)
	clear(s.rejected)
	s.existing, s.instanceLog = s.existing[:0], s.instanceLog[:0]
}

// collectWritten records every ID that the plan writes. It returns a *PlanError if
// an ID is written twice.
func (s *Scratch) collectWritten() error {
	if s.written == nil {
		s.written, s.instances = map[string]struct{}{}, map[instance]*model.Allocation{}
	}
	s.updates = false
	total := 0
	for i := range s.plan.Groups {
		g := &s.plan.Groups[i]
		s.updates = s.updates || len(g.Updates) > 0
		for _, list := range [2][]*model.Allocation{g.Placements, g.Updates} {
			for _, a := range list {
				s.written[a.ID] = struct{}{}
				if total++; len(s.written) < total {
					fault := fmt.Sprintf("allocation %q is listed twice", a.ID)
					return &PlanError{EvalID: s.plan.EvalID, Group: i, Fault: fault}
				}
			}
		}
	}
	return nil
}

// collectInstances finds which of the instances to be placed are running or done. Jobs may
// have many more instances than a plan places, so only those are looked up.
func (s *Scratch) collectInstances() {
	if s.job == nil {
		return
	}
	few := uint64(0) // bit set of requested indexes modulo 64: it excludes most others without a map access
	for i := range s.plan.Groups {
		for _, a := range s.plan.Groups[i].Placements {
			if key, ok := s.instance(a); ok && !isMoved(a) {
				s.instances[key] = nil
				few |= 1 << (key.which & 63)
			}
		}
	}
	if len(s.instances) == 0 {
		return
	}
	s.existing = s.snap.AppendJobAllocs(s.existing[:0], s.plan.Job)
	for _, a := range s.existing {
		key, ok := s.instance(a)
		if !ok || few>>(key.which&63)&1 == 0 {
			continue
		}
		other, wanted := s.instances[key]
		if !wanted || other != nil && !other.Live() {
			continue
		}
		if a.IsDone(s.job) || a.Live() && !isReplaceable(s.snap, s.job, a) {
			s.instances[key] = a
		}
	}
}

// isReplaceable reports whether another allocation may run in place of a disconnected
// one. The disconnected one still holds its capacity on its own node; the replacement
// runs elsewhere until it returns.
func isReplaceable(snap *state.Snapshot, job *model.Job, a *model.Allocation) bool {
	g := job.Group(a.Group.Name)
	if g == nil || !g.ReplacesOnDisconnect() {
		return false
	}
	node := snap.Node(a.NodeID)
	if node == nil {
		return false
	}
	_, kept := g.LostAt(node)
	return kept
}

// instance returns the instance of an allocation in the current version of the job. For
// a per-node job, the node is the instance: its allocations have no stable index. It
// returns false if the current version has no such group, or the node is not
// registered.
func (s *Scratch) instance(a *model.Allocation) (instance, bool) {
	g := a.Group
	if a.Job != s.job {
		if g = s.job.Group(g.Name); g == nil {
			return instance{}, false
		}
	}
	if !s.job.Type.PerNode() {
		return instance{int32(g.Position), int32(a.Index)}, true
	}
	pos, ok := s.snap.Position(a.NodeID)
	return instance{int32(g.Position), pos}, ok
}

// checkTogether checks all groups as one. It stops at the first that fails.
func (s *Scratch) checkTogether() (int, rejection) {
	for i := range s.plan.Groups {
		s.accepted = append(s.accepted, i)
		if r := s.checkRemovals(i); r.reason != "" {
			return i, r
		}
	}
	for i := range s.plan.Groups {
		if r := s.checkPlacements(i); r.reason != "" {
			return i, r
		}
	}
	return 0, s.checkRules(s.snap, s.plan, s.accepted)
}

// checkOneByOne checks each group on top of those accepted before it, beginning with
// those that only remove, which always hold. Each round accepts at least one more group
// with stops, or is the last. The bound limits the cost of plans in which groups depend
// on each other in a long chain.
func (s *Scratch) checkOneByOne() (int, rejection) {
	for round := -1; round <= retries; round++ {
		again := round < 0
		for i := range s.plan.Groups {
			if onlyRemoves(&s.plan.Groups[i]) != (round < 0) || round > 0 && s.rejected[i].reason == "" {
				continue
			}
			s.rejected[i] = s.checkGroup(i)
			if s.rejected[i].malformed {
				return i, s.rejected[i]
			}
			// An eviction frees capacity for its own group only; a stop may do so
			// for others.
			again = again || s.rejected[i].reason == "" && len(s.plan.Groups[i].Stops) > 0
		}
		if !again || len(s.accepted) == len(s.plan.Groups) {
			break
		}
	}
	return 0, rejection{}
}

func onlyRemoves(g *model.CommitGroup) bool {
	return len(g.Placements)+len(g.Updates)+len(g.Evictions)+len(g.Claims) == 0 && !g.HasBindingChanges()
}

// checkGroup checks a group. If it does not hold, its changes are rolled back.
func (s *Scratch) checkGroup(i int) rejection {
	journal, taken, omitted, charged := len(s.journal), len(s.instanceLog), len(s.omitted), len(s.charged)
	s.accepted = append(s.accepted, i)
	r := s.checkRemovals(i)
	if r.reason == "" {
		r = s.checkPlacements(i)
	}
	if r.reason == "" {
		r = s.checkRules(s.snap, s.plan, s.accepted[len(s.accepted)-1:])
	}
	if r.reason != "" {
		s.rollback(journal)
		s.rollbackInstances(taken)
		s.rollbackCharges(charged)
		s.omitted, s.accepted = s.omitted[:omitted], s.accepted[:len(s.accepted)-1]
	}
	return r
}

// verdict returns the result, which does not refer to the scratch. A partially accepted
// group is in Committed and in Rejected, which lists the placements that were dropped.
func (s *Scratch) verdict() Verification {
	slices.Sort(s.accepted)
	v := Verification{Plan: s.trimmed(s.plan, s.rejected), Committed: slices.Clone(s.accepted), Nodes: len(s.nodes)}
	for i := range s.rejected {
		if r := &s.rejected[i]; r.reason != "" {
			v.Rejected = append(v.Rejected, model.Rejection{Group: i, Places: s.droppedPlacements(i), NodeID: r.nodeID, Reason: r.reason})
			v.Causes = append(v.Causes, r.cause)
		}
	}
	return v
}
