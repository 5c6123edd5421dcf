package reconcile

import (
	"math/bits"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/scheduler/feasible"
	"github.com/cede-scheduler/cede/core/scheduler/proposal"
	"github.com/cede-scheduler/cede/core/state"
)

// Reasons for which allocations are stopped.
const (
	reasonNodeDown   = "its node is down"
	reasonDraining   = "its node is draining"
	reasonJobUpdated = "the job was updated"
	reasonMismatch   = "the node no longer matches"
	reasonTaint      = "its node has the taint "
)

// IsCausedByNode reports whether an allocation is stopped for a reason that concerns its node, so
// that it may continue if the node has changed since.
func IsCausedByNode(reason string) bool {
	switch reason {
	case reasonNodeDown, reasonDraining, reasonMismatch:
		return true
	}
	return strings.HasPrefix(reason, reasonTaint)
}

// Missing is an instance to be placed.
type Missing struct {
	Index       int
	Incarnation int
	SavedWork   int64 // nanoseconds of work inherited from earlier incarnations
	// Replaces is a running allocation that is stopped once this instance has a node,
	// because its node drains or its job was updated; nil: none.
	Replaces *model.Allocation
	Reason   string // why Replaces is replaced
	Since    int64  // when the instance became missing, in Unix nanoseconds
}

// Buffers hold memory that is reused between evaluations.
type Buffers struct {
	allocs    []*model.Allocation
	byGroup   [][]*model.Allocation
	instances []instance
	missing   []Missing
}

// A Reconciler compares one job with its allocations in a snapshot.
type Reconciler struct {
	job  *model.Job
	snap *state.Snapshot
	now  int64
	plan *proposal.Plan
	buf  *Buffers

	allocs  []*model.Allocation   // all of the job, in table order
	byGroup [][]*model.Allocation // see feasible.GroupAllocs
	// nodesChanged is set if a node is down, draining or expels allocations, so that
	// allocations of the current job version may have to move.
	nodesChanged bool

	retries      map[*model.Allocation]int64 // when failed instances are replaced; see retryAt
	retriesKnown bool
	waiting      []Retry
	recheckAt    int64
}

// New returns a Reconciler that writes its decisions to a plan. job is nil if it
// was removed.
func New(snap *state.Snapshot, key model.JobKey, job *model.Job, now int64, plan *proposal.Plan, buf *Buffers) *Reconciler {
	buf.allocs = snap.AppendJobAllocs(buf.allocs[:0], key)
	buf.missing = buf.missing[:0]
	r := &Reconciler{job: job, snap: snap, now: now, plan: plan, buf: buf, allocs: buf.allocs}
	if job != nil {
		buf.byGroup = feasible.GroupAllocs(buf.byGroup, job, r.allocs)
		r.byGroup = buf.byGroup
	}
	return r
}

// Allocs returns the job's allocations by Group.Position.
func (r *Reconciler) Allocs() [][]*model.Allocation { return r.byGroup }

// Retries returns the instances that failed repeatedly and are not yet replaced,
// ascending by group and index.
func (r *Reconciler) Retries() []Retry { return r.waiting }

// WaitsToRetry reports whether a failed instance is not yet replaced.
func (r *Reconciler) WaitsToRetry() bool {
	for _, at := range r.retries {
		if at > r.now {
			return true
		}
	}
	return false
}

// RecheckAt returns when the job has to be reconciled again although nothing
// changes: an allocation is then lost or expelled, or a failed one is replaced.
// It returns 0 if there is no such time.
func (r *Reconciler) RecheckAt() int64 { return r.recheckAt }

func (r *Reconciler) recheckBy(at int64) {
	if r.recheckAt == 0 || at < r.recheckAt {
		r.recheckAt = at
	}
}

// StopAll stops every allocation of a job that is stopped or removed.
func (r *Reconciler) StopAll() {
	for _, a := range r.allocs {
		if a.Live() {
			r.plan.Stop(a, "the job was stopped", false)
		}
	}
}

// StopRemoved stops the allocations of groups that the job lacks, and those of a purged
// job with its ID, of which no evaluation has stopped them yet.
func (r *Reconciler) StopRemoved() {
	for _, a := range r.allocs {
		switch {
		case a.Job == r.job || !a.Live():
		case !a.Job.IsSameJob(r.job):
			r.plan.Stop(a, "the job was purged", false)
		case r.job.Group(a.Group.Name) == nil:
			r.plan.Stop(a, "the job no longer has this group", false)
		}
	}
}

// DetectNodeChanges records whether allocations of the current job version may
// have to move. A removed node leaves nothing to count in the snapshot, except for
// the evaluation that its removal triggered. Groups with a disconnect block are
// always examined, because their replacements end when a node returns.
func (r *Reconciler) DetectNodeChanges(trigger model.Trigger) {
	hasDisconnect := func(g *model.Group) bool { return g.Disconnect != nil }
	if r.snap.HasNoExecuteTaints() || trigger == model.TriggerNodeUpdate || slices.ContainsFunc(r.job.Groups, hasDisconnect) {
		r.nodesChanged = true
		return
	}
	ready := 0
	for c := range r.snap.ChunkCount() {
		ready += bits.OnesCount64(r.snap.Chunk(c).Eligible())
	}
	r.nodesChanged = ready < r.snap.NodeCount()
}

// MissingSince returns since when an instance waits: since its last allocation
// ended, or if there is none, since the job was submitted.
func (r *Reconciler) MissingSince(last *model.Allocation) int64 {
	switch {
	case last == nil:
		return r.job.SubmitTime
	case last.Live():
		return r.now // this plan stops it
	}
	return max(last.EndTime, r.job.SubmitTime)
}

// updateInPlace moves an allocation to the job's newest version.
func (r *Reconciler) updateInPlace(g *model.Group, a *model.Allocation) {
	next := *a
	next.Job, next.Group = r.job, g
	r.plan.Update(&next)
}

// expel stops an allocation if a NoExecute taint of its node requires it now. If
// the taint tolerates it for some time, the job is reconciled again at that time.
func (r *Reconciler) expel(g *model.Group, a *model.Allocation, node *model.Node) bool {
	at, taint := g.NoExecuteAt(node, a.CreateTime)
	switch {
	case taint == nil:
		return false
	case at > r.now:
		r.recheckBy(at)
		return false
	}
	r.plan.Stop(a, reasonTaint+taint.String(), false)
	return true
}
