package preempt

import (
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/preempt/columns"
	"github.com/cede-scheduler/cede/core/preempt/internal/scratch"
	"github.com/cede-scheduler/cede/core/preempt/protect"
	"github.com/cede-scheduler/cede/core/preempt/prune"
	"github.com/cede-scheduler/cede/core/preempt/relocate"
	"github.com/cede-scheduler/cede/core/state"
	sdk "github.com/cede-scheduler/cede/sdk/policy"
)

// search is the state of a search that its workers share. All of it is read-only while
// they run, except for the entries of results and scope.Blocking: each belongs to the
// worker that evaluates its node.
type search struct {
	req    Request
	traits traits
	scope  protect.Scope
	inputs columns.Inputs
	results
	reclaimable prune.Reclaimable
	relocations relocate.Finder
	// ownBelow is set if the preemptor's own job may have allocations of at most the
	// ceiling: of an earlier version. They are never candidates. If it is not set, fast
	// paths skip the comparison of jobs.
	ownBelow bool
	// boundOf are the bounds of the last options, whose totals are given; see Compare.
	boundOf        []*Bound
	boundSolutions []solution // of boundOf; the memory is reused
}

// results hold the results of a search by slot: position in Request.Nodes.
type results struct {
	// options holds one entry for each way of serving the devices on the node of a slot:
	// options[first[slot]:first[slot+1]].
	options  []option
	first    []int32
	outcomes []Outcome
	reach    []int32 // highest priority of which the policy was shown a candidate
}

// start prepares a search on a snapshot.
func (s *search) start(snap *state.Snapshot, req Request) {
	s.req, s.traits = req, newTraits(&req, snap)
	s.startScope(snap)
	in := &s.inputs
	in.Scope, in.Dimensions = &s.scope, snap.Dims()
	in.DimNames = in.Dimensions.AppendNames(in.DimNames[:0])
	in.Evictions = req.Evictions
	in.ResetTotals()
	req.describe(&in.Preemptor, in.Dimensions.Len())
	s.ownBelow = true
	if s.traits.relocates {
		s.startRelocations(snap)
	}
	s.layOut(&s.req, snap)
}

// startRelocations prepares answers about where candidates could run. A candidate may evict
// what the policy lets its job evict.
func (s *search) startRelocations(snap *state.Snapshot) {
	gap := int64(1)
	if !s.req.Policy.Hooks().Has(policy.HookDelta) {
		gap = int64(BaseGap(s.req.Policy, s.req.Delta))
	}
	s.relocations.Start(relocate.Setup{Snap: snap, Now: s.req.Now, Gap: gap, Places: s.req.Elsewhere, ByRank: s.req.ByRank})
}

// startView prepares a worker's view of where candidates could run.
func (s *search) startView(v *relocate.View) {
	if s.traits.relocates {
		v.Start(&s.relocations)
	} else {
		v.Start(nil)
	}
}

// startScope fills the scope. Its buffers are reused.
func (s *search) startScope(snap *state.Snapshot) {
	req, c := &s.req, &s.scope
	c.Snap, c.Group, c.Now, c.Excluded, c.Order = snap, req.Group, req.Now, req.Excluded, req.TieOrder
	if c.Committed = nil; req.Evictions != nil {
		c.Committed = req.Evictions.Committed
	}
	c.Ceiling = Ceiling(req.Group.Job.Priority, req.Policy, req.Delta)
	if c.Affinity = nil; req.Rules != nil {
		c.Affinity = req.Rules
	}
	c.Dims.Reset(&req.Group.Ask, snap.Dims().Len())
	c.Strict = snap.StrictBudgetCount() > 0
	reads := func(v *policy.Version) bool { return v.Info().Columns.Has(sdk.BudgetColumns) }
	c.Budgets.Start(snap, req.Now, len(snap.Budgets()) > 0 && (c.Strict || reads(req.Policy) || reads(req.Default)))
	c.Blocking = c.Blocking[:0]
	if c.Strict {
		c.Blocking = scratch.Zeroed(c.Blocking, len(req.Nodes))
	}
}

// layOut creates an option for every node and way of serving its devices.
func (r *results) layOut(req *Request, snap *state.Snapshot) {
	n := len(req.Nodes)
	r.options, r.first = r.options[:0], append(r.first[:0], 0)
	r.outcomes, r.reach = scratch.Zeroed(r.outcomes, n), scratch.Sized(r.reach, n)
	for _, pos := range req.Nodes {
		ways := 1
		if len(req.Group.Ask.Devices) > 0 {
			ways = len(snap.NodeAt(pos).DeviceChoices(&req.Group.Ask))
		}
		for w := range ways {
			r.addOption(pos, int16(w))
		}
		r.first = append(r.first, int32(len(r.options)))
	}
}

// addOption adds an option in the memory of an earlier one. It writes only the fields
// that are read of infeasible options.
func (r *results) addOption(pos int32, device int16) {
	n := len(r.options)
	r.options = slices.Grow(r.options, 1)[:n+1]
	o := &r.options[n]
	o.pos, o.device, o.feasible, o.solution = pos, device, false, nil
}

// missedOutcome returns the outcome of a node if its candidates do not suffice.
func (s *search) missedOutcome(slot int32, otherwise Outcome) Outcome {
	if s.scope.Strict && s.scope.Blocking[slot] != 0 {
		return Protected
	}
	return otherwise
}

// mustLeave returns the SDK's reasons for which a row must leave the node at pos,
// regardless of the amounts that it frees.
func (s *search) mustLeave(pos int32, row *state.Row) (why uint8) {
	if s.traits.remote && row.Alloc.NodePos != pos {
		return sdk.MustLeaveSeparation
	}
	if s.traits.separation && s.req.Rules.Separated(pos, row) {
		why |= sdk.MustLeaveSeparation
	}
	for _, port := range s.req.Group.Ask.Ports {
		if slices.Contains(row.Group.Ask.Ports, port) {
			why |= sdk.MustLeavePort
		}
	}
	return why
}

// isOwn reports whether a job is the preemptor's, in any version.
func (s *search) isOwn(job *model.Job) bool {
	own := s.req.Group.Job
	return job == own || job.ID == own.ID && job.Namespace == own.Namespace
}

// claimedCapacity returns the free capacity of a node with claims, less the capacity that
// they reserve from the preemptor.
func (s *search) claimedCapacity(pos int32) *model.FreeCapacity {
	g := s.req.Group
	capacity := s.scope.Snap.FreeCapacityFor(pos, g.Job.Key(), g.Job.Priority, s.req.Now, new(model.Vector))
	return &capacity
}
