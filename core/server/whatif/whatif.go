// Package whatif makes recorded decisions to evict again: with the state, the time and the
// policies of then, to find the changes that would have spared a victim, and to certify the
// decision.
//
// It never changes the state, and leaves no trace on the policies that decide. The API calls
// it. An Examiner is safe for concurrent use; it computes one answer at a time, because an
// earlier state takes as much memory as the current one.
package whatif

import (
	"context"
	"crypto/ed25519"
	"errors"
	"slices"
	"time"

	"github.com/cede-scheduler/cede/core/certificate"
	"github.com/cede-scheduler/cede/core/clock"
	"github.com/cede-scheduler/cede/core/counterfactual"
	"github.com/cede-scheduler/cede/core/events"
	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/server/apierror"
	"github.com/cede-scheduler/cede/core/server/eventsink"
	"github.com/cede-scheduler/cede/core/state"
)

// States returns earlier states: *raftnode.Node.
type States interface {
	StateAt(ctx context.Context, index uint64) (*state.Snapshot, error)
}

// Policies returns copies of the policies of earlier states, and their modules:
// policymgr.Past.
type Policies interface {
	CopyOf(snap *state.Snapshot, wrap func(*policy.Version, policy.Module) policy.Module) (*policy.Set, error)
	Module(v *model.PolicyVersion) ([]byte, error)
}

// A Signer identifies this server in certificates.
type Signer struct {
	ServerID, Release string
	Key               ed25519.PrivateKey // nil: this server writes no certificates
}

// An Examiner makes decisions again. Make it with New.
type Examiner struct {
	states   States
	policies Policies
	signer   Signer
	clock    clock.Clock
	slot     chan struct{} // held while an answer is computed
	queue    chan struct{} // held by each request, until it is answered
	forecast lastForecast
}

const (
	maxWaiting = 8               // requests that wait for the one that is answered
	timeout    = 2 * time.Minute // of a request, with its wait
)

// New returns an Examiner.
func New(states States, policies Policies, signer Signer, c clock.Clock) *Examiner {
	return &Examiner{states: states, policies: policies, signer: signer, clock: c, slot: make(chan struct{}, 1), queue: make(chan struct{}, 1+maxWaiting)}
}

// WhatIf returns the smallest changes that would have spared a victim of a decision.
func (e *Examiner) WhatIf(ctx context.Context, d *eventsink.Decision, victimID string) (*counterfactual.Answer, error) {
	if !slices.ContainsFunc(d.Victims, func(v events.Victim) bool { return v.AllocID == victimID }) {
		return nil, apierror.New(apierror.CodeInvalid, "%s is not a victim of the decision", victimID)
	}
	var answer *counterfactual.Answer
	err := e.reproduce(ctx, d, nil, func(ctx context.Context, _ *counterfactual.Case, x *counterfactual.Explorer) (err error) {
		answer, err = x.Ask(ctx, victimID, d.Group)
		return err
	})
	return answer, err
}

// reproduce makes a decision again and calls f with it, unless it has another result than
// recorded. log records the calls of policies; nil: they are not recorded.
func (e *Examiner) reproduce(ctx context.Context, d *eventsink.Decision, log *certificate.Log, f func(context.Context, *counterfactual.Case, *counterfactual.Explorer) error) error {
	ctx, release, err := e.acquire(ctx)
	if err != nil {
		return err
	}
	defer release()
	c, err := e.caseOf(ctx, d, log)
	if err != nil {
		return err
	}
	defer unpin(c)
	x, err := counterfactual.New(ctx, *c)
	if err == nil && !x.Reproduces(evictions(d)) {
		return notReproduced(d, c.Policies)
	}
	if err == nil {
		err = f(ctx, c, x)
	}
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return apierror.Interrupted(ctx.Err())
	case errors.Is(err, counterfactual.ErrNotReproduced):
		return notReproduced(d, c.Policies)
	}
	if _, ok := errors.AsType[*apierror.Error](err); ok {
		return err
	}
	return apierror.New(apierror.CodeConflict, "cannot make the decision again: %v", err).WithCause(err)
}

// acquire waits until no other answer is computed, and returns the context in which to compute
// one. It fails at once if too many requests wait.
func (e *Examiner) acquire(ctx context.Context) (_ context.Context, release func(), err error) {
	select {
	case e.queue <- struct{}{}:
	default:
		return nil, nil, apierror.New(apierror.CodeUnavailable, "%d requests to make decisions again are waiting already", maxWaiting).
			WithHint("the server is busy: try again in a moment")
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	select {
	case e.slot <- struct{}{}:
		return ctx, func() { cancel(); <-e.slot; <-e.queue }, nil
	case <-ctx.Done():
		cancel()
		<-e.queue
		return nil, nil, apierror.Interrupted(ctx.Err())
	}
}

// caseOf returns the inputs of a decision. The caller must unpin its policies.
func (e *Examiner) caseOf(ctx context.Context, d *eventsink.Decision, log *certificate.Log) (*counterfactual.Case, error) {
	if d.PlannedOn == 0 {
		return nil, apierror.New(apierror.CodeConflict, "the decision was recorded by an older release, without the state that it was planned on")
	}
	snap, eval, err := e.inputs(ctx, d)
	if err != nil {
		return nil, err
	}
	c := &counterfactual.Case{Eval: eval, Snap: snap, Now: d.PlannedAt}
	if c.Policies, err = e.policies.CopyOf(snap, nil); err == nil && log != nil {
		// Look-ahead calls policies about states that were only played. Its results are
		// in the frames of the recorded calls.
		c.Plays = c.Policies
		if c.Policies, err = e.policies.CopyOf(snap, log.Record); err != nil {
			c.Plays.Unpin()
		}
	}
	if err != nil {
		return nil, apierror.New(apierror.CodeConflict, "cannot start the policies of the decision: %v", err).WithCause(err)
	}
	if name := unloaded(snap, c.Policies, d.PolicyVersion); name != "" {
		unpin(c)
		return nil, apierror.New(apierror.CodeConflict, "cannot make the decision again: version %s of policy %s, which made it, was unloaded", model.ShortVersion(d.PolicyVersion), name).
			WithHint("load it again, with the same module and settings: cede policy load --name %s", name)
	}
	return c, nil
}

// unloaded returns the name of the policy of which a version was active in a state, if the
// version is not among the policies of now; "" otherwise.
func unloaded(snap *state.Snapshot, now *policy.Set, version string) string {
	if slices.ContainsFunc(now.Versions(), func(v *policy.Version) bool { return v.ID == version }) {
		return ""
	}
	for _, s := range snap.PolicyStates() {
		if s.Active == version {
			return s.Name
		}
	}
	return ""
}

// unpin returns the policies of a case.
func unpin(c *counterfactual.Case) {
	c.Policies.Unpin()
	if c.Plays != nil {
		c.Plays.Unpin()
	}
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
