package planner

import (
	"fmt"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
)

// What one commit group does, in two halves: what ends, then what begins.

// ends checks and frees what a group stops and evicts.
func (s *Scratch) ends(i int) refusal {
	g := &s.plan.Groups[i]
	for k := range g.Stops {
		if r := s.stops(i, k, &g.Stops[k]); r.reason != "" {
			return r
		}
	}
	for k := range g.Evictions {
		if r := s.evicts(g, i, k); r.reason != "" {
			return r
		}
	}
	if s.whole {
		s.whole = false
		return s.goWhole(g)
	}
	return refusal{}
}

func (s *Scratch) stops(group, k int, stop *model.Stop) refusal {
	a := s.snap.Alloc(stop.AllocID)
	if a == nil {
		s.omitted = append(s.omitted, omittedStop(group, k))
		return refusal{}
	}
	if a.Job.Key() != s.plan.Job {
		return malformed("it stops allocation %q of job %s", a.ID, a.Job.Key())
	}
	if s.updates {
		if _, also := s.written[a.ID]; also {
			return malformed("allocation %q is both stopped and updated", a.ID)
		}
	}
	changes := a.Desired == model.DesiredRun || stop.Lost && !a.Client.Terminal()
	if !changes || a.Live() && !s.end(a) {
		s.omitted = append(s.omitted, omittedStop(group, k))
	}
	return refusal{}
}

// evicts checks one victim. One that has ended, or that nobody wants any more,
// freed its room already: it is left out, and the group holds if it fits
// without it.
func (s *Scratch) evicts(g *model.CommitGroup, group, k int) refusal {
	e := &g.Evictions[k]
	victim := s.snap.Alloc(e.AllocID)
	if !s.benefits(g, e.By) {
		r := refusal{
			cause:  CauseEviction,
			reason: fmt.Sprintf("no eviction without a placement or a claim: %q makes room for %q", e.AllocID, e.By),
		}
		if victim != nil {
			r.nodeID = victim.NodeID
		}
		return r
	}
	if victim == nil || !victim.Live() {
		s.omitted = append(s.omitted, omittedEviction(group, k))
		return refusal{}
	}
	if why := s.spares(victim); why != "" {
		return refusal{
			cause: CauseVictim, nodeID: victim.NodeID,
			reason: fmt.Sprintf("allocation %q may not be evicted: %s", victim.ID, why),
		}
	}
	if !s.end(victim) {
		s.omitted = append(s.omitted, omittedEviction(group, k))
		return refusal{}
	}
	s.whole = s.whole || victim.Job.AllOrNone
	return s.charge(victim)
}

// spares is why an allocation may be nobody's victim here; "" when it may.
func (s *Scratch) spares(victim *model.Allocation) string {
	switch {
	case victim.Job.Key() == s.plan.Job:
		return "it is of the same job"
	case victim.Job.Priority >= s.priority:
		return fmt.Sprintf("its priority %d is not below %d", victim.Job.Priority, s.priority)
	case victim.Job.NonPreemptible:
		return "its job is not preemptible"
	case s.job != nil && s.job.NeverPreempts:
		return "the job that asks never preempts"
	}
	// Whoever planned may have a clock that is ahead.
	if _, spared := victim.Job.ProtectedFrom(victim, s.priority, max(s.now, s.plan.Now)); spared {
		return "its job spares it from preemptors of this priority, or it has not run for long enough"
	}
	return ""
}

// benefits is whether the group places or claims what an eviction is for.
// Evictions come in the order of placements, so the search goes on where it
// last ended.
func (s *Scratch) benefits(g *model.CommitGroup, by string) bool {
	for range g.Placements {
		if s.by >= len(g.Placements) {
			s.by = 0
		}
		if g.Placements[s.by].ID == by {
			return true
		}
		s.by++
	}
	return slices.ContainsFunc(g.Claims, func(c *model.Claim) bool { return c.ID == by })
}

// begins checks and takes what a group updates, places and claims.
func (s *Scratch) begins(i int) refusal {
	g := &s.plan.Groups[i]
	for _, a := range g.Updates {
		if r := s.update(a); r.reason != "" {
			return r
		}
	}
	for _, a := range g.Placements {
		if r := s.place(a); r.reason != "" {
			return r
		}
	}
	if aboutBindings(g) {
		return s.bindings(g)
	}
	for _, c := range g.Claims {
		if r := s.claim(c); r.reason != "" {
			return r
		}
	}
	return refusal{}
}

// update checks a new version of a running allocation. It needs no schedulable
// node, and one that takes no more than before holds on a node that is
// overfull.
func (s *Scratch) update(a *model.Allocation) refusal {
	old := s.snap.Alloc(a.ID)
	if old == nil || !old.Live() || s.ended(old) {
		return refusal{CausePlaced, a.NodeID, fmt.Sprintf("allocation %q has ended", a.ID), false}
	}
	if old.Job.Key() != s.plan.Job || old.NodeID != a.NodeID || old.Group.Name != a.Group.Name || old.Index != a.Index {
		return malformed("the update of allocation %q is of another job, node or instance", a.ID)
	}
	g, r := s.group(a)
	if r.reason != "" {
		return r
	}
	pos, ok := s.snap.Position(a.NodeID)
	if !ok || s.snap.NodeAt(pos).Status != model.NodeReady {
		return refusal{CauseNode, a.NodeID, "the node is gone or down", false}
	}
	at := s.at(pos)
	s.give(at, &old.Group.Ask, old.Devices)
	if !covers(old, &g.Ask, a) {
		if r := s.fit(at, &g.Ask, a); r.reason != "" {
			return r
		}
	}
	s.take(at, &g.Ask, a.Devices)
	return refusal{}
}

// covers is whether next asks for nothing that old does not have.
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

func (s *Scratch) place(a *model.Allocation) refusal {
	g, r := s.group(a)
	if r.reason != "" {
		return r
	}
	pos, ok := s.snap.Position(a.NodeID)
	if !ok {
		return refusal{CauseNode, a.NodeID, "the node is gone", false}
	}
	if why := s.snap.NodeAt(pos).IneligibleReason(); why != "" {
		return refusal{CauseNode, a.NodeID, "the node is " + why, false}
	}
	if s.snap.Alloc(a.ID) != nil {
		return refusal{CausePlaced, a.NodeID, fmt.Sprintf("allocation %q is placed already", a.ID), false}
	}
	key, _ := s.instance(a)
	if other := s.held[key]; other != nil && !s.ended(other) {
		return refusal{CausePlaced, a.NodeID, fmt.Sprintf("allocation %q is the same instance", other.ID), false}
	}
	at := s.at(pos)
	if r := s.fit(at, &g.Ask, a); r.reason != "" {
		return r
	}
	s.take(at, &g.Ask, a.Devices)
	s.hold(key, a)
	return refusal{}
}

// group is the group of an allocation in the job as it is now.
func (s *Scratch) group(a *model.Allocation) (*model.Group, refusal) {
	switch {
	case s.job == nil:
		return nil, refusal{CauseJob, a.NodeID, "the job is gone", false}
	case s.job.Stopped:
		return nil, refusal{CauseJob, a.NodeID, "the job is stopped", false}
	case a.Job.Version != s.job.Version:
		return nil, refusal{
			CauseJob, a.NodeID,
			fmt.Sprintf("the job is at version %d, the allocation at %d", s.job.Version, a.Job.Version), false,
		}
	case s.plan.Priority != s.job.Priority:
		return nil, refusal{
			CauseJob, a.NodeID,
			fmt.Sprintf("the job has priority %d, the plan %d", s.job.Priority, s.plan.Priority), false,
		}
	case a.Job == s.job:
		return a.Group, refusal{}
	}
	g := s.job.Group(a.Group.Name)
	if g == nil {
		return nil, malformed("the job has no group %q", a.Group.Name)
	}
	if g.Ask.Vec != a.Group.Ask.Vec || !slices.Equal(g.Ask.Ports, a.Group.Ask.Ports) {
		return nil, malformed("allocation %q asks for something else than its group", a.ID)
	}
	return g, refusal{}
}

// fit asks the one Fits, with the device groups that the allocation names.
func (s *Scratch) fit(at int32, ask *model.Ask, a *model.Allocation) refusal {
	if len(a.Devices) != len(ask.Devices) {
		return malformed("allocation %q holds %d device groups, its group asks for %d", a.ID, len(a.Devices), len(ask.Devices))
	}
	node := s.open[at].node
	s.choice = s.choice[:0]
	for i := range ask.Devices {
		use, want := &a.Devices[i], &ask.Devices[i]
		if use.Count != want.Count {
			return malformed("allocation %q holds %d of device %q, its group asks for %d", a.ID, use.Count, use.ID, want.Count)
		}
		p := node.DevicePosition(use.ID)
		if p >= 0 && !want.Matches(&node.Devices[p]) {
			p = -1 // the device group is another than it was
		}
		s.choice = append(s.choice, int16(p))
	}
	return s.lack(at, ask)
}

func (s *Scratch) lack(at int32, ask *model.Ask) refusal {
	lack := s.fits(at, ask, s.choice)
	if lack.Kind == model.ShortageNone {
		return refusal{}
	}
	return refusal{
		cause: causeOfLack(lack.Kind), nodeID: s.open[at].node.ID,
		reason: fmt.Sprintf("the node lacks %s (%d short)", lack.Format(s.snap.Dims(), ask), lack.Missing),
	}
}

// claim checks room that is reserved. Claims that this claimant already has do
// not count against it; what its plan places and claims does.
func (s *Scratch) claim(c *model.Claim) refusal {
	if c.Priority > s.plan.Priority {
		return malformed("claim %q has priority %d, the plan %d", c.ID, c.Priority, s.plan.Priority)
	}
	if other := s.snap.Claim(c.ID); other != nil && other.Claimant != c.Claimant {
		return malformed("claim %q belongs to %s", c.ID, other.Claimant)
	}
	pos, ok := s.snap.Position(c.NodeID)
	if !ok {
		return refusal{CauseNode, c.NodeID, "the node is gone", false}
	}
	node := s.snap.NodeAt(pos)
	if why := node.IneligibleReason(); why != "" {
		return refusal{CauseNode, c.NodeID, "the node is " + why, false}
	}
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
	at := s.at(pos)
	if r := s.lack(at, ask); r.reason != "" {
		return r
	}
	s.take(at, ask, c.Devices)
	return refusal{}
}

// hold makes an allocation the one that is its instance.
func (s *Scratch) hold(key instance, a *model.Allocation) {
	s.taken = append(s.taken, holding{key, s.held[key]})
	s.held[key] = a
}

// untake forgets the placements since taken had this length.
func (s *Scratch) untake(length int) {
	for i := len(s.taken) - 1; i >= length; i-- {
		s.held[s.taken[i].instance] = s.taken[i].before
	}
	s.taken = s.taken[:length]
}
