// Package whatif makes recorded decisions to evict again: with the state, the time and the
// policies of then, to find the changes that would have spared a victim.
//
// It never changes the state, and leaves no trace on the policies that decide. The API calls
// it. An Examiner is safe for concurrent use; it computes one answer at a time, because an
// earlier state takes as much memory as the current one.
package whatif

import (
	"context"
	"errors"
	"slices"

	"github.com/cede-scheduler/cede/core/counterfactual"
	"github.com/cede-scheduler/cede/core/events"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/server/apierror"
	"github.com/cede-scheduler/cede/core/server/eventsink"
	"github.com/cede-scheduler/cede/core/state"
)

// States returns earlier states: *raftnode.Node.
type States interface {
	StateAt(ctx context.Context, index uint64) (*state.Snapshot, error)
}

// Policies returns copies of the policies of earlier states: policymgr.Past.
type Policies interface {
	CopyOf(snap *state.Snapshot) (*policy.Set, error)
}

// An Examiner makes decisions again. Make it with New.
type Examiner struct {
	states   States
	policies Policies
	slot     chan struct{} // held while an answer is computed
}

// New returns an Examiner.
func New(states States, policies Policies) *Examiner {
	return &Examiner{states: states, policies: policies, slot: make(chan struct{}, 1)}
}

// WhatIf returns the smallest changes that would have spared a victim of a decision.
func (e *Examiner) WhatIf(ctx context.Context, d *eventsink.Decision, victimID string) (*counterfactual.Answer, error) {
	if !slices.ContainsFunc(d.Victims, func(v events.Victim) bool { return v.AllocID == victimID }) {
		return nil, apierror.New(apierror.CodeInvalid, "%s is not a victim of the decision", victimID)
	}
	var answer *counterfactual.Answer
	err := e.reproduce(ctx, d, func(x *counterfactual.Explorer) (err error) {
		answer, err = x.Ask(ctx, victimID, d.Group)
		return err
	})
	return answer, err
}

// reproduce makes a decision again and calls f with it, unless it has another result than
// recorded.
func (e *Examiner) reproduce(ctx context.Context, d *eventsink.Decision, f func(*counterfactual.Explorer) error) error {
	select {
	case e.slot <- struct{}{}:
		defer func() { <-e.slot }()
	case <-ctx.Done():
		return apierror.Interrupted(ctx.Err())
	}
	c, err := e.caseOf(ctx, d)
	if err != nil {
		return err
	}
	defer c.Policies.Unpin()
	x, err := counterfactual.New(ctx, *c)
	if err == nil && !x.Reproduces(evictions(d)) {
		return notReproduced(d, c.Policies)
	}
	if err == nil {
		err = f(x)
	}
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return apierror.Interrupted(ctx.Err())
	case errors.Is(err, counterfactual.ErrNotReproduced):
		return notReproduced(d, c.Policies)
	}
	return apierror.New(apierror.CodeConflict, "cannot make the decision again: %v", err).WithCause(err)
}

// caseOf returns the inputs of a decision. The caller must unpin its policies.
func (e *Examiner) caseOf(ctx context.Context, d *eventsink.Decision) (*counterfactual.Case, error) {
	if d.PlannedOn == 0 {
		return nil, apierror.New(apierror.CodeConflict, "the decision was recorded by an older release, without the state that it was planned on")
	}
	snap, eval, err := e.inputs(ctx, d)
	if err != nil {
		return nil, err
	}
	policies, err := e.policies.CopyOf(snap)
	if err != nil {
		return nil, apierror.New(apierror.CodeConflict, "cannot start the policies of the decision: %v", err).WithCause(err)
	}
	return &counterfactual.Case{Eval: eval, Snap: snap, Now: d.PlannedAt, Policies: policies}, nil
}

// evictions returns the victims of a record. Its version selected all of them.
func evictions(d *eventsink.Decision) []counterfactual.Eviction {
	list := make([]counterfactual.Eviction, len(d.Victims))
	for i := range d.Victims {
		list[i] = counterfactual.Eviction{ID: d.Victims[i].AllocID, Version: d.PolicyVersion}
	}
	return list
}

// notReproduced returns the error of a decision that has another result now.
func notReproduced(d *eventsink.Decision, policies *policy.Set) error {
	err := apierror.New(apierror.CodeConflict, "the decision cannot be reproduced on this server: made again, it evicts others")
	if !slices.ContainsFunc(policies.Versions(), func(v *policy.Version) bool { return v.ID == d.PolicyVersion }) {
		return err.WithHint("version %s of the policy that decided is not loaded here", d.PolicyVersion)
	}
	return err.WithHint("the policy was at fault then, or the server that decided runs another release")
}
