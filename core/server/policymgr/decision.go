package policymgr

import (
	"errors"
	"slices"
	"time"

	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/scheduler"
)

// A Decision records the calls of policies for one evaluation, by a worker of this
// server.
type Decision struct {
	Time      int64  // of the plan, in Unix nanoseconds
	Index     uint64 // of the snapshot that was planned on
	EvalID    string
	Namespace string
	JobID     string
	// Policy, Version and Digest identify the policy that decides for the job. Uses are the
	// versions that were called, which include default if the policy leaves a hook to it.
	Policy, Version, Digest string
	Uses                    []Use
	Victims                 []string // allocation IDs, ascending
	Fault                   string   // "" if there was none
}

// Use sums up the calls of one hook of one version for a decision.
type Use struct {
	Policy, Version, Digest, Hook string
	Calls, Options, Rows          int
	Fuel                          uint64 // 0 if fuel is not metered
	Duration                      time.Duration
}

// Uses sums up calls by version and hook, in the order of the first call.
func Uses(calls []policy.Call) []Use {
	var uses []Use
	for i := range calls {
		c := &calls[i]
		at := slices.IndexFunc(uses, func(u Use) bool {
			return u.Version == c.Version && u.Policy == c.Policy && u.Hook == c.Hook
		})
		if at < 0 {
			at = len(uses)
			uses = append(uses, Use{Policy: c.Policy, Version: c.Version, Digest: c.Digest, Hook: c.Hook})
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

// Observe records an outcome. Workers call it on their own goroutine; it never blocks.
func (m *Manager) Observe(d scheduler.Decision) {
	out := d.Outcome
	m.metrics.count(out)
	if out.Fault != nil {
		m.observeFault(d)
	}
	if len(out.Calls) == 0 {
		return // no policy was called
	}
	decision := newDecision(d)
	m.history.add(decision)
	m.shadows.offer(d, decision)
}

func newDecision(d scheduler.Decision) *Decision {
	out := d.Outcome
	r := &Decision{
		Time: out.Plan.Now, Index: d.Snap.Index(), EvalID: d.Eval.ID, Namespace: d.Eval.Namespace, JobID: d.Eval.JobID,
		Uses: Uses(out.Calls), Victims: victims(out),
	}
	if v := out.Version; v != nil {
		r.Policy, r.Version, r.Digest = v.Name, v.ID, v.Digest
	}
	if out.Fault != nil {
		r.Fault = out.Fault.Error()
	}
	return r
}

// victims returns the IDs of the allocations that an outcome evicts, in ascending order.
func victims(out *scheduler.Outcome) []string {
	var ids []string
	for i := range out.Plan.Groups {
		for _, e := range out.Plan.Groups[i].Evictions {
			ids = append(ids, e.AllocID)
		}
	}
	slices.Sort(ids)
	return ids
}

// observeFault trips an active version if its faults have opened its circuit breaker.
func (m *Manager) observeFault(d scheduler.Decision) {
	fault, ok := errors.AsType[*policy.Error](d.Outcome.Fault)
	if !ok {
		return
	}
	e, _ := m.versions.get(fault.Version)
	v := e.opened
	if v == nil || v.Breaker.OpenError(d.Outcome.Plan.Now) == nil || !m.active.isActive(v) {
		return
	}
	select {
	case m.trips <- trip{v.Name, v.ID, fault.Error()}:
	default: // the queue is full; the next fault tries again
	}
}
