package fsm

import (
	"slices"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/state/apply"
)

// startTrial starts a trial with blocks: the active version is the baseline, and the
// first block begins with this entry. Both versions must be usable.
func startTrial(txn *state.Txn, now int64, s *model.PolicyState, c *replication.ChangePolicy) *replication.Refusal {
	if r := checkUsable(&txn.View, s, c); r != nil {
		return r
	}
	switch p := c.Trial; {
	case p == nil || p.Block < model.MinTrialBlock || p.Washout < 0 || p.Washout >= p.Block:
		return replication.Refuse(replication.CodeInvalid, "trial of policy %s: blocks of at least %d ns that are longer than their washout are required", c.Name, model.MinTrialBlock)
	case c.Until <= now || (c.Until-now)/p.Block > model.MaxTrialBlocks:
		return replication.Refuse(replication.CodeInvalid, "trial of policy %s: at least one block and at most %d are required", c.Name, model.MaxTrialBlocks)
	case s.Active == "":
		return replication.Refuse(replication.CodeConflict, "policy %s has no active version to compare with", c.Name)
	case s.Until != 0:
		return replication.Refuse(replication.CodeConflict, "policy %s has a trial in progress; roll back to end it", c.Name)
	case s.Active == c.Version:
		return replication.Refuse(replication.CodeConflict, "version %s of policy %s is active: it cannot be compared with itself", c.Version, c.Name)
	case s.Shadow != "":
		return replication.Refuse(replication.CodeConflict, "policy %s has a shadow run, and a trial uses the shadow for the other version", c.Name)
	}
	t := &model.PolicyTrial{
		Name: c.Name, Baseline: s.Active, Candidate: c.Version, Plan: *c.Trial, Start: now, Until: c.Until, Actor: c.Actor,
		Current: model.TrialBlock{Start: now, Candidate: c.Trial.CandidateDecides(0)},
	}
	resetShadow(txn.PolicyWriter(), t.Baseline)
	resetShadow(txn.PolicyWriter(), t.Candidate)
	s.Until = c.Until
	setArms(s, t)
	txn.PolicyWriter().UpsertTrial(t)
	return nil
}

// changeBlocks starts a trial with blocks, or its next block.
func changeBlocks(txn *state.Txn, now int64, s *model.PolicyState, c *replication.ChangePolicy) *replication.Refusal {
	switch {
	case txn.Meta().Version < trialsFrom:
		return replication.Refuse(replication.CodeConflict, "trials with blocks require version %d of the cluster", trialsFrom)
	case c.Op == replication.OpTrial:
		return startTrial(txn, now, s, c)
	}
	return nextBlock(txn, now, s, c)
}

// setArms gives the version of the current block the active role. The other one is its
// shadow, so that its decisions on the same requests are known.
func setArms(s *model.PolicyState, t *model.PolicyTrial) {
	active, other := t.Decides()
	s.Active, s.Previous, s.Shadow = active, other, other
}

// nextBlock ends a block of a trial and starts the next one. The end of the block in the
// command identifies it, so that two leaders do not end two blocks. The block starts with
// this entry: if no server led for some time, the block before it was longer, but is
// measured until its planned end only.
func nextBlock(txn *state.Txn, now int64, s *model.PolicyState, c *replication.ChangePolicy) *replication.Refusal {
	t := txn.PolicyTrial(c.Name)
	switch {
	case !t.Running() || t.BlockEnd() != c.Until:
		return replication.Refuse(replication.CodeConflict, "the block of the trial of policy %s has ended", c.Name)
	case len(t.Blocks) >= model.MaxTrialBlocks:
		return replication.Refuse(replication.CodeConflict, "the trial of policy %s has %d blocks", c.Name, len(t.Blocks))
	}
	next := *t
	next.Blocks = append(slices.Clip(t.Blocks), t.Current)
	next.Current = model.TrialBlock{Start: now, Candidate: t.Plan.CandidateDecides(len(next.Blocks))}
	setArms(s, &next)
	txn.PolicyWriter().UpsertTrial(&next)
	return nil
}

// resetShadow clears the sums of a version before another shadow run.
func resetShadow(policies state.PolicyWriter, version string) {
	if v := policies.PolicyVersion(version); v != nil && v.Shadow != (model.ShadowSums{}) {
		next := *v
		next.Shadow = model.ShadowSums{}
		policies.UpsertVersion(&next)
	}
}

// reportShadow adds comparisons of one server to the sums of a version.
func reportShadow(policies state.PolicyWriter, c *replication.ReportShadow) *replication.Refusal {
	if policies.PolicyVersion(c.Version) == nil {
		return replication.Refuse(replication.CodeNotFound, "policy version %s not found", c.Version)
	}
	policies.AddToShadow(c.Version, &c.Sums)
	return nil
}

// checkTrial refuses an operation that a trial with blocks does not permit. An activation
// for a limited time is one: it would leave the trial in progress, with another end and
// versions that the next block replaces.
func checkTrial(t *model.PolicyTrial, c *replication.ChangePolicy) *replication.Refusal {
	switch {
	case !t.Running():
		return nil
	case c.Op == replication.OpShadow || c.Op == replication.OpUnshadow:
		return replication.Refuse(replication.CodeConflict, "policy %s has a trial, which uses the shadow for the other version", c.Name)
	case c.Op == replication.OpActivate && c.Until != 0:
		return replication.Refuse(replication.CodeConflict, "policy %s has a trial in progress; roll back to end it, or activate a version without a time limit", c.Name)
	}
	return nil
}

// restoreRoles gives the versions of a trial the roles that an operation which may end it
// assumes, whichever of them decides at present. A rollback finds the candidate active, and
// activates the baseline; an activation finds the baseline active, so that it is the
// version to roll back to.
func restoreRoles(t *model.PolicyTrial, s *model.PolicyState, op replication.PolicyOp) {
	if !t.Running() {
		return
	}
	switch op {
	case replication.OpRollback:
		s.Active, s.Previous = t.Candidate, t.Baseline
	case replication.OpActivate:
		s.Active, s.Previous = t.Baseline, t.Candidate
	}
}

// endTrial ends the trial of a policy if an operation ended it: it was decided, replaced,
// or one of its versions is gone.
func endTrial(txn *state.Txn, s *model.PolicyState) {
	t := txn.PolicyTrial(s.Name)
	if !t.Running() || s.Until != 0 {
		return
	}
	next := *t
	next.End = s.LastTrial
	if t.Concerns(s.Shadow) {
		s.Shadow = ""
	}
	txn.PolicyWriter().UpsertTrial(&next)
}

// A trialVictim is an allocation that a plan may evict, under a policy with a trial.
type trialVictim struct {
	policy   string
	alloc    *model.Allocation
	by       string // what evicts it
	violates bool   // a disruption budget
}

// measuredPolicies returns the policies whose trials measure this entry. It is empty on nearly
// all clusters.
func measuredPolicies(txn *state.Txn, now int64) (names []string) {
	for _, t := range txn.PolicyTrials() {
		if t.Measures(now) {
			names = append(names, t.Name)
		}
	}
	return names
}

// trialVictims returns the victims of a batch under the policies, before it is applied.
func trialVictims(txn *state.Txn, now int64, b *apply.Batch, policies []string) (list []trialVictim) {
	charged := map[int32]int{}
	for p := range b.Plans {
		plan := b.Plans[p].Plan
		policy := txn.Config().PolicyOf(txn.Job(plan.Job))
		if !slices.Contains(policies, policy) {
			continue
		}
		for _, i := range b.Plans[p].Groups {
			for _, e := range plan.Groups[i].Evictions {
				if victim := txn.Alloc(e.AllocID); victim != nil && victim.Live() {
					list = append(list, trialVictim{policy, victim, e.By, txn.OverrunsBudget(victim, now, charged)})
				}
			}
		}
	}
	return list
}

// applyMeasured applies a batch, and adds its effects to the trials in progress.
func applyMeasured(txn *state.Txn, now int64, b *apply.Batch) ([]*model.Evaluation, []apply.DroppedGroup) {
	policies := measuredPolicies(txn, now)
	if len(policies) == 0 {
		return b.Apply(txn)
	}
	victims := trialVictims(txn, now, b, policies)
	evals, dropped := b.Apply(txn)
	for _, v := range victims {
		// An eviction takes effect unless its commit group was dropped.
		if after := txn.Alloc(v.alloc.ID); after != nil && after.Desired == model.DesiredEvict && after.PreemptedBy == v.by {
			txn.PolicyWriter().AddToTrial(v.policy, func(s *model.PolicySums) { s.AddVictim(v.alloc, now, v.violates) })
		}
	}
	for p := range b.Plans {
		plan := b.Plans[p].Plan
		if policy := txn.Config().PolicyOf(txn.Job(plan.Job)); slices.Contains(policies, policy) {
			addPlacements(txn, now, policy, &b.Plans[p])
		}
	}
	return evals, dropped
}

// addArrival adds the capacity that a new version of a job requests to a trial.
func addArrival(txn *state.Txn, now int64, j *model.Job) {
	policy := txn.Config().PolicyOf(j)
	if !txn.PolicyTrial(policy).Running() || !txn.PolicyTrial(policy).Measures(now) {
		return
	}
	arrived := int64(0)
	for _, g := range j.Groups {
		if len(g.Ask.Vec) > model.CPU {
			arrived += int64(g.Count) * g.Ask.Vec[model.CPU]
		}
	}
	txn.PolicyWriter().AddToTrial(policy, func(s *model.PolicySums) { s.Arrived += arrived })
}

// addPlacements adds the placements of a plan that took effect to a trial.
func addPlacements(txn *state.Txn, now int64, policy string, p *apply.BatchPlan) {
	placed := int64(0)
	for _, i := range p.Groups {
		for _, alloc := range p.Plan.Groups[i].Placements {
			if stored := txn.Alloc(alloc.ID); stored != nil && stored.CreateIndex == txn.Index() {
				placed++
			}
		}
	}
	if placed == 0 {
		return
	}
	waited := int64(0)
	if e := txn.Eval(p.Plan.EvalID); e != nil {
		waited = max(0, now-e.CreateTime)
	}
	txn.PolicyWriter().AddToTrial(policy, func(s *model.PolicySums) {
		s.Placed += placed
		s.Waited += placed * waited
	})
}
