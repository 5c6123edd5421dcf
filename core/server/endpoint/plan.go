package endpoint

import (
	"context"
	"fmt"
	"time"

	"github.com/cede-scheduler/cede/core/lookahead"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/replication/codec"
	"github.com/cede-scheduler/cede/core/scheduler"
	"github.com/cede-scheduler/cede/core/server/admission"
	"github.com/cede-scheduler/cede/core/server/apierror"
	"github.com/cede-scheduler/cede/core/server/evalqueue"
	"github.com/cede-scheduler/cede/core/server/logwriter"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/state/apply"
)

// planTTL is how long the token of a plan is valid.
const planTTL = 15 * time.Minute

// PlanOptions are options of a dry run.
type PlanOptions struct {
	ExplicitPriority bool // as in RegisterOptions
}

// A Proposal is the effect that registering a job would have now.
type Proposal struct {
	// Token commits exactly this; "" if there is nothing to commit.
	Token          string
	Job            *model.Job // as it would be stored
	Index          uint64     // of the state that it was planned on
	JobModifyIndex uint64     // 0: the job is new
	Place          []*model.Allocation
	Update         []*model.Allocation // in place
	Stop           []ProposedStop
	Evict          []ProposedEviction
	Move           []*model.Allocation           // new allocations of instances of other jobs, which would be moved
	Failed         map[string]*model.Explanation // by group
	Queued         map[string]int                // instances that could not be placed, by group
	Changes        Changes
	Warnings       []string
	Expires        time.Time // of Token
}

// ProposedStop is an allocation of the job that would be stopped.
type ProposedStop struct {
	Alloc  *model.Allocation
	Reason string
}

// ProposedEviction is an allocation of another job that would be evicted.
type ProposedEviction struct {
	Alloc  *model.Allocation
	By     string // the allocation that would be placed instead
	NodeID string
	Policy string // version that chose it
}

// Changes summarizes a proposal.
type Changes struct {
	NewJob  bool
	NewSpec bool // the specification differs from the stored one
	Groups  map[string]GroupChange
}

// GroupChange counts instances of a group. An instance that is stopped and placed again counts
// as Replace only. Keep counts those that are neither changed nor stopped.
type GroupChange struct {
	Place, Keep, Update, Replace, Stop, Evict, Unplaced int
}

// jobPlanner plans jobs without writing anything.
type jobPlanner struct {
	writer     *logwriter.Writer
	policies   scheduler.Policies
	evals      evalqueue.Factory
	newAllocID func(*model.Group, int, int) string
	key        planKey
	limits     *admission.Checker
}

// PlanJob returns the effect of registering a job, and changes nothing. Registering the
// job with the token of the proposal does exactly that.
func (e *Jobs) PlanJob(_ context.Context, j *model.Job, o PlanOptions) (*Proposal, error) {
	return e.plans.plan(j, o)
}

func (p *jobPlanner) plan(j *model.Job, o PlanOptions) (*Proposal, error) {
	resolved, err := p.resolve(j, originOfPriority(o.ExplicitPriority), false)
	if err != nil {
		return nil, err
	}
	job, err := cloneJob(resolved)
	if err != nil {
		return nil, err
	}
	snap, now := p.writer.Snapshot(), p.writer.Now()
	old := snap.Job(job.Key())
	changed := specChanged(old, job)
	after, err := withJob(snap, job, old, changed)
	if err != nil {
		return nil, apierror.New(apierror.CodeInvalid, "job %q: %v", job.ID, err)
	}
	eval := p.evals.ForJob(job, model.TriggerJobRegister)
	set := p.policies.Pin()
	defer set.Unpin()
	rules, err := rulesFor(after, set, job)
	if err != nil {
		return nil, apierror.New(apierror.CodeInvalid, "cannot plan job %q: %v", job.ID, err)
	}
	out, err := lookahead.NewScheduler(scheduler.Config{Policies: set, NewID: p.newAllocID, Explain: true}).Process(eval, after, now)
	if err != nil {
		return nil, apierror.New(apierror.CodeInvalid, "cannot plan job %q: %v", job.ID, err)
	}
	out.Plan.SnapshotIndex = snap.Index() // the state with the job does not exist
	proposal := newProposal(snap, after.Job(job.Key()), out)
	proposal.Warnings = append(proposal.Warnings, namespaceWarnings(snap, job.Namespace)...)
	proposal.Warnings = append(proposal.Warnings, doneWarnings(snap, after.Job(job.Key()))...)
	proposal.Changes.NewJob, proposal.Changes.NewSpec = old == nil, changed
	if old != nil {
		proposal.JobModifyIndex = old.ModifyIndex
	}
	if changed || !out.Plan.Empty() {
		proposal.Expires = time.Unix(0, now).Add(planTTL)
		if !proposal.dependsOnRules() {
			rules = nil
		}
		proposal.Token = p.key.seal(now, proposal, eval, out.Plan, rules)
	}
	return proposal, nil
}

// specChanged reports whether registering a job changes its specification or starts it
// again.
func specChanged(old, job *model.Job) bool {
	return old == nil || old.Stopped || codec.JobHash(old) != codec.JobHash(job)
}

// cloneJob returns a deep copy of a job.
func cloneJob(j *model.Job) (*model.Job, error) {
	clone, err := codec.DecodeJob(codec.EncodeJob(j))
	if err != nil {
		return nil, apierror.New(apierror.CodeInvalid, "job %q: %v", j.ID, err)
	}
	return clone, nil
}

// withJob returns the state as registering the job would leave it.
func withJob(snap *state.Snapshot, job, old *model.Job, changed bool) (*state.Snapshot, error) {
	if !changed && snap.PreemptionHold(job.Key()) == (state.PreemptionHold{}) {
		return snap, nil
	}
	if !changed {
		fork := snap.Fork(snap.Index() + 1)
		fork.JobWriter().SetPreemptionHold(job.Key(), state.PreemptionHold{})
		return fork.Snapshot(), nil
	}
	if old != nil {
		apply.NextVersion(&snap.View, old, job, job.SubmitTime)
		job.CreateIndex = old.CreateIndex
	}
	fork := snap.Fork(snap.Index() + 1)
	if err := fork.JobWriter().Upsert(job); err != nil {
		return nil, err
	}
	fork.JobWriter().SetPreemptionHold(job.Key(), state.PreemptionHold{})
	return fork.Snapshot(), nil
}

// newProposal returns the proposal of an outcome.
func newProposal(snap *state.Snapshot, job *model.Job, out *scheduler.Outcome) *Proposal {
	p := &Proposal{
		Job: job, Index: snap.Index(), Failed: out.Failed, Queued: out.Queued,
		Changes: Changes{Groups: map[string]GroupChange{}},
	}
	if out.Fault != nil {
		p.Warnings = append(p.Warnings, "nothing is evicted: "+out.Fault.Error())
	}
	for i := range out.Plan.Groups {
		p.addGroup(snap, &out.Plan.Groups[i])
	}
	for group, n := range out.Queued {
		p.count(group, func(c *GroupChange) { c.Unplaced += n })
	}
	p.countKept(snap)
	p.countReplaced()
	return p
}

// countKept counts the live instances that the proposal leaves as they are.
func (p *Proposal) countKept(snap *state.Snapshot) {
	changed := map[string]bool{}
	for _, a := range p.Update {
		changed[a.ID] = true
	}
	for _, s := range p.Stop {
		changed[s.Alloc.ID] = true
	}
	for _, a := range snap.AppendJobAllocs(nil, p.Job.Key()) {
		if a.Live() && !changed[a.ID] {
			p.count(a.Group.Name, func(c *GroupChange) { c.Keep++ })
		}
	}
}

// countReplaced counts each instance that is stopped and placed again once.
func (p *Proposal) countReplaced() {
	type instance struct {
		group string
		index int
	}
	placed := map[instance]bool{}
	for _, a := range p.Place {
		placed[instance{a.Group.Name, a.Index}] = true
	}
	for _, s := range p.Stop {
		if at := (instance{s.Alloc.Group.Name, s.Alloc.Index}); placed[at] {
			delete(placed, at)
			p.count(at.group, func(c *GroupChange) { c.Place, c.Stop, c.Replace = c.Place-1, c.Stop-1, c.Replace+1 })
		}
	}
}

func (p *Proposal) count(group string, change func(*GroupChange)) {
	c := p.Changes.Groups[group]
	change(&c)
	p.Changes.Groups[group] = c
}

// addGroup adds the changes of one commit group.
func (p *Proposal) addGroup(snap *state.Snapshot, g *model.CommitGroup) {
	placements := map[string]*model.Allocation{}
	for _, a := range g.Placements {
		if a.MovedFrom != "" {
			p.Move = append(p.Move, a)
			continue
		}
		placements[a.ID] = a
		p.Place = append(p.Place, a)
		p.count(a.Group.Name, func(c *GroupChange) { c.Place++ })
	}
	for _, a := range g.Updates {
		p.Update = append(p.Update, a)
		p.count(a.Group.Name, func(c *GroupChange) { c.Update++ })
	}
	for _, stop := range g.Stops {
		if a := snap.Alloc(stop.AllocID); a != nil && stop.MovedTo == "" {
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
		if by := placements[e.By]; by != nil {
			p.count(by.Group.Name, func(c *GroupChange) { c.Evict++ })
		}
	}
}

// dependsOnRules reports whether other policies could have led to another plan. A plan
// that places everything without evictions called no policy.
func (p *Proposal) dependsOnRules() bool { return len(p.Evict)+len(p.Failed) > 0 }

// commitPlan commits the plan in a token together with the job, or returns a conflict
// that lists the differences to the current state.
func (e *Jobs) commitPlan(ctx context.Context, entry *replication.Entry, c *replication.RegisterJob, o RegisterOptions) (*Registered, error) {
	planned, err := e.plans.key.open(o.Token)
	if err != nil {
		return nil, err
	}
	snap := e.writer.Snapshot()
	if differences := e.plans.differences(planned, c.Job, o.Check); len(differences) > 0 {
		return nil, planConflict(differences)
	}
	now := e.writer.Now()
	c.Job, c.Eval, c.Check, c.Batch = planned.Job, planned.Eval, planned.Check, planned.Batch
	if planned.rules != nil && snap.Meta().Version > 1 { // servers at version 1 do not understand Rules
		c.Rules = snap.Index()
	}
	c.Eval.CreateTime, c.Eval.ModifyTime, c.Batch.Now = now, now, now
	warnings, err := registrationWarnings(snap, c.Job)
	if err != nil {
		return nil, err
	}
	e.traces.Assign(ctx, c.Eval.ID)
	result, err := e.writer.ProposeEntry(ctx, entry)
	if err != nil {
		return nil, err
	}
	if result.Err != nil && result.Err.Code == replication.CodeConflict {
		differences := e.plans.differences(planned, c.Job, nil)
		if len(differences) == 0 {
			differences = []string{result.Err.Message}
		}
		return nil, planConflict(differences)
	}
	answer := registered(result, c.Job.Key())
	answer.Warnings = warnings
	return answer, logwriter.Refusal(result)
}

// differences returns the reasons for which a plan may not be committed: it has
// expired, belongs to another job, or depends on a state that has changed.
func (p *jobPlanner) differences(plan *sealedPlan, job *model.Job, check *uint64) []string {
	var list []string
	add := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	if age := time.Duration(p.writer.Now() - plan.at); age > planTTL {
		add("it was made %v ago and is valid for %v", age.Round(time.Second), planTTL)
	}
	if plan.Job.Key() != job.Key() || codec.JobHash(plan.Job) != codec.JobHash(job) {
		add("it was made for another specification of job %s", plan.Job.Key())
	}
	snap := p.writer.Snapshot()
	var index uint64
	if now := snap.Job(plan.Job.Key()); now != nil {
		index = now.ModifyIndex
	}
	switch {
	case index != *plan.Check:
		add("the job changed: it is at index %d, and was planned at %d", index, *plan.Check)
	case check != nil && *check != index:
		add("the job is at index %d, not at %d", index, *check)
	}
	list = append(list, p.ruleDifferences(snap, plan)...)
	return append(list, p.rejections(snap, plan.RegisterJob)...)
}
