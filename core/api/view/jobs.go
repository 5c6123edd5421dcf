package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/core/jobspec"
	"github.com/cede-scheduler/cede/core/lookahead"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/server/endpoint"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/sdk/client"
)

// JobSummary returns the counts of a job's allocations, and the greatest index among them
// and the job's evaluations.
func JobSummary(s *state.Snapshot, j *model.Job) (*client.JobSummary, uint64) {
	out := &client.JobSummary{
		JobID: j.ID, Namespace: j.Namespace, Summary: map[string]client.TaskGroupSummary{},
		CreateIndex: j.CreateIndex, ModifyIndex: j.ModifyIndex,
	}
	for _, g := range j.Groups {
		out.Summary[g.Name] = client.TaskGroupSummary{}
	}
	for _, a := range s.AppendJobAllocs(nil, j.Key()) {
		out.ModifyIndex = max(out.ModifyIndex, AllocChanged(s, a))
		t := out.Summary[a.Group.Name]
		countAlloc(&t, s, a)
		out.Summary[a.Group.Name] = t
	}
	evals := s.EvalsOfJob(j.Key())
	for _, e := range evals {
		out.ModifyIndex = max(out.ModifyIndex, e.ModifyIndex)
	}
	if e := NewestWaiting(evals); e != nil {
		for group, n := range e.Queued {
			t := out.Summary[group]
			t.Queued = n
			out.Summary[group] = t
		}
	}
	return out, out.ModifyIndex
}

// NewestWaiting returns the blocked evaluation of a job or binding that is in effect, or
// nil. It is the newest one: older ones remain blocked for a while until they are
// cancelled.
func NewestWaiting(evals []*model.Evaluation) (newest *model.Evaluation) {
	for _, e := range evals {
		if e.Status == model.EvalBlocked && (newest == nil || e.CreateIndex > newest.CreateIndex) {
			newest = e
		}
	}
	return newest
}

// countAlloc adds an allocation to the counts of its group.
func countAlloc(t *client.TaskGroupSummary, s *state.Snapshot, a *model.Allocation) {
	switch {
	case a.Desired == model.DesiredEvict:
		t.Evicted++
	case IsDisconnected(s, a):
		t.Unknown++
	case a.Client == model.ClientRunning:
		t.Running++
	case a.Client == model.ClientPending && a.Live():
		t.Starting++
	case a.Client == model.ClientComplete:
		t.Complete++
	case a.Client == model.ClientFailed:
		t.Failed++
	case a.Client == model.ClientLost:
		t.Lost++
	}
}

// JobStatus returns Nomad's status of a job: running if any of its allocations is live,
// dead if it was stopped or all of them have finished, and pending otherwise.
func JobStatus(s *state.Snapshot, j *model.Job) (status, why string) {
	live, ended := 0, 0
	for _, a := range s.AppendJobAllocs(nil, j.Key()) {
		switch {
		case !a.Client.Terminal():
			live++
		case a.Desired == model.DesiredRun:
			ended++
		}
	}
	switch {
	case j.Stopped && live > 0:
		return "running", "stopping"
	case j.Stopped:
		return "dead", "stopped"
	case live > 0:
		return "running", ""
	}
	evals := s.EvalsOfJob(j.Key())
	if e := NewestWaiting(evals); e != nil {
		return "pending", "blocked until capacity is free: evaluation " + e.ID
	}
	if slices.ContainsFunc(evals, func(e *model.Evaluation) bool { return e.Status == model.EvalPending }) {
		return "pending", ""
	}
	if j.Type.Finite() && ended > 0 {
		return "dead", "complete"
	}
	return "pending", ""
}

// Job returns a job with its status.
func Job(s *state.Snapshot, j *model.Job) *client.Job {
	out := jobspec.FromModel(j)
	out.Status, out.StatusDescription = JobStatus(s, j)
	return out
}

// PurgedJob returns a job that was purged: the version of its last allocation or, if
// none is left, its name alone.
func PurgedJob(s *state.Snapshot, key model.JobKey) *client.Job {
	out := &client.Job{ID: key.ID, Name: key.ID, Namespace: key.Namespace}
	if last := state.LastSpec(s, key); last != nil {
		out = jobspec.FromModel(last)
	}
	out.Stop, out.Status, out.StatusDescription = true, "dead", "purged"
	return out
}

// JobStub returns a job as a list entry, and the index of its last change.
func JobStub(s *state.Snapshot, j *model.Job) (*client.JobStub, uint64) {
	summary, changed := JobSummary(s, j)
	stub := &client.JobStub{
		ID: j.ID, Name: cmp.Or(j.Name, j.ID), Namespace: j.Namespace, Datacenters: j.Datacenters, Type: j.Type.String(),
		Priority: int(j.Priority), PriorityClass: j.PriorityClass, Stop: j.Stopped, JobSummary: summary,
		Version: j.Version, SubmitTime: j.SubmitTime, Meta: j.Meta,
		CreateIndex: j.CreateIndex, ModifyIndex: j.ModifyIndex, JobModifyIndex: j.ModifyIndex,
	}
	stub.Status, stub.StatusDescription = JobStatus(s, j)
	return stub, changed
}

// sum returns the sum of the counts.
func sum(counts map[string]int) (n int) {
	for _, c := range counts {
		n += c
	}
	return n
}

// Plan returns a plan that was computed and not committed, with the differences of the
// specification if withDiff is set.
func Plan(s *state.Snapshot, p *endpoint.Proposal, warnings []string, withDiff bool) *client.JobPlanResponse {
	out := &client.JobPlanResponse{
		JobModifyIndex: p.JobModifyIndex, FailedTGAllocs: AllocMetrics(p.Failed), Warnings: strings.Join(slices.Concat(warnings, p.Warnings), "\n"),
		PlanToken: p.Token, Expires: p.Expires, Index: p.Index, NewJob: p.Changes.NewJob, NewSpec: p.Changes.NewSpec,
		Annotations: &client.PlanAnnotations{DesiredTGUpdates: map[string]*client.DesiredUpdates{}, PreemptedAllocs: []*client.AllocationStub{}},
		Unplaced:    p.Queued,
	}
	for group, c := range p.Changes.Groups {
		out.Annotations.DesiredTGUpdates[group] = &client.DesiredUpdates{
			Place: count(c.Place), Ignore: count(c.Keep), Stop: count(c.Stop), InPlaceUpdate: count(c.Update),
			DestructiveUpdate: count(c.Replace), Preemptions: count(c.Evict),
		}
	}
	if withDiff {
		out.Diff = JobDiff(jobspec.FromModel(s.Job(p.Job.Key())), jobspec.FromModel(p.Job))
		annotate(out.Diff, p.Changes.Groups)
	}
	policies := map[string]bool{}
	for _, a := range p.Place {
		out.Place = append(out.Place, AllocStub(s, a))
	}
	for _, a := range p.Update {
		out.Update = append(out.Update, AllocStub(s, a))
	}
	for _, stop := range p.Stop {
		stub := AllocStub(s, stop.Alloc)
		stub.DesiredStatus, stub.DesiredDescription = model.DesiredStop.String(), stop.Reason
		out.Stop = append(out.Stop, stub)
	}
	for _, a := range p.Move {
		out.Move = append(out.Move, AllocStub(s, a))
	}
	for _, e := range p.Evict {
		stub := AllocStub(s, e.Alloc)
		stub.DesiredStatus, stub.PolicyVersion = model.DesiredEvict.String(), e.Policy
		stub.PreemptedByAllocation, stub.PreemptedByAllocID = e.By, e.By
		out.Annotations.PreemptedAllocs = append(out.Annotations.PreemptedAllocs, stub)
		policies[e.Policy] = e.Policy != ""
	}
	for version, named := range policies {
		if named {
			out.Policies = append(out.Policies, version)
		}
	}
	slices.Sort(out.Policies)
	return out
}

// annotate adds the effect of a plan to the differences of its groups.
func annotate(d *client.JobDiff, groups map[string]endpoint.GroupChange) {
	for _, g := range d.TaskGroups {
		c := groups[g.Name]
		g.Updates = map[string]uint64{}
		for _, u := range []struct {
			name string
			n    int
		}{{"create", c.Place}, {"destroy", c.Stop}, {"create/destroy update", c.Replace}, {"in-place update", c.Update}, {"ignore", c.Keep}} {
			if u.n > 0 {
				g.Updates[u.name] = uint64(u.n)
			}
		}
		for _, t := range g.Tasks {
			t.Annotations = []string{taskAnnotation(t.Type, c.Replace)}
		}
	}
}

// taskAnnotation returns the effect of a task's difference on the instances.
func taskAnnotation(kind string, replaced int) string {
	switch {
	case kind == client.DiffAdded:
		return "forces create"
	case kind == client.DiffDeleted:
		return "forces destroy"
	case replaced > 0:
		return "forces create/destroy update"
	}
	return "forces in-place update"
}

// count returns n as an unsigned number, which is 0 if n is negative.
func count(n int) uint64 { return uint64(max(n, 0)) }

// JobForecast returns the forecast of a job from that of the queue.
func JobForecast(key model.JobKey, q *lookahead.Queue) *client.JobForecast {
	out := &client.JobForecast{
		Namespace: key.Namespace, JobID: key.ID, Index: q.Index, Time: q.Now, QueueLength: len(q.Jobs), Draws: q.Draws, Horizon: lookahead.ForecastHorizon,
		Running: q.Running, Ending: q.Ending,
	}
	job := q.Jobs[key]
	if job == nil {
		out.Reason = "no instance of the job waits in the queue"
		return out
	}
	out.EvalID, out.Position, out.Waiting, out.Since = job.EvalID, job.Position, job.Waiting, job.Since
	out.First, out.All = startTime(job.First, q.Draws), startTime(job.All, q.Draws)
	if len(job.First) > 0 {
		return out
	}
	switch {
	case q.Exhausted == q.Draws:
		out.Reason = "the queue is too long to be played to its end"
	case q.Ending == 0 && q.Running > 0:
		out.Reason = fmt.Sprintf("the ends of the running instances (%d) cannot be predicted: their jobs state no duration, and too few of their runs have ended", q.Running)
	default:
		out.Reason = fmt.Sprintf("it does not start within %s in any of %d plays: `cede eval explain` shows the shortage", lookahead.ForecastHorizon, q.Draws)
	}
	return out
}

// startTime returns the median and the interval of the times of a start; nil if it happens
// in no draw.
func startTime(times []int64, draws int) *client.StartTime {
	if len(times) == 0 {
		return nil
	}
	out := &client.StartTime{Draws: len(times)}
	for _, q := range []struct {
		p  float64
		to *int64
	}{{0.1, &out.Low}, {0.5, &out.Expected}, {0.9, &out.High}} {
		*q.to, _ = lookahead.Quantile(times, draws, q.p)
	}
	return out
}
