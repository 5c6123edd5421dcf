package placement

import (
	"fmt"
	"math"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/preempt"
	"github.com/cede-scheduler/cede/core/scheduler/feasible"
	"github.com/cede-scheduler/cede/core/scheduler/proposal"
	"github.com/cede-scheduler/cede/core/state"
)

// An obstacle is the reason for which eviction frees no capacity on a node.
type obstacle uint8

const (
	unobstructed   obstacle = iota // eviction helps, or the node was not searched
	nothingRuns                    // there are no allocations
	tooHigh                        // all priorities are above the ceiling
	notPreemptible                 // those below it belong to jobs that are not preemptible
	selfProtected                  // their jobs protect themselves from this preemptor, or for some time
	affinityTarget                 // the group needs the candidates that are left
	gapTooSmall                    // the policy requires a larger gap
	insufficient                   // even all victims together free too little
	declined                       // the policy's victims free too little
	underBudget                    // see budgetReason
	obstacles      = iota
)

// describe formats the obstacle as the end of "on 2 nodes ...". ceiling is the
// highest priority that may be evicted.
func (o obstacle) describe(ceiling int64) string {
	switch o {
	case nothingRuns:
		return "nothing runs that could be evicted"
	case tooHigh:
		return proposal.TooHighReason(ceiling)
	case notPreemptible:
		return fmt.Sprintf("everything with a priority of %d or less is not preemptible", ceiling)
	case selfProtected:
		return "all candidates are protected from preemptors of this priority or have not run for long enough"
	case affinityTarget:
		return "the group must be co-located with all candidates"
	case gapTooSmall:
		return "the policy protects everything of lower priority"
	case insufficient:
		return proposal.InsufficientReason
	case declined:
		return proposal.DeclinedReason
	}
	return ""
}

// reasonMaxRemote states that a bound ended the search for remote conflicts.
var reasonMaxRemote = fmt.Sprintf("more than %d allocations on other nodes would have to be evicted", feasible.MaxRemote)

// budgetReason states that a strict budget protects the victims. It names the budget,
// which an operator can change.
func budgetReason(b *model.Budget) string {
	if b.MaxEvictions != nil {
		return fmt.Sprintf("the strict disruption budget %s allows at most %s, and too few are left", b.Name, b.MaxEvictions)
	}
	return "the strict disruption budget " + b.Name + " allows too few evictions"
}

// obstacle returns why the search found no option on a node. Its answer must agree with
// that of the search, because users act on it.
func (x *explainer) obstacle(chunk *state.Chunk, pos int32, outcome preempt.Outcome) obstacle {
	i := int(pos) % state.ChunkSize
	switch outcome {
	case preempt.NoCandidates:
		lowest := chunk.MinPriority(i)
		if lowest != math.MaxInt32 && int64(lowest) > x.Ranker.Preemption.Ceiling && chunk.LowestNonPreemptible()>>i&1 == 0 {
			return tooHigh // as noCandidates would return, without reading the rows
		}
		return x.noCandidates(pos, chunk.Rows(i))
	case preempt.Insufficient:
		return insufficient
	case preempt.Declined:
		return declined
	case preempt.Protected:
		return underBudget
	}
	return unobstructed
}

// noCandidates returns why none of a node's rows, which are ascending by priority, is a
// candidate. It returns the obstacle of the last row that has one, unless the policy
// alone protected a row.
func (x *explainer) noCandidates(pos int32, rows []state.Row) obstacle {
	ceiling := x.Ranker.Preemption.Ceiling
	switch {
	case len(rows) == 0:
		return nothingRuns
	case int64(rows[0].Priority) > ceiling:
		return tooHigh
	}
	found := tooHigh
	for k := range rows {
		row := &rows[k]
		switch {
		case int64(row.Priority) > ceiling:
			return found
		case row.Group.Job.Key() == x.group.Job.Key(): // of an earlier version with a lower priority
		case row.Group.Job.NonPreemptible:
			found = notPreemptible
		case x.isProtected(row):
			found = selfProtected
		case x.Rules != nil && x.Rules.IsAffinityTarget(pos, row):
			found = affinityTarget
		default:
			return gapTooSmall
		}
	}
	return found
}

// isProtected reports whether the row's job protects it from eviction by this group
// now, or protects another member of its cohort. It walks the job's allocations only if
// the job is evicted all-or-none.
func (x *explainer) isProtected(row *state.Row) bool {
	job, priority, now := row.Group.Job, x.e.Job.Priority, x.e.Now
	if _, protected := job.ProtectedFrom(row.Alloc, priority, now); protected || !job.AllOrNone {
		return protected
	}
	snap := x.e.State.Snapshot()
	live, held := 0, false
	for _, a := range snap.AppendJobAllocs(nil, job.Key()) {
		if !a.InCohort() || a.LostWith(snap.Node(a.NodeID), now) {
			continue
		}
		if a.Group.Name == row.Group.Name {
			live++
		}
		_, protected := a.Job.ProtectedFrom(a, priority, now)
		held = held || protected || a.Job.NonPreemptible || int64(a.Job.Priority) > x.Ranker.Preemption.Ceiling
	}
	newest := snap.Job(job.Key())
	return held && (newest == nil || newest.SurplusInstances(row.Group.Name, live) == 0)
}
