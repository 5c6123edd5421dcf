package scheduler

import (
	"fmt"
	"math"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/preempt"
	"github.com/cede-scheduler/cede/core/state"
)

// obstacle is why eviction makes no room on a node.
type obstacle uint8

const (
	unhindered     obstacle = iota // it would, or nobody looked
	nothingRuns                    // there is nobody to evict
	tooHigh                        // nobody's priority is low enough
	notPreemptible                 // whose priority is low enough may not be a victim
	tolerant                       // jobs spare themselves, from this preemptor or still
	anchored                       // the group must be beside those that are left
	spared                         // the policy wants a larger gap
	notEnough
	declined
	protected // see protects
	obstacles = iota
)

// tell is the obstacle as the end of "on 2 nodes ...". ceiling is the highest
// priority that may be evicted.
func (o obstacle) tell(ceiling int64) string {
	switch o {
	case nothingRuns:
		return "nothing runs that could be evicted"
	case tooHigh:
		return fmt.Sprintf("nothing has a priority of %d or less", ceiling)
	case notPreemptible:
		return fmt.Sprintf("what has a priority of %d or less is not preemptible", ceiling)
	case tolerant:
		return "what could be evicted is spared from preemptors of this priority, or has not run for long enough"
	case anchored:
		return "what could be evicted is what the group must be beside"
	case spared:
		return "the policy spares everything of lower priority"
	case notEnough:
		return "too little would be free with everything evicted that may be"
	case declined:
		return "the policy's victims free too little"
	}
	return ""
}

// tooManyElsewhere is that a bound ended the search for who keeps the group off a node.
var tooManyElsewhere = fmt.Sprintf("more than %d allocations on other nodes would have to leave", maxElsewhere)

// protects is that a strict budget stands in the way.
func protects(b *model.Budget) string {
	if b.MaxEvictions != nil {
		return fmt.Sprintf("the strict disruption budget %s allows %s at most, and too few are left", b.Name, b.MaxEvictions)
	}
	return "the strict disruption budget " + b.Name + " allows too few evictions"
}

// obstacle tells why the search found nothing on a node.
func (x *explainer) obstacle(chunk *state.Chunk, pos int32, outcome preempt.Outcome) obstacle {
	i := int(pos) % state.ChunkSize
	switch outcome {
	case preempt.NoCandidates:
		if lowest := chunk.MinPriority(i); lowest != math.MaxInt32 && int64(lowest) > x.ranker.ceiling && chunk.LowestNonPreemptible()>>i&1 == 0 {
			return tooHigh // as nobody would say, without a look at the node
		}
		return x.nobody(pos, chunk.Rows(i))
	case preempt.Insufficient:
		return notEnough
	case preempt.Declined:
		return declined
	case preempt.Protected:
		return protected
	}
	return unhindered
}

// nobody tells why none of a node's allocations, by ascending priority, is a
// candidate.
func (x *explainer) nobody(pos int32, rows []state.Row) obstacle {
	switch {
	case len(rows) == 0:
		return nothingRuns
	case int64(rows[0].Priority) > x.ranker.ceiling:
		return tooHigh
	}
	found := tooHigh
	for k := range rows {
		row := &rows[k]
		switch {
		case int64(row.Priority) > x.ranker.ceiling:
			return found
		case row.Group.Job.Key() == x.group.Job.Key(): // of an earlier, lower version
		case row.Group.Job.NonPreemptible:
			found = notPreemptible
		case x.tolerates(row):
			found = tolerant
		case x.rules != nil && x.rules.IsAffinityTarget(pos, row):
			found = anchored
		default:
			return spared
		}
	}
	return found
}

// tolerates is whether the row's job keeps it, or somebody who would go with it,
// from being evicted for this group now.
func (x *explainer) tolerates(row *state.Row) bool {
	job := row.Group.Job
	if _, spared := job.ProtectedFrom(row.Alloc, x.run.job.Priority, x.run.now); spared || !job.AllOrNone {
		return spared
	}
	live, held := 0, false
	for _, a := range x.run.proposed.AppendJobAllocs(nil, job.Key()) {
		if !a.InCohort() {
			continue
		}
		if a.Group.Name == row.Group.Name {
			live++
		}
		_, spared := a.Job.ProtectedFrom(a, x.run.job.Priority, x.run.now)
		held = held || spared || a.Job.NonPreemptible || int64(a.Job.Priority) > x.ranker.ceiling
	}
	newest := x.run.proposed.Job(job.Key())
	return held && (newest == nil || newest.SurplusInstances(row.Group.Name, live) == 0)
}

// ownPort is whether the node itself holds one of the ports that the group
// needs: no eviction frees it.
func (x *explainer) ownPort(n *model.Node) (port uint16, held bool) {
	for _, p := range x.group.Ask.Ports {
		if slices.Contains(n.Ports, p) {
			return p, true
		}
	}
	return 0, false
}

// noEviction is why nobody may be evicted for the job at all; "" when somebody
// may.
func (r *run) noEviction() string {
	switch {
	case r.preempts:
		return ""
	case r.job.NeverPreempts:
		return "the job's preemptionPolicy is Never"
	case r.out.Fault != nil:
		return "the policy was at fault"
	case r.held:
		return heldWhy
	}
	return fmt.Sprintf("preemption is off for %s jobs", r.job.Type)
}
