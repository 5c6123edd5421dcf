package server

import (
	"errors"
	"slices"
	"time"

	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/scheduler"
)

// PolicyDecision records that a policy was asked about an evaluation, by one
// worker of this server.
type PolicyDecision struct {
	Time      int64  // Unix nanoseconds that the decision was made with
	Index     uint64 // of the snapshot that it was made on
	EvalID    string
	Namespace string
	JobID     string
	// Policy, Version and Digest are what decides for the job; Uses what was asked,
	// default among them where the policy leaves something open to it.
	Policy, Version, Digest string
	Uses                    []PolicyUse
	Victims                 []string // allocation ids, ascending
	Fault                   string   // "" where there was none
}

// PolicyUse adds up the calls of one hook of one version in a decision.
type PolicyUse struct {
	Policy, Version, Digest, Hook string
	Calls, Options, Rows          int
	Fuel                          uint64 // 0 where nobody counts
	Duration                      time.Duration
}

// PolicyUses adds up the calls that an outcome took, by version and hook in the
// order of the first call.
func PolicyUses(calls []policy.Call) []PolicyUse {
	var uses []PolicyUse
	for i := range calls {
		c := &calls[i]
		at := slices.IndexFunc(uses, func(u PolicyUse) bool {
			return u.Version == c.Version && u.Policy == c.Policy && u.Hook == c.Hook
		})
		if at < 0 {
			at = len(uses)
			uses = append(uses, PolicyUse{Policy: c.Policy, Version: c.Version, Digest: c.Digest, Hook: c.Hook})
		}
		u := &uses[at]
		u.Calls++
		u.Options += c.Options
		u.Rows += c.Rows
		u.Fuel += c.Fuel
		u.Duration += c.Duration
	}
	return uses
}

// decided is told of every outcome of every worker, on the worker's goroutine:
// it counts, and leaves the rest to others.
func (p *policies) decided(d scheduler.Decision) {
	out := d.Outcome
	p.metrics.count(out)
	if out.Fault != nil {
		p.faulted(d)
	}
	if len(out.Calls) == 0 {
		return // no policy had a say
	}
	record := decisionOf(d)
	p.records.decision(record)
	p.shadows.offer(d, record)
}

func decisionOf(d scheduler.Decision) *PolicyDecision {
	out := d.Outcome
	r := &PolicyDecision{
		Time: out.Plan.Now, Index: d.Snap.Index(), EvalID: d.Eval.ID, Namespace: d.Eval.Namespace, JobID: d.Eval.JobID,
		Uses: PolicyUses(out.Calls), Victims: victimsOf(out),
	}
	if v := out.Version; v != nil {
		r.Policy, r.Version, r.Digest = v.Name, v.ID, v.Digest
	}
	if out.Fault != nil {
		r.Fault = out.Fault.Error()
	}
	return r
}

// victimsOf is the allocations that an outcome evicts, ascending.
func victimsOf(out *scheduler.Outcome) []string {
	var victims []string
	for i := range out.Plan.Groups {
		for _, e := range out.Plan.Groups[i].Evictions {
			victims = append(victims, e.AllocID)
		}
	}
	slices.Sort(victims)
	return victims
}

// faulted has a version taken out of service whose faults have opened its
// breaker.
func (p *policies) faulted(d scheduler.Decision) {
	fault, ok := errors.AsType[*policy.Error](d.Outcome.Fault)
	if !ok {
		return
	}
	p.mu.Lock()
	v := p.opened[fault.Version]
	p.mu.Unlock()
	if v == nil || v.Breaker.OpenError(d.Outcome.Plan.Now) == nil || !p.worthTripping(v) {
		return
	}
	select {
	case p.trips <- trip{v.Name, v.ID, fault.Error()}:
	default: // it is on its way, for others or for this one; the next fault tells again
	}
}
