package gc

import (
	"cmp"
	"math"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/state"
)

// cutoffs are the newest times, in Unix nanoseconds, and the newest index at which an
// object must have ended to be removed.
type cutoffs struct {
	eval, alloc, job int64
	node             uint64
}

func (c *Collector) cutoffs(force bool) cutoffs {
	if force {
		return cutoffs{eval: math.MaxInt64, alloc: math.MaxInt64, job: math.MaxInt64, node: math.MaxUint64}
	}
	now, r := c.Writer.Now(), &c.Retention
	return cutoffs{
		eval: now - int64(r.Evals), alloc: now - int64(r.Allocs), job: now - int64(r.Jobs),
		node: c.Times.IndexBefore(now - int64(r.Nodes)),
	}
}

// candidates is a set of objects to remove.
type candidates struct {
	evals, allocs, nodes []string
	jobs, bindings       []model.JobKey
	policies             []*model.PolicyVersion
}

// finder finds garbage in a snapshot.
type finder struct {
	snap  *state.Snapshot
	old   cutoffs
	found candidates
	ofJob map[string]bool // evaluations and allocations that are removed with their job
}

func findGarbage(snap *state.Snapshot, old cutoffs, policies int) *candidates {
	f := &finder{snap: snap, old: old, ofJob: map[string]bool{}}
	f.findJobs()
	f.findEvals()
	f.findAllocs()
	f.findNodes()
	f.findBindings()
	f.found.policies = unusedPolicies(snap, policies)
	return &f.found
}

// findJobs adds the jobs that have nothing left to do, with their evaluations and
// allocations.
func (f *finder) findJobs() {
	g := &f.found
	for j := range f.snap.Jobs() {
		allocs := f.snap.AppendJobAllocs(nil, j.Key())
		evals := f.snap.EvalsOfJob(j.Key())
		isOver := j.Stopped || j.Type.Finite() && j.IsDone(allocs)
		if !isOver || !allTerminal(allocs, evals) || lastChange(j, allocs, evals) > f.old.job {
			continue
		}
		g.jobs = append(g.jobs, j.Key())
		for _, e := range evals {
			g.evals = append(g.evals, e.ID)
			f.ofJob[e.ID] = true
		}
		for _, a := range allocs {
			g.allocs = append(g.allocs, a.ID)
			f.ofJob[a.ID] = true
		}
	}
}

// allTerminal reports whether every allocation and evaluation has ended.
func allTerminal(allocs []*model.Allocation, evals []*model.Evaluation) bool {
	return !slices.ContainsFunc(allocs, func(a *model.Allocation) bool { return !a.Client.Terminal() }) &&
		!slices.ContainsFunc(evals, func(e *model.Evaluation) bool { return !e.Status.Final() })
}

// lastChange returns the time at which anything of a job last changed.
func lastChange(j *model.Job, allocs []*model.Allocation, evals []*model.Evaluation) int64 {
	at := j.SubmitTime
	for _, a := range allocs {
		at = max(at, endedAt(a))
	}
	for _, e := range evals {
		at = max(at, e.ModifyTime)
	}
	return at
}

func endedAt(a *model.Allocation) int64 { return max(a.EndTime, a.ModifyTime, a.CreateTime) }

func (f *finder) findEvals() {
	for e := range f.snap.Evals() {
		if e.Status.Final() && e.ModifyTime <= f.old.eval && !f.ofJob[e.ID] {
			f.found.evals = append(f.found.evals, e.ID)
		}
	}
}

// findAllocs adds ended allocations that no decision depends on. A completed allocation
// of an instance prevents that it runs again, and stays with its job.
func (f *finder) findAllocs() {
	for a := range f.snap.Allocs() {
		if !a.Client.Terminal() || endedAt(a) > f.old.alloc || f.ofJob[a.ID] {
			continue
		}
		job := f.snap.Job(a.Job.Key())
		if a.IsDone(job) {
			continue
		}
		if a.Desired == model.DesiredRun && job != nil && !job.Stopped && f.hasPendingEval(a.Job.Key()) {
			continue // the job has not been evaluated since it ended
		}
		f.found.allocs = append(f.found.allocs, a.ID)
	}
}

// hasPendingEval reports whether an evaluation of the job has not ended. A scheduled
// recheck does not count, because the job was evaluated when it was scheduled: an
// instance that keeps failing nearly always has one.
func (f *finder) hasPendingEval(key model.JobKey) bool {
	return slices.ContainsFunc(f.snap.PendingEvals(key), func(e *model.Evaluation) bool {
		return e.TriggeredBy != model.TriggerRecheck
	})
}

// findNodes adds nodes that have been down for long, if all their allocations have ended.
func (f *finder) findNodes() {
	var allocs []*model.Allocation
	for n := range f.snap.Nodes() {
		if n.Status != model.NodeDown || n.ModifyIndex > f.old.node {
			continue
		}
		allocs = f.snap.AppendNodeAllocs(allocs[:0], n.ID)
		if allTerminal(allocs, nil) {
			f.found.nodes = append(f.found.nodes, n.ID)
		}
	}
}

// findBindings adds bindings that hold nothing if they were stopped, or if all their
// replicas have completed. A duplicated binding never completes, because every new cluster
// gets replicas of it.
func (f *finder) findBindings() {
	for b := range f.snap.Bindings() {
		assigned, last, done := f.snap.BindingAssignments(b.Key()), b.SubmitTime, 0
		held := false
		for _, a := range assigned {
			held = held || a.HoldsCapacity()
			last = max(last, a.EndTime)
			done += a.Replicas
		}
		for _, e := range f.snap.EvalsOfJob(b.Key()) {
			held = held || !e.Status.Final()
			last = max(last, e.ModifyTime)
		}
		finished := b.Stopped || !b.Duplicated && b.Replicas > 0 && done >= b.Replicas
		if finished && !held && last <= f.old.job {
			f.found.bindings = append(f.found.bindings, b.Key())
		}
	}
}

// unusedPolicies returns, of each policy, all versions except those in use and the
// newest keep. A build that loads a version every time would otherwise fill the disk of
// every server. If keep is negative, all versions stay.
func unusedPolicies(snap *state.Snapshot, keep int) (unused []*model.PolicyVersion) {
	if keep < 0 {
		return nil
	}
	byName := map[string][]*model.PolicyVersion{}
	for _, v := range snap.PolicyVersions() {
		byName[v.Name] = append(byName[v.Name], v)
	}
	for name, versions := range byName {
		slices.SortFunc(versions, func(a, b *model.PolicyVersion) int {
			return cmp.Or(cmp.Compare(b.CreateIndex, a.CreateIndex), cmp.Compare(a.ID, b.ID))
		})
		st := snap.PolicyState(name)
		for _, v := range versions[min(keep, len(versions)):] {
			if st == nil || !st.Uses(v.ID) {
				unused = append(unused, v)
			}
		}
	}
	slices.SortFunc(unused, func(a, b *model.PolicyVersion) int { return cmp.Compare(a.ID, b.ID) })
	return unused
}

// commands returns the commands that remove the garbage, each with at most size objects.
// Evaluations and allocations are removed before their jobs. Bindings and policies have
// commands of their own.
func (g *candidates) commands(size int) []replication.Command {
	var list []replication.Command
	for part := range slices.Chunk(g.evals, size) {
		list = append(list, &replication.Collect{Evals: part})
	}
	for part := range slices.Chunk(g.allocs, size) {
		list = append(list, &replication.Collect{Allocs: part})
	}
	for part := range slices.Chunk(g.jobs, size) {
		list = append(list, &replication.Collect{Jobs: part})
	}
	for part := range slices.Chunk(g.nodes, size) {
		list = append(list, &replication.Collect{Nodes: part})
	}
	return list
}

func (g *candidates) count() Collected {
	return Collected{Evals: len(g.evals), Allocs: len(g.allocs), Jobs: len(g.jobs), Nodes: len(g.nodes), Bindings: len(g.bindings), Policies: len(g.policies)}
}
