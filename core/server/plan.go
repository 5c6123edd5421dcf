package server

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/scheduler"
	"github.com/cede-scheduler/cede/core/server/apierror"
	"github.com/cede-scheduler/cede/core/server/logwriter"
	"github.com/cede-scheduler/cede/core/state"
)

// planValid is how long a plan's token may be used.
const planValid = 15 * time.Minute

// PlanJob says what registering a job would do, and changes nothing. The token
// in the answer has exactly that done.
func (s *Server) PlanJob(_ context.Context, j *model.Job, o PlanOptions) (*Proposal, error) {
	resolved, err := s.resolve(j, o.ExplicitPriority)
	if err != nil {
		return nil, err
	}
	job, err := cloneJob(resolved)
	if err != nil {
		return nil, err
	}
	snap, now := s.Snapshot(), s.writer.Now()
	old := snap.Job(job.Key())
	changed := old == nil || old.Stopped || replication.JobHash(old) != replication.JobHash(job)
	after, err := registeredIn(snap, job, old, changed)
	if err != nil {
		return nil, apierror.New(apierror.CodeInvalid, "job %q: %v", job.ID, err)
	}
	eval := s.newEval(job, model.TriggerJobRegister)
	set := s.policies.Pin()
	defer set.Unpin()
	rules, err := rulesOf(after, set, job)
	if err != nil {
		return nil, apierror.New(apierror.CodeInvalid, "job %q cannot be planned: %v", job.ID, err)
	}
	out, err := scheduler.New(scheduler.Config{Policies: set, NewID: s.newAllocID}).Process(eval, after, now)
	if err != nil {
		return nil, apierror.New(apierror.CodeInvalid, "job %q cannot be planned: %v", job.ID, err)
	}
	p := propose(snap, after.Job(job.Key()), out)
	p.Changes.NewJob, p.Changes.NewSpec = old == nil, changed
	if old != nil {
		p.JobModifyIndex = old.ModifyIndex
	}
	if changed || !out.Plan.Empty() {
		p.Expires = time.Unix(0, now).Add(planValid)
		if !rules.mattersTo(p) {
			rules = nil
		}
		p.Token = s.sealPlan(now, p, eval, out.Plan, rules)
	}
	return p, nil
}

// cloneJob is a job that shares nothing with another.
func cloneJob(j *model.Job) (*model.Job, error) {
	clone, err := replication.DecodeJob(replication.EncodeJob(j))
	if err != nil {
		return nil, apierror.New(apierror.CodeInvalid, "job %q: %v", j.ID, err)
	}
	return clone, nil
}

// registeredIn is the state with the job registered.
func registeredIn(snap *state.Snapshot, job, old *model.Job, changed bool) (*state.Snapshot, error) {
	if !changed && snap.PreemptionHold(job.Key()) == (state.PreemptionHold{}) {
		return snap, nil
	}
	if !changed {
		fork := snap.Fork(snap.Index() + 1)
		fork.SetPreemptionHold(job.Key(), state.PreemptionHold{})
		return fork.Snapshot(), nil
	}
	if old != nil {
		job.Version, job.CreateIndex = old.Version+1, old.CreateIndex
	}
	fork := snap.Fork(snap.Index() + 1)
	if err := fork.UpsertJob(job); err != nil {
		return nil, err
	}
	fork.SetPreemptionHold(job.Key(), state.PreemptionHold{})
	return fork.Snapshot(), nil
}

// propose puts an outcome into words.
func propose(snap *state.Snapshot, job *model.Job, out *scheduler.Outcome) *Proposal {
	p := &Proposal{
		Job: job, Index: snap.Index(), Failed: out.Failed, Queued: out.Queued,
		Changes: Changes{Groups: map[string]GroupChange{}},
	}
	if out.Fault != nil {
		p.Warnings = append(p.Warnings, "nobody is evicted: "+out.Fault.Error())
	}
	for i := range out.Plan.Groups {
		p.add(snap, &out.Plan.Groups[i])
	}
	for group, n := range out.Queued {
		p.count(group, func(c *GroupChange) { c.Unplaced += n })
	}
	return p
}

func (p *Proposal) count(group string, change func(*GroupChange)) {
	c := p.Changes.Groups[group]
	change(&c)
	p.Changes.Groups[group] = c
}

// add adds what one commit group does.
func (p *Proposal) add(snap *state.Snapshot, g *model.CommitGroup) {
	places := map[string]*model.Allocation{}
	for _, a := range g.Placements {
		places[a.ID] = a
		p.Place = append(p.Place, a)
		p.count(a.Group.Name, func(c *GroupChange) { c.Place++ })
	}
	for _, a := range g.Updates {
		p.Update = append(p.Update, a)
		p.count(a.Group.Name, func(c *GroupChange) { c.Update++ })
	}
	for _, stop := range g.Stops {
		if a := snap.Alloc(stop.AllocID); a != nil {
			p.Stop = append(p.Stop, ProposedStop{Alloc: a, Reason: stop.Reason})
			p.count(a.Group.Name, func(c *GroupChange) { c.Stop++ })
		}
	}
	for _, e := range g.Evictions {
		a := snap.Alloc(e.AllocID)
		if a == nil {
			continue
		}
		p.Evict = append(p.Evict, ProposedEviction{Alloc: a, By: e.By, NodeID: a.NodeID, Policy: e.Policy})
		if by := places[e.By]; by != nil {
			p.count(by.Group.Name, func(c *GroupChange) { c.Evict++ })
		}
	}
}

// runPlan commits what a token holds, with the job, or tells what is different
// now.
func (s *Server) runPlan(ctx context.Context, entry *replication.Entry, c *replication.RegisterJob, o RegisterOptions) (*Registered, error) {
	planned, err := s.openPlan(o.Token)
	if err != nil {
		return nil, err
	}
	snap := s.Snapshot()
	// A request that was answered before is not held to a state that it changed.
	if known, ok := snap.IdempotencyRecord(entry.Key); !ok || known.Hash != entry.Hash {
		if differences := s.outdated(planned, c.Job, o.Check); len(differences) > 0 {
			return nil, differs(differences)
		}
	}
	now := s.writer.Now()
	c.Job, c.Eval, c.Check, c.Batch = planned.Job, planned.Eval, planned.Check, planned.Batch
	if planned.rules != nil && snap.Meta().Version > 1 { // else others would not understand it
		c.Rules = snap.Index()
	}
	c.Eval.CreateTime, c.Eval.ModifyTime, c.Batch.Now = now, now, now
	s.traces.Assign(ctx, c.Eval.ID)
	result, err := s.writer.ProposeEntry(ctx, entry)
	if err != nil {
		return nil, err
	}
	if result.Err != nil && result.Err.Code == replication.CodeConflict {
		differences := s.outdated(planned, c.Job, nil)
		if len(differences) == 0 {
			differences = []string{result.Err.Message}
		}
		return nil, differs(differences)
	}
	return s.registered(result, c.Job.Key()), logwriter.Refusal(result)
}

func differs(differences []string) error {
	return apierror.New(apierror.CodeConflict, "the plan no longer holds: %s", strings.Join(differences, "; ")).
		WithHint("plan again and look at the new plan").WithDetails(map[string]any{"Difference": differences})
}

// outdated lists what keeps a plan from being what was shown: it is too old, of
// another job, or rests on a state that has changed.
func (s *Server) outdated(p *shownPlan, job *model.Job, check *uint64) []string {
	var list []string
	add := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	if age := time.Duration(s.writer.Now() - p.at); age > planValid {
		add("it was made %v ago and is valid for %v", age.Round(time.Second), planValid)
	}
	if p.Job.Key() != job.Key() || replication.JobHash(p.Job) != replication.JobHash(job) {
		add("it is of another specification of job %s", p.Job.Key())
	}
	snap := s.Snapshot()
	var index uint64
	if now := snap.Job(p.Job.Key()); now != nil {
		index = now.ModifyIndex
	}
	switch {
	case index != *p.Check:
		add("the job changed: it is at index %d, and was planned at %d", index, *p.Check)
	case check != nil && *check != index:
		add("the job is at index %d, not at %d", index, *check)
	}
	list = append(list, s.otherRules(snap, p)...)
	return append(list, s.noLongerHolds(snap, p.RegisterJob)...)
}
