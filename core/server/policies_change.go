package server

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/server/apierror"
	"github.com/cede-scheduler/cede/core/state"
)

// ShadowPolicy lets a version of a policy decide beside the active one: what it
// would do is compared and nothing of it is applied. An empty version ends that.
// A version may be named by a unique prefix of its id.
func (s *Server) ShadowPolicy(ctx context.Context, name, version string) (index uint64, err error) {
	if version == "" {
		if st := s.Snapshot().PolicyState(name); st == nil || st.Shadow == "" {
			return 0, apierror.New(apierror.CodeConflict, "no version of policy %q runs in the shadow", name).WithHint("name a version to begin that")
		}
		return s.policies.change(ctx, &replication.ChangePolicy{Name: name, Op: replication.OpUnshadow})
	}
	v, err := s.policies.changeable(name, version)
	if err != nil {
		return 0, err
	}
	if err := s.policies.mayDecide(v); err != nil {
		return 0, err
	}
	return s.policies.change(ctx, &replication.ChangePolicy{Name: name, Op: replication.OpShadow, Version: v.ID})
}

// ActivatePolicy makes a version of a policy the one that decides, in one step
// for every evaluation that begins after it. Every server that must has to have
// checked it. For a version that is on trial it ends the trial: it stays.
func (s *Server) ActivatePolicy(ctx context.Context, name, version string) (index uint64, err error) {
	return s.policies.activate(ctx, name, version, 0)
}

// TryPolicy is ActivatePolicy for a while: the leader rolls back when it is over,
// unless the version is activated again before.
func (s *Server) TryPolicy(ctx context.Context, name, version string, trial time.Duration) (index uint64, err error) {
	const longest = 30 * 24 * time.Hour
	if trial <= 0 || trial > longest {
		return 0, apierror.New(apierror.CodeInvalid, "a trial of %v makes no sense", trial).WithHint("want a duration of up to 30 days, such as 10m")
	}
	return s.policies.activate(ctx, name, version, trial)
}

// RollbackPolicy makes the version decide that did before the active one.
func (s *Server) RollbackPolicy(ctx context.Context, name string) (index uint64, err error) {
	if err := s.policies.leads(); err != nil {
		return 0, err
	}
	return s.policies.change(ctx, &replication.ChangePolicy{Name: name, Op: replication.OpRollback})
}

// UnloadPolicy forgets a version that plays no role, and its module with the last
// version of it.
func (s *Server) UnloadPolicy(ctx context.Context, name, version string) (index uint64, err error) {
	p := s.policies
	v, err := p.changeable(name, version)
	if err != nil {
		return 0, err
	}
	if role := roleOf(p.store.Snapshot().PolicyState(name), v.ID); role != "" {
		return 0, apierror.New(apierror.CodeConflict, "%s@%s is %s", name, shortVersion(v.ID), role).
			WithHint("a version that is active, previous or in a shadow run is kept; end that first")
	}
	return p.change(ctx, &replication.ChangePolicy{Name: name, Op: replication.OpUnload, Version: v.ID})
}

// ResetPolicy lets a version be activated again that was taken out of service
// because of its faults; an empty version means every one of the policy.
func (s *Server) ResetPolicy(ctx context.Context, name, version string) (index uint64, err error) {
	p := s.policies
	if err := p.leads(); err != nil {
		return 0, err
	}
	change := &replication.ChangePolicy{Name: name, Op: replication.OpReset}
	if version != "" {
		v, err := p.version(name, version)
		if err != nil {
			return 0, err
		}
		change.Version = v.ID
	}
	return p.change(ctx, change)
}

// roleOf is the role that a version plays; "" for none.
func roleOf(s *model.PolicyState, id string) string {
	switch {
	case s == nil:
	case s.Active == id:
		return "active"
	case s.Previous == id:
		return "what a rollback returns to"
	case s.Shadow == id:
		return "in a shadow run"
	}
	return ""
}

func (p *policies) activate(ctx context.Context, name, version string, trial time.Duration) (uint64, error) {
	v, err := p.changeable(name, version)
	if err != nil {
		return 0, err
	}
	if err := p.mayDecide(v); err != nil {
		return 0, err
	}
	if s := p.store.Snapshot().PolicyState(name); s != nil && s.Tripped[v.ID] != "" {
		return 0, apierror.New(apierror.CodeConflict, "%s@%s was taken out of service: %s", name, shortVersion(v.ID), s.Tripped[v.ID]).
			WithHint("load a corrected module, or allow this one again: cede policy activate %s@%s --reset", name, shortVersion(v.ID))
	}
	change := &replication.ChangePolicy{Name: name, Op: replication.OpActivate, Version: v.ID}
	if trial > 0 {
		change.Until = p.clock.Now().Add(trial).UnixNano()
	}
	return p.change(ctx, change)
}

// changeable finds a version on the leader.
func (p *policies) changeable(name, version string) (*model.PolicyVersion, error) {
	if err := p.leads(); err != nil {
		return nil, err
	}
	return p.version(name, version)
}

// mayDecide is nil when every server that must has checked the version and found
// nothing.
func (p *policies) mayDecide(v *model.PolicyVersion) error {
	details := map[string]any{}
	var words []string
	for _, id := range p.required() {
		switch check, checked := v.Checks[id]; {
		case !checked:
			words = append(words, fmt.Sprintf("server %s has not checked it yet", id))
			details[id] = "unchecked"
		case !check.OK:
			words = append(words, fmt.Sprintf("server %s refused it: %s", id, check.Error))
			details[id] = check.Error
		}
	}
	if len(words) == 0 {
		return nil
	}
	e := apierror.New(apierror.CodeConflict, "%s@%s may not decide: %s", v.Name, shortVersion(v.ID), strings.Join(words, "; "))
	e.Hint = fmt.Sprintf("cede policy status %s shows every server's check", v.Name)
	return e.WithDetails(map[string]any{"Checks": details})
}

// change writes a change into the log and puts what comes of it in force here.
func (p *policies) change(ctx context.Context, c *replication.ChangePolicy) (uint64, error) {
	result, err := p.apply(ctx, c)
	if refusal, ok := errors.AsType[*replication.Refusal](err); ok {
		return 0, apierror.Refused(refusal)
	}
	if err != nil {
		return 0, p.unwritten(err)
	}
	p.follow()
	p.look()
	return result.Index, nil
}

// version finds a version of a policy by a unique prefix of its id, with or
// without what names the hash.
func (p *policies) version(name, prefix string) (*model.PolicyVersion, error) {
	snap := p.store.Snapshot()
	var found []*model.PolicyVersion
	loaded := map[string]bool{}
	for _, v := range snap.PolicyVersions() {
		loaded[v.Name] = true
		if v.Name == name && hasPrefix(v.ID, prefix) {
			found = append(found, v)
		}
	}
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) > 1:
		return nil, apierror.New(apierror.CodeInvalid, "%s@%s could be any of %d versions: %s", name, prefix, len(found), shortVersions(found)).
			WithHint("write more of its digits")
	case !loaded[name]:
		return nil, apierror.New(apierror.CodeNotFound, "no version of policy %q is loaded", name).WithHint("%s", loadedHint(slices.Sorted(maps.Keys(loaded))))
	}
	return nil, apierror.New(apierror.CodeNotFound, "policy %s has no version %s", name, prefix).
		WithHint("loaded are %s", shortVersions(versionsOf(snap, name)))
}

func hasPrefix(id, prefix string) bool {
	const hash = "sha256:"
	return prefix != "" && strings.HasPrefix(strings.TrimPrefix(id, hash), strings.TrimPrefix(prefix, hash))
}

func loadedHint(names []string) string {
	if len(names) == 0 {
		return "cede policy load brings one"
	}
	return "loaded are versions of " + strings.Join(names, ", ")
}

// versionsOf is the versions of a policy, the newest first.
func versionsOf(snap *state.Snapshot, name string) []*model.PolicyVersion {
	var list []*model.PolicyVersion
	for _, v := range snap.PolicyVersions() {
		if v.Name == name {
			list = append(list, v)
		}
	}
	slices.SortStableFunc(list, func(a, b *model.PolicyVersion) int {
		switch {
		case a.CreateIndex > b.CreateIndex:
			return -1
		case a.CreateIndex < b.CreateIndex:
			return 1
		}
		return 0
	})
	return list
}

func shortVersions(list []*model.PolicyVersion) string {
	var words []string
	for _, v := range list {
		words = append(words, shortVersion(v.ID))
	}
	return strings.Join(words, ", ")
}

// trip is a version whose breaker has opened while it was active.
type trip struct{ name, version, reason string }

// trip tells the cluster that a version keeps failing: it is taken out of
// service, and the last good one decides.
func (p *policies) trip(ctx context.Context, t trip) {
	s := p.store.Snapshot().PolicyState(t.name)
	if s == nil || s.Active != t.version {
		return // it is out of service already
	}
	p.logger.WarnContext(ctx, "policy taken out of service", "policy", t.name, "version", t.version, "reason", t.reason)
	_, err := p.change(ctx, &replication.ChangePolicy{Name: t.name, Op: replication.OpTrip, Version: t.version, Reason: t.reason})
	if err != nil {
		p.logger.WarnContext(ctx, "policy stays in service", "policy", t.name, "version", t.version, "err", err)
	}
}

// endTrials rolls back, where this server leads, what was on trial and was not
// confirmed. It returns when the next trial ends.
func (p *policies) endTrials(ctx context.Context, states []*model.PolicyState) (next time.Duration) {
	if !p.log.IsLeader() {
		return p.nextTrial(states, policyRetry) // whoever leads then does it; this may be us
	}
	for _, s := range states {
		if s.Until == 0 || s.Until > p.clock.Now().UnixNano() {
			continue
		}
		p.logger.InfoContext(ctx, "trial of a policy is over", "policy", s.Name, "version", s.Active)
		_, err := p.change(ctx, &replication.ChangePolicy{Name: s.Name, Op: replication.OpRollback, Until: s.Until})
		if err != nil {
			p.logger.WarnContext(ctx, "policy not rolled back", "policy", s.Name, "err", err)
		}
	}
	return p.nextTrial(p.store.Snapshot().PolicyStates(), policyRetry)
}

// nextTrial is how long it is until a trial ends, at least soonest; 0: there is
// none.
func (p *policies) nextTrial(states []*model.PolicyState, soonest time.Duration) (next time.Duration) {
	now := p.clock.Now().UnixNano()
	for _, s := range states {
		if s.Until == 0 {
			continue
		}
		left := time.Duration(s.Until - now)
		if left <= 0 {
			left = soonest // it could not be done; try again
		}
		if next == 0 || left < next {
			next = left
		}
	}
	return next
}

// worthTripping is whether a fault opened the breaker of a version that decides
// here under a name of the state: what is built in has nothing to go back to.
func (p *policies) worthTripping(v *policy.Version) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Contains(p.inForce, inForce{v.Name, v.ID}) && p.opened[v.ID] == v
}
