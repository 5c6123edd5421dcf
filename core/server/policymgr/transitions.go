package policymgr

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/replication"
	"github.com/cede-scheduler/cede/core/server/apierror"
	"github.com/cede-scheduler/cede/core/server/audit"
)

// roleOf returns the role of a version, as text; "" if it has none.
func roleOf(s *model.PolicyState, id string) string {
	switch {
	case s == nil:
	case s.Active == id:
		return "active"
	case s.Previous == id:
		return "the version that a rollback activates"
	case s.Shadow == id:
		return "a shadow"
	}
	return ""
}

// activate activates a version, for good or for the duration of a trial.
func (m *Manager) activate(ctx context.Context, name, version string, trial time.Duration) (uint64, error) {
	v, err := m.changeableVersion(name, version)
	if err != nil {
		return 0, err
	}
	if err := m.checkActivatable(v); err != nil {
		return 0, err
	}
	if s := m.cfg.Store.Snapshot().PolicyState(name); s != nil && s.Tripped[v.ID] != "" {
		return 0, apierror.New(apierror.CodeConflict, "%s@%s was disabled because of faults: %s", name, model.ShortVersion(v.ID), s.Tripped[v.ID]).
			WithHint("load a corrected module, or allow this one again: cede policy activate %s@%s --reset", name, model.ShortVersion(v.ID))
	}
	change := &replication.ChangePolicy{Name: name, Op: replication.OpActivate, Version: v.ID}
	if trial > 0 {
		change.Until = m.cfg.Clock.Now().Add(trial).UnixNano()
	}
	return m.change(ctx, change)
}

// changeableVersion returns a version by a prefix of its ID. It fails if this server does
// not lead.
func (m *Manager) changeableVersion(name, version string) (*model.PolicyVersion, error) {
	if err := m.cfg.CheckLeader(); err != nil {
		return nil, err
	}
	return findVersion(m.cfg.Store.Snapshot(), name, version)
}

// checkActivatable returns an error that lists the required servers which have not
// checked a version, or have rejected it.
func (m *Manager) checkActivatable(v *model.PolicyVersion) error {
	details := map[string]any{}
	var reasons []string
	for _, id := range m.requiredServers() {
		switch check, checked := v.Checks[id]; {
		case !checked:
			reasons = append(reasons, fmt.Sprintf("server %s has not checked it yet", id))
			details[id] = "unchecked"
		case !check.OK:
			reasons = append(reasons, fmt.Sprintf("server %s rejected it: %s", id, check.Error))
			details[id] = check.Error
		}
	}
	if len(reasons) == 0 {
		return nil
	}
	return apierror.New(apierror.CodeConflict, "cannot activate %s@%s: %s", v.Name, model.ShortVersion(v.ID), strings.Join(reasons, "; ")).
		WithHint("cede policy status %s shows the check of every server", v.Name).WithDetails(map[string]any{"Checks": details})
}

// change writes a change into the log and updates the active set of this server.
func (m *Manager) change(ctx context.Context, c *replication.ChangePolicy) (uint64, error) {
	if m.cfg.Store.Snapshot().Meta().Version < actorsFrom {
		c.Actor = "" // an older release would refuse the entry
	} else if c.Actor == "" {
		origin, _ := audit.OriginOf(ctx)
		c.Actor = origin.Actor
	}
	result, err := m.apply(ctx, c)
	if refusal, ok := errors.AsType[*replication.Refusal](err); ok {
		return 0, apierror.Refused(refusal)
	}
	if err != nil {
		return 0, m.unwritten(err)
	}
	m.active.update()
	m.wakeUp()
	return result.Index, nil
}

// actorsFrom is the first cluster version with actors in its entries.
const actorsFrom = 2

// A trip is an active version with an open circuit breaker.
type trip struct{ name, version, reason string }

// trip reports to the cluster that a version keeps failing, so that the last good version
// is activated.
func (m *Manager) trip(ctx context.Context, t trip) {
	s := m.cfg.Store.Snapshot().PolicyState(t.name)
	if s == nil || s.Active != t.version {
		return // no longer active
	}
	m.cfg.Logger.WarnContext(ctx, "policy disabled because of faults", "policy", t.name, "version", t.version, "reason", t.reason)
	_, err := m.change(ctx, &replication.ChangePolicy{Name: t.name, Op: replication.OpTrip, Version: t.version, Reason: t.reason})
	if err != nil {
		m.cfg.Logger.WarnContext(ctx, "failed to disable policy", "policy", t.name, "version", t.version, "err", err)
	}
}

// endTrials advances, on the leader, trials with blocks, and rolls back versions if their
// trial has ended. It returns the time until it must be called again.
func (m *Manager) endTrials(ctx context.Context, states []*model.PolicyState) (next time.Duration) {
	if !m.cfg.Log.IsLeader() {
		return m.untilNextTrial(states) // this server may lead by then
	}
	for _, s := range states {
		for block := true; block; { // the end of a block may end the trial
			change := m.trials.next(ctx, s, m.cfg.Store.Snapshot().PolicyTrial(s.Name), m.cfg.Clock.Now().UnixNano())
			if change == nil {
				break
			}
			change.Name, change.Actor = s.Name, model.TrialActor
			_, err := m.change(ctx, change)
			if err != nil {
				m.cfg.Logger.WarnContext(ctx, "failed to end policy trial or block", "policy", s.Name, "err", err)
			}
			block = err == nil && change.Op == replication.OpBlock
		}
	}
	return m.untilNextTrial(m.cfg.Store.Snapshot().PolicyStates())
}

// untilNextTrial returns the time until a trial or its block ends, or retryInterval if one has ended
// and was not rolled back; 0: there is none.
func (m *Manager) untilNextTrial(states []*model.PolicyState) (next time.Duration) {
	now := m.cfg.Clock.Now().UnixNano()
	for _, s := range states {
		if s.Until == 0 {
			continue
		}
		t := m.cfg.Store.Snapshot().PolicyTrial(s.Name)
		left := time.Duration(expiry(t, s.Until) - now)
		if t.Running() {
			left = min(left, time.Duration(t.BlockEnd()-now))
		}
		if left <= 0 {
			left = retryInterval
		}
		if next == 0 || left < next {
			next = left
		}
	}
	return next
}
