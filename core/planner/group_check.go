package planner

import (
	"fmt"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
)

// A commit group is checked in two halves: its removals, then its placements.

// checkRemovals checks the stops and evictions of a group and frees their capacity.
func (s *Scratch) checkRemovals(i int) rejection {
	g := &s.plan.Groups[i]
	for k := range g.Stops {
		if r := s.checkStop(g, i, k); r.reason != "" {
			return r
		}
	}
	for k := range g.Evictions {
		if r := s.checkEviction(g, i, k); r.reason != "" {
			return r
		}
	}
	if s.evictsCohort {
		s.evictsCohort = false
		return s.checkCohorts(g)
	}
	return rejection{}
}

// checkStop checks one stop. A stop without effect is omitted: the allocation is
// missing, has ended, was listed before, or is stopping already and not reported lost.
func (s *Scratch) checkStop(g *model.CommitGroup, group, k int) rejection {
	stop := &g.Stops[k]
	if stop.MovedTo != "" {
		return moveCheck{s}.from(g, stop)
	}
	a := s.snap.Alloc(stop.AllocID)
	if a == nil {
		s.omitted = append(s.omitted, omittedStop(group, k))
		return rejection{}
	}
	if a.Job.Key() != s.plan.Job {
		return malformed("stops allocation %q of job %s", a.ID, a.Job.Key())
	}
	if s.updates {
		if _, also := s.written[a.ID]; also {
			return malformed("allocation %q is both stopped and updated", a.ID)
		}
	}
	changes := a.Live() || stop.Lost && !a.Client.Terminal()
	if !changes || a.Live() && !s.endAlloc(a) {
		s.omitted = append(s.omitted, omittedStop(group, k))
	}
	return rejection{}
}

// checkEviction checks one victim. If it has ended or is stopping, its capacity is
// free already: the eviction is omitted, and the group holds if it fits without it.
func (s *Scratch) checkEviction(g *model.CommitGroup, group, k int) rejection {
	e := &g.Evictions[k]
	victim := s.snap.Alloc(e.AllocID)
	if !s.hasBeneficiary(g, e.By) {
		r := rejection{
			cause:  CauseEviction,
			reason: fmt.Sprintf("eviction of %q serves no placement or claim of its group: %q", e.AllocID, e.By),
		}
		if victim != nil {
			r.nodeID = victim.NodeID
		}
		return r
	}
	if victim == nil || !victim.Live() {
		s.omitted = append(s.omitted, omittedEviction(group, k))
		return rejection{}
	}
	if why := s.protectedReason(victim); why != "" {
		return rejection{
			cause: CauseVictim, nodeID: victim.NodeID,
			reason: fmt.Sprintf("allocation %q may not be evicted: %s", victim.ID, why),
		}
	}
	if !s.endAlloc(victim) {
		s.omitted = append(s.omitted, omittedEviction(group, k))
		return rejection{}
	}
	s.evictsCohort = s.evictsCohort || victim.Job.AllOrNone
	return s.charge(s.snap, s.now, victim)
}

// protectedReason returns why an allocation may not be a victim of this plan, or
// "".
func (s *Scratch) protectedReason(victim *model.Allocation) string {
	switch {
	case victim.Job.Key() == s.plan.Job:
		return "it is of the same job"
	case victim.Job.Priority >= s.priority:
		return fmt.Sprintf("its priority %d is not below %d", victim.Job.Priority, s.priority)
	case victim.Job.NonPreemptible:
		return "its job is not preemptible"
	case s.isLost(victim):
		return "it is lost with its node"
	case s.job != nil && s.job.NeverPreempts:
		return "the preempting job has preemptionPolicy Never"
	}
	if _, spared := victim.Job.ProtectedFrom(victim, s.priority, s.latest()); spared {
		return "its preemption toleration protects it from this priority, or until it has run longer"
	}
	return ""
}

// hasBeneficiary reports whether the group has the placement or claim that an eviction
// serves. Evictions are in the order of placements, so the search continues where it
// last stopped. The search wraps around, so an order other than that of the placements
// is slower, and not wrong.
func (s *Scratch) hasBeneficiary(g *model.CommitGroup, by string) bool {
	for range g.Placements {
		if s.beneficiary >= len(g.Placements) {
			s.beneficiary = 0
		}
		if g.Placements[s.beneficiary].ID == by {
			return true
		}
		s.beneficiary++
	}
	return slices.ContainsFunc(g.Claims, func(c *model.Claim) bool { return c.ID == by })
}

// checkPlacements checks the updates, placements and claims of a group and reserves
// their capacity.
func (s *Scratch) checkPlacements(i int) rejection {
	g := &s.plan.Groups[i]
	for _, a := range g.Updates {
		if r := s.checkUpdate(a); r.reason != "" {
			return r
		}
	}
	for _, a := range g.Placements {
		if r := s.checkPlacement(a); r.reason != "" {
			return r
		}
	}
	if changesBindings(g) {
		return (&bindingCheck{s.snap, s.plan, s.now}).check(g)
	}
	for _, c := range g.Claims {
		if r := s.checkClaim(c); r.reason != "" {
			return r
		}
	}
	return rejection{}
}

// checkUpdate checks a new version of a running allocation. It does not require an
// eligible node, and if the new version requests no more than the old one, it holds on
// an overcommitted node. Rules between allocations are not checked again, because an
// update moves nothing.
func (s *Scratch) checkUpdate(a *model.Allocation) rejection {
	old := s.snap.Alloc(a.ID)
	if old == nil || !old.Live() || s.hasEnded(old) {
		return rejection{CausePlaced, a.NodeID, fmt.Sprintf("allocation %q has ended", a.ID), false}
	}
	if old.Job.Key() != s.plan.Job || old.NodeID != a.NodeID || old.Group.Name != a.Group.Name || old.Index != a.Index {
		return malformed("the update of allocation %q is of another job, node or instance", a.ID)
	}
	g, r := s.currentGroup(a)
	if r.reason != "" {
		return r
	}
	pos, ok := s.snap.Position(a.NodeID)
	if !ok || s.snap.NodeAt(pos).Status != model.NodeReady {
		return rejection{CauseNode, a.NodeID, "the node is gone or down", false}
	}
	at := s.openNode(pos)
	s.unreserve(at, &old.Group.Ask, old.Devices)
	if !covers(old, &g.Ask, a) {
		if r := s.checkFit(at, &g.Ask, a); r.reason != "" {
			return r
		}
	}
	s.reserve(at, &g.Ask, a.Devices)
	return rejection{}
}

// covers reports whether next requests nothing that old does not have.
func covers(old *model.Allocation, ask *model.Ask, next *model.Allocation) bool {
	had := &old.Group.Ask
	for _, d := range ask.Dims {
		if ask.Vec[d] > had.Vec[d] {
			return false
		}
	}
	for _, p := range ask.Ports {
		if _, ok := slices.BinarySearch(had.Ports, p); !ok {
			return false
		}
	}
	return slices.Equal(old.Devices, next.Devices)
}

// checkPlacement checks one placement and reserves its capacity. The cheap checks that
// need no copy of the node's capacity come first.
func (s *Scratch) checkPlacement(a *model.Allocation) rejection {
	if isMoved(a) {
		return moveCheck{s}.to(a)
	}
	g, r := s.currentGroup(a)
	if r.reason != "" {
		return r
	}
	pos, r := s.checkTarget(a)
	if r.reason != "" {
		return r
	}
	// The instance exists: the group and the node were found above.
	key, _ := s.instance(a)
	switch other := s.instances[key]; {
	case other == nil || s.hasEnded(other):
	case other.Live():
		return rejection{CausePlaced, a.NodeID, fmt.Sprintf("allocation %q is the same instance", other.ID), false}
	default:
		// Its completion was reported while the plan was made.
		return rejection{CausePlaced, a.NodeID, fmt.Sprintf("allocation %q has completed the same instance", other.ID), false}
	}
	at := s.openNode(pos)
	if r := s.checkFit(at, &g.Ask, a); r.reason != "" {
		return r
	}
	s.reserve(at, &g.Ask, a.Devices)
	s.setInstance(key, a)
	return rejection{}
}

// checkTarget returns the position of the node of a new allocation. It returns a rejection
// if the node is not eligible or the allocation exists.
func (s *Scratch) checkTarget(a *model.Allocation) (pos int32, r rejection) {
	pos, ok := s.snap.Position(a.NodeID)
	if !ok {
		return 0, rejection{CauseNode, a.NodeID, "the node is gone", false}
	}
	if why := s.snap.NodeAt(pos).IneligibleReason(); why != "" {
		return 0, rejection{CauseNode, a.NodeID, "the node is " + why, false}
	}
	if s.snap.Alloc(a.ID) != nil {
		return 0, rejection{CausePlaced, a.NodeID, fmt.Sprintf("allocation %q is placed already", a.ID), false}
	}
	return pos, rejection{}
}

// currentGroup returns the group of an allocation in the current version of the job.
// Verification reads the request from the state and not from the plan, so that a plan
// cannot understate it.
func (s *Scratch) currentGroup(a *model.Allocation) (*model.Group, rejection) {
	switch {
	case s.job == nil:
		return nil, rejection{CauseJob, a.NodeID, "the job is gone", false}
	case s.job.Stopped:
		return nil, rejection{CauseJob, a.NodeID, "the job is stopped", false}
	case !a.Job.IsSameJob(s.job):
		return nil, rejection{CauseJob, a.NodeID, "the job was purged and registered again", false}
	case a.Job.Version != s.job.Version:
		return nil, rejection{
			CauseJob, a.NodeID,
			fmt.Sprintf("the job is at version %d, the allocation at %d", s.job.Version, a.Job.Version), false,
		}
	case s.plan.Priority != s.job.Priority:
		return nil, rejection{
			CauseJob, a.NodeID,
			fmt.Sprintf("the job has priority %d, the plan %d", s.job.Priority, s.plan.Priority), false,
		}
	case a.Job == s.job:
		return a.Group, rejection{}
	}
	g := s.job.Group(a.Group.Name)
	if g == nil {
		return nil, malformed("the job has no group %q", a.Group.Name)
	}
	if g.Ask.Vec != a.Group.Ask.Vec || !slices.Equal(g.Ask.Ports, a.Group.Ask.Ports) {
		return nil, malformed("allocation %q requests other resources than its group", a.ID)
	}
	return g, rejection{}
}

// checkFit calls model.Fits with the device groups that the allocation names. A device
// group that the node lacks has position -1, which Fits reports as a shortage.
func (s *Scratch) checkFit(at int32, ask *model.Ask, a *model.Allocation) rejection {
	if len(a.Devices) != len(ask.Devices) {
		return malformed("allocation %q holds %d device groups, its group requests %d", a.ID, len(a.Devices), len(ask.Devices))
	}
	node := s.nodes[at].node
	s.choice = s.choice[:0]
	for i := range ask.Devices {
		use, want := &a.Devices[i], &ask.Devices[i]
		if use.Count != want.Count {
			return malformed("allocation %q holds %d of device %q, its group requests %d", a.ID, use.Count, use.ID, want.Count)
		}
		p := node.DevicePosition(use.ID)
		if p >= 0 && !want.Matches(&node.Devices[p]) {
			p = -1 // the device group has changed
		}
		s.choice = append(s.choice, int16(p))
	}
	return s.checkShortage(at, ask)
}

// checkShortage returns the rejection for the first resource that is short, with the
// missing amount in the unit of the resource.
func (s *Scratch) checkShortage(at int32, ask *model.Ask) rejection {
	lack := s.fits(at, ask, s.choice)
	if lack.Kind == model.ShortageNone {
		return rejection{}
	}
	return rejection{
		cause: causeOfShortage(lack.Kind), nodeID: s.nodes[at].node.ID,
		reason: fmt.Sprintf("the node lacks %s (%d short)", lack.Format(s.snap.Dims(), ask), lack.Missing),
	}
}

// checkClaim checks a claim and reserves its capacity. Existing claims of the
// claimant do not count against it; other placements and claims of its plan do.
func (s *Scratch) checkClaim(c *model.Claim) rejection {
	if c.Priority > s.plan.Priority {
		return malformed("claim %q has priority %d, the plan %d", c.ID, c.Priority, s.plan.Priority)
	}
	if other := s.snap.Claim(c.ID); other != nil && other.Claimant != c.Claimant {
		return malformed("claim %q belongs to %s", c.ID, other.Claimant)
	}
	pos, ok := s.snap.Position(c.NodeID)
	if !ok {
		return rejection{CauseNode, c.NodeID, "the node is gone", false}
	}
	node := s.snap.NodeAt(pos)
	if why := node.IneligibleReason(); why != "" {
		return rejection{CauseNode, c.NodeID, "the node is " + why, false}
	}
	// Fits requires ascending ports and the list of dimensions that the request uses.
	ask := &model.Ask{Vec: c.Vec, Ports: slices.Sorted(slices.Values(c.Ports))}
	for d := range c.Vec {
		if c.Vec[d] > 0 {
			ask.Dims = append(ask.Dims, uint8(d))
		}
	}
	s.choice = s.choice[:0]
	for _, use := range c.Devices {
		ask.Devices = append(ask.Devices, model.DeviceRequest{ID: use.ID, Count: use.Count})
		s.choice = append(s.choice, int16(node.DevicePosition(use.ID)))
	}
	at := s.openNode(pos)
	if r := s.checkShortage(at, ask); r.reason != "" {
		return r
	}
	s.reserve(at, ask, c.Devices)
	return rejection{}
}

// setInstance makes an allocation the holder of its instance.
func (s *instanceTable) setInstance(key instance, a *model.Allocation) {
	s.instanceLog = append(s.instanceLog, holding{key, s.instances[key]})
	s.instances[key] = a
}

// rollbackInstances reverts the holders since instanceLog had this length.
func (s *instanceTable) rollbackInstances(length int) {
	for i := len(s.instanceLog) - 1; i >= length; i-- {
		s.instances[s.instanceLog[i].instance] = s.instanceLog[i].before
	}
	s.instanceLog = s.instanceLog[:length]
}
