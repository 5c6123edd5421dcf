package feasible

import (
	"iter"
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/scheduler/proposal"
	"github.com/cede-scheduler/cede/core/state"
)

// A Context is shared by the rules of all groups of one evaluation.
type Context struct {
	State *proposal.State
	// Allocs are the job's allocations in State.Base by Group.Position; see GroupAllocs.
	Allocs     [][]*model.Allocation
	Preemption *proposal.Preemption

	counters *CounterPool
	// antiAffinities are shared by groups that are alike in this.
	antiAffinities []*antiAffinity
	repellers      []*repellers
}

// NewContext returns a Context with counters from a pool.
func NewContext(s *proposal.State, allocs [][]*model.Allocation, p *proposal.Preemption, pool *CounterPool) *Context {
	return &Context{State: s, Allocs: allocs, Preemption: p, counters: pool}
}

// Count updates the counters that groups share when an allocation of any job is
// placed (1) or removed (-1).
func (x *Context) Count(a *model.Allocation, by int) {
	for _, s := range x.antiAffinities {
		s.count(a, by)
	}
}

// DropCounts discards the counters that groups share. Rules made afterwards count
// from the proposed state.
func (x *Context) DropCounts() { x.antiAffinities = nil }

// Recount is DropCounts for a caller that has discarded all Rules as well: it
// also frees their counters, and has new ones ignore Allocs.
func (x *Context) Recount() {
	x.DropCounts()
	x.State.SetJobStopped()
	x.counters.Reclaim()
}

func (x *Context) newCounter() *nodeCounter { return x.counters.acquire(x.State.Base) }

// repellers lists jobs with terms that may exclude groups with the same labels, in a
// fixed order. Anti-affinity binds both sides.
type repellers struct {
	apart string // Group.Apart of the groups
	jobs  []model.JobKey
	// spans is set if some of them may exclude a group from domains of several nodes.
	spans bool
}

// repellers computes the list once for all groups of the job that are alike.
func (x *Context) findRepellers(g *model.Group) *repellers {
	for _, r := range x.repellers {
		if r.apart == g.SeparationClass() {
			return r
		}
	}
	base := x.State.Base
	r := &repellers{apart: g.SeparationClass(), jobs: sortedKeys(base.JobsSeparatedFrom(g.Labels), g.Job.Namespace)}
	r.spans = slices.ContainsFunc(r.jobs, func(key model.JobKey) bool { return MayRepelDomains(base, key) })
	x.repellers = append(x.repellers, r)
	return r
}

// MayRepelDomains reports whether allocations of a job may keep others out of
// domains of several nodes. Those of a removed or updated job may still carry
// terms that the job no longer has.
func MayRepelDomains(snap *state.Snapshot, key model.JobKey) bool {
	job := snap.Job(key)
	return job == nil || job.ModifyIndex != job.CreateIndex || job.SeparatesByDomain()
}

// sortedKeys returns the keys of a namespace, ascending and without duplicates.
func sortedKeys(keys iter.Seq[model.JobKey], namespace string) (list []model.JobKey) {
	for key := range keys {
		if key.Namespace == namespace {
			list = append(list, key)
		}
	}
	slices.SortFunc(list, model.JobKey.Compare)
	return slices.Compact(list)
}

// eachLive visits the live allocations of jobs in a snapshot, each job once.
func eachLive(snap *state.Snapshot, keys []model.JobKey, visit func(*model.Allocation)) {
	slices.SortFunc(keys, model.JobKey.Compare)
	var allocs []*model.Allocation
	for _, key := range slices.Compact(keys) {
		allocs = snap.AppendJobAllocs(allocs[:0], key)
		for _, a := range allocs {
			if a.Live() {
				visit(a)
			}
		}
	}
}

// GroupAllocs sorts a job's allocations into dst by Group.Position, each list in
// the order of the table, and returns it. Allocations of groups that the job lacks, and
// of a purged job with its ID, are left out. Runs of one group are usually contiguous,
// so that most lists are slices of allocs and nothing is copied.
func GroupAllocs(dst [][]*model.Allocation, job *model.Job, allocs []*model.Allocation) [][]*model.Allocation {
	dst = Resize(dst, len(job.Groups))
	clear(dst)
	for from := 0; from < len(allocs); {
		group, to := allocs[from].Group, from+1
		for to < len(allocs) && allocs[to].Group == group {
			to++
		}
		run := allocs[from:to:to]
		if from = to; group.Job != job {
			isSame := group.Job.IsSameJob(job)
			if group = job.Group(group.Name); group == nil || !isSame {
				continue
			}
		}
		if at := &dst[group.Position]; *at == nil {
			*at = run
		} else {
			*at = append(*at, run...)
		}
	}
	return dst
}
