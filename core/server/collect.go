package server

import (
	"context"
	"math"
	"slices"

	"github.com/cede-scheduler/cede/core/clock"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/state"
)

// collect forgets what is over, now and then, until ctx ends.
func (t *term) collect(ctx context.Context) {
	if t.cfg.CollectInterval < 0 {
		return
	}
	for clock.Sleep(ctx, t.cfg.Clock, t.cfg.CollectInterval) {
		if _, err := t.CollectGarbage(ctx, false); err != nil && ctx.Err() == nil {
			t.logger.WarnContext(ctx, "what is over was not forgotten", "err", err)
		}
	}
}

// Collected counts what was forgotten.
type Collected struct{ Evals, Allocs, Jobs, Nodes, Bindings, Policies int }

// CollectGarbage forgets what has been over for long enough; with force all that
// is over. It writes bounded entries.
func (s *Server) CollectGarbage(ctx context.Context, force bool) (Collected, error) {
	if err := s.writer.CheckLeader(); err != nil {
		return Collected{}, err
	}
	g := s.garbage(force)
	for _, c := range g.commands(s.cfg.Retention.Batch) {
		if _, err := s.writer.Commit(ctx, c); err != nil {
			return Collected{}, err
		}
	}
	for _, key := range g.bindings {
		// One that was registered anew since holds something, and is refused.
		if _, err := s.writer.Propose(ctx, &replication.DeleteBinding{Key: key}); err != nil {
			return Collected{}, err
		}
	}
	for _, v := range g.policies {
		// One that was activated since plays a part, and is refused.
		if _, err := s.writer.Propose(ctx, &replication.ChangePolicy{Name: v.Name, Op: replication.OpUnload, Version: v.ID}); err != nil {
			return Collected{}, err
		}
	}
	return g.count(), nil
}

// garbage is what is over.
type garbage struct {
	snap                        *state.Snapshot
	evals, allocs, nodes        []string
	jobs, bindings              []model.JobKey
	policies                    []*model.PolicyVersion
	oldEval, oldAlloc, oldJob   int64 // nothing younger than this is forgotten
	oldNode                     uint64
	gone                        map[model.JobKey]bool
	claimedEvals, claimedAllocs map[string]bool // forgotten with their job
}

func (s *Server) garbage(force bool) *garbage {
	now := s.writer.Now()
	g := &garbage{snap: s.Snapshot(), gone: map[model.JobKey]bool{}, claimedEvals: map[string]bool{}, claimedAllocs: map[string]bool{}}
	if force {
		g.oldEval, g.oldAlloc, g.oldJob, g.oldNode = math.MaxInt64, math.MaxInt64, math.MaxInt64, math.MaxUint64
	} else {
		g.oldEval, g.oldAlloc = now-int64(s.cfg.Retention.Evals), now-int64(s.cfg.Retention.Allocs)
		g.oldJob = now - int64(s.cfg.Retention.Jobs)
		g.oldNode = s.times.before(now - int64(s.cfg.Retention.Nodes))
	}
	g.findJobs()
	g.findEvals()
	g.findAllocs()
	g.findNodes()
	g.findBindings()
	g.policies = oldPolicies(g.snap, s.cfg.Retention.Policies)
	return g
}

// findJobs finds the jobs of which nothing is left to do, with all that is of
// them.
func (g *garbage) findJobs() {
	for j := range g.snap.Jobs() {
		allocs := g.snap.AppendJobAllocs(nil, j.Key())
		evals := g.snap.EvalsOfJob(j.Key())
		if !j.Stopped && !finished(j, allocs) || !over(allocs, evals) || newest(j, allocs, evals) > g.oldJob {
			continue
		}
		g.jobs = append(g.jobs, j.Key())
		g.gone[j.Key()] = true
		for _, e := range evals {
			g.evals = append(g.evals, e.ID)
			g.claimedEvals[e.ID] = true
		}
		for _, a := range allocs {
			g.allocs = append(g.allocs, a.ID)
			g.claimedAllocs[a.ID] = true
		}
	}
}

// finished is whether all instances that a finite job wants have completed. One
// that runs on every node is never finished: there may be another node.
func finished(j *model.Job, allocs []*model.Allocation) bool {
	if !j.Type.Finite() || j.Type.PerNode() {
		return false
	}
	done := map[string]int{}
	for _, a := range allocs {
		if a.Client == model.ClientComplete && a.Job.Version == j.Version {
			done[a.Group.Name]++
		}
	}
	return !slices.ContainsFunc(j.Groups, func(g *model.Group) bool { return done[g.Name] < g.Count })
}

func over(allocs []*model.Allocation, evals []*model.Evaluation) bool {
	return !slices.ContainsFunc(allocs, func(a *model.Allocation) bool { return !a.Client.Terminal() }) &&
		!slices.ContainsFunc(evals, func(e *model.Evaluation) bool { return !e.Status.Final() })
}

// newest is when anything last happened to a job.
func newest(j *model.Job, allocs []*model.Allocation, evals []*model.Evaluation) int64 {
	at := j.SubmitTime
	for _, a := range allocs {
		at = max(at, ended(a))
	}
	for _, e := range evals {
		at = max(at, e.ModifyTime)
	}
	return at
}

func ended(a *model.Allocation) int64 { return max(a.EndTime, a.ModifyTime, a.CreateTime) }

func (g *garbage) findEvals() {
	for e := range g.snap.Evals() {
		if e.Status.Final() && e.ModifyTime <= g.oldEval && !g.claimedEvals[e.ID] {
			g.evals = append(g.evals, e.ID)
		}
	}
}

// findAllocs finds allocations that say nothing any more. What a finite job has
// completed says that it need not be done again, and stays with its job.
func (g *garbage) findAllocs() {
	for a := range g.snap.Allocs() {
		if !a.Client.Terminal() || ended(a) > g.oldAlloc || g.claimedAllocs[a.ID] {
			continue
		}
		job := g.snap.Job(a.Job.Key())
		if a.Client == model.ClientComplete && a.Job.Type.Finite() && job != nil && !job.Stopped {
			continue
		}
		if a.Desired == model.DesiredRun && job != nil && !job.Stopped && g.busy(a.Job.Key()) {
			continue // its job has not been looked at since
		}
		g.allocs = append(g.allocs, a.ID)
	}
}

// busy is whether an evaluation of the job is on its way. One that looks again at a time
// that was set is not, as the job has been looked at then: of an instance that fails
// again and again one nearly always waits.
func (g *garbage) busy(key model.JobKey) bool {
	return slices.ContainsFunc(g.snap.EvalsOfJob(key), func(e *model.Evaluation) bool {
		return !e.Status.Final() && e.TriggeredBy != model.TriggerRecheck
	})
}

// findNodes finds nodes that have been down for long and have nothing that is
// not over.
func (g *garbage) findNodes() {
	var allocs []*model.Allocation
	for n := range g.snap.Nodes() {
		if n.Status != model.NodeDown || n.ModifyIndex > g.oldNode {
			continue
		}
		allocs = g.snap.AppendNodeAllocs(allocs[:0], n.ID)
		if over(allocs, nil) {
			g.nodes = append(g.nodes, n.ID)
		}
	}
}

// findBindings finds the bindings of which nothing is left to do: they were
// stopped and all of it is gone, or all their replicas have done their work. What
// is duplicated wants more with every cluster, and is never done.
func (g *garbage) findBindings() {
	for b := range g.snap.Bindings() {
		assigned, last, done := g.snap.BindingAssignments(b.Key()), b.SubmitTime, 0
		held := false
		for _, a := range assigned {
			held = held || a.HoldsCapacity()
			last = max(last, a.EndTime)
			done += a.Replicas
		}
		for _, e := range g.snap.EvalsOfJob(b.Key()) {
			held = held || !e.Status.Final()
			last = max(last, e.ModifyTime)
		}
		over := b.Stopped || !b.Duplicated && b.Replicas > 0 && done >= b.Replicas
		if over && !held && last <= g.oldJob {
			g.bindings = append(g.bindings, b.Key())
		}
	}
}

// commands are the entries that forget it all, each of at most size things.
// Evaluations and allocations go before the jobs that they are of.
func (g *garbage) commands(size int) []replication.Command {
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

func (g *garbage) count() Collected {
	return Collected{Evals: len(g.evals), Allocs: len(g.allocs), Jobs: len(g.jobs), Nodes: len(g.nodes), Bindings: len(g.bindings), Policies: len(g.policies)}
}
