package policymgr

import (
	"context"
	"errors"
	"time"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/server/apierror"
)

// checkInProgress is the reason for which a running server has not reported a check.
const checkInProgress = "the check is in progress"

// Policies are the calls of the API about policies.
type Policies struct {
	m *Manager
	// explain returns the reason for which another server has not checked a version, and
	// the remedy; "": the check is in progress.
	explain func(serverID string) string
}

// NewPolicies returns the calls of the API. explain returns the reason for which a server
// has not checked a version, with the remedy, or "" if its check is in progress.
func NewPolicies(m *Manager, explain func(serverID string) string) *Policies {
	return &Policies{m: m, explain: explain}
}

// LoadPolicy loads a policy into the cluster. It returns when every required server has
// checked it, or when the context or r.Wait ends: then AwaitedChecks returns the servers
// that are missing. The policy decides nothing before it is activated. Loading the same
// policy again changes nothing; a server that rejected it tries again.
func (p *Policies) LoadPolicy(ctx context.Context, r policy.LoadRequest) (*model.PolicyVersion, error) {
	return p.m.load(ctx, r)
}

// AwaitedChecks returns the servers that must still check a version, each with the reason
// as far as this server can determine it. It is empty if every required server has.
func (p *Policies) AwaitedChecks(v *model.PolicyVersion) map[string]string {
	awaited := map[string]string{}
	for _, id := range p.m.uncheckedBy(v) {
		awaited[id] = checkInProgress
		if reason := p.explain(id); reason != "" {
			awaited[id] = reason
		}
	}
	own := p.m.cfg.ServerID
	if p.m.cfg.CheckLeader() == nil && awaited[own] == "" && !p.m.isReported(v) {
		awaited[own] = checkInProgress
	}
	return awaited
}

// ShadowPolicy runs a version of a policy as the shadow of the active one: its decisions
// are compared and not applied. An empty version ends the shadow run. A version may be
// named by a unique prefix of its ID.
func (p *Policies) ShadowPolicy(ctx context.Context, name, version string) (index uint64, err error) {
	if version == "" {
		if st := p.m.cfg.Store.Snapshot().PolicyState(name); st == nil || st.Shadow == "" {
			return 0, apierror.New(apierror.CodeConflict, "policy %q has no shadow run", name).WithHint("name a version to start one")
		}
		return p.m.change(ctx, &replication.ChangePolicy{Name: name, Op: replication.OpUnshadow})
	}
	v, err := p.m.changeableVersion(name, version)
	if err != nil {
		return 0, err
	}
	if err := p.m.checkActivatable(v); err != nil {
		return 0, err
	}
	return p.m.change(ctx, &replication.ChangePolicy{Name: name, Op: replication.OpShadow, Version: v.ID})
}

// ActivatePolicy activates a version of a policy, in one step for every evaluation that
// starts afterwards. Every required server must have checked it. If the version is on
// trial, the trial ends and it stays active.
func (p *Policies) ActivatePolicy(ctx context.Context, name, version string) (index uint64, err error) {
	return p.m.activate(ctx, name, version, 0)
}

// TryPolicy is ActivatePolicy for a limited time. The leader rolls back when it is over,
// unless the version is activated again before.
func (p *Policies) TryPolicy(ctx context.Context, name, version string, trial time.Duration) (index uint64, err error) {
	const longest = 30 * 24 * time.Hour
	if trial <= 0 || trial > longest {
		return 0, apierror.New(apierror.CodeInvalid, "invalid trial duration %v", trial).WithHint("use a duration of up to 30 days, such as 10m")
	}
	return p.m.activate(ctx, name, version, trial)
}

// RollbackPolicy activates the version that was active before.
func (p *Policies) RollbackPolicy(ctx context.Context, name string) (index uint64, err error) {
	if err := p.m.cfg.CheckLeader(); err != nil {
		return 0, err
	}
	index, err = p.m.change(ctx, &replication.ChangePolicy{Name: name, Op: replication.OpRollback})
	if refusal, ok := errors.AsType[*apierror.Error](err); ok && refusal.Hint == "" {
		if s := p.m.cfg.Store.Snapshot().PolicyState(name); s != nil && s.Active != "" && s.Previous == "" && p.m.active.builtins[name] != nil {
			return 0, refusal.WithHint("to return to the built-in policy: cede policy load %s --activate", name)
		}
		return 0, refusal.WithHint("activate a version instead: cede policy activate %s@VERSION; cede policy list shows the loaded policies", name)
	}
	return index, err
}

// UnloadPolicy removes a version that has no role. Its module is removed with the last
// version that uses it.
func (p *Policies) UnloadPolicy(ctx context.Context, name, version string) (index uint64, err error) {
	v, err := p.m.changeableVersion(name, version)
	if err != nil {
		return 0, err
	}
	if role := roleOf(p.m.cfg.Store.Snapshot().PolicyState(name), v.ID); role != "" {
		return 0, apierror.New(apierror.CodeConflict, "%s@%s is %s", name, model.ShortVersion(v.ID), role).
			WithHint("a version that is active, previous or a shadow cannot be unloaded; end that role first")
	}
	return p.m.change(ctx, &replication.ChangePolicy{Name: name, Op: replication.OpUnload, Version: v.ID})
}

// ResetPolicy allows a version to be activated again that was disabled because of its
// faults. An empty version resets all versions of the policy.
func (p *Policies) ResetPolicy(ctx context.Context, name, version string) (index uint64, err error) {
	if err := p.m.cfg.CheckLeader(); err != nil {
		return 0, err
	}
	change := &replication.ChangePolicy{Name: name, Op: replication.OpReset}
	if version != "" {
		v, err := findVersion(p.m.cfg.Store.Snapshot(), name, version)
		if err != nil {
			return 0, err
		}
		change.Version = v.ID
	}
	return p.m.change(ctx, change)
}

// PolicyModule returns a version and its module, after verifying the digest. The version
// may be named by a unique prefix of its ID; "" is the active one, or the only one that
// is loaded.
func (p *Policies) PolicyModule(_ context.Context, name, version string) (*model.PolicyVersion, []byte, error) {
	v, err := p.m.defaultVersion(name, version)
	if err != nil {
		return nil, nil, err
	}
	switch v.Kind {
	case model.PolicyBuiltin:
		return nil, nil, apierror.New(apierror.CodeConflict, "%s@%s is a builtin policy and has no module", name, model.ShortVersion(v.ID)).
			WithHint("every cede of the same release contains it")
	case model.PolicyProcess:
		return nil, nil, apierror.New(apierror.CodeConflict, "%s@%s is an executable, of which each server has its own copy", name, model.ShortVersion(v.ID)).
			WithHint("use the one with checksum %s", v.Digest)
	}
	module, err := p.m.module(v)
	if err != nil {
		return nil, nil, apierror.New(apierror.CodeUnavailable, "%s@%s: %v", name, model.ShortVersion(v.ID), err).WithHint("send the request to another server")
	}
	return v, module, nil
}
