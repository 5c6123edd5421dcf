package policymgr

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/cede-scheduler/cede/core/model"
	"github.com/cede-scheduler/cede/core/policy"
	"github.com/cede-scheduler/cede/core/server/apierror"
	"github.com/cede-scheduler/cede/core/state"
	"github.com/cede-scheduler/cede/core/trial"
)

// maxStatusDecisions is how many of the newest decisions a status contains.
const maxStatusDecisions = 20

// Status is the status of a policy, in the cluster and on the server that answers.
type Status struct {
	Name    string
	Builtin bool // a policy of this name is linked in, and is active unless State names another
	// State holds the roles of the versions; nil if none ever had a role.
	State    *model.PolicyState
	Versions []*model.PolicyVersion // that are loaded, the newest first
	// Trial is the trial with blocks in progress, or the last one; nil if there was none.
	// Summary holds its measures.
	Trial   *model.PolicyTrial
	Summary *trial.Summary
	// Idle is the reason for which a trial in progress would measure no victims at present;
	// "" if there is none.
	Idle string
	// Awaited holds, by version ID and server ID, the reason for which a server has not
	// checked a version.
	Awaited map[string]map[string]string

	// Here is the version that is active on this server; nil if there is none.
	Here *ActiveVersion
	// Ready lists the versions that this server has opened, by ID; Refused holds the
	// reasons for which it could not open others.
	Ready   []string
	Refused map[string]string

	Shadow    *ShadowStatus // nil if there is no shadow run
	Decisions []*Decision   // of this server, the newest first
	Lost      int64         // records that were dropped, of all policies
}

// ActiveVersion is the version that is active under a name on one server, with counts
// since it was opened and tested there.
type ActiveVersion struct {
	Version, Digest string
	Kind            string // builtin if the cluster has loaded none
	Calls, Faults   int64
	Fallbacks       int64  // evaluations in which default decided instead
	Open            string // reason for which it is not called at present; "" while it is
	Isolation       string // its sandbox on this server; see policy.Version.Isolation
}

// PolicyStatus returns the status of one policy.
func (p *Policies) PolicyStatus(_ context.Context, name string) (*Status, error) {
	known := p.m.names()
	if !slices.Contains(known, name) {
		return nil, apierror.New(apierror.CodeNotFound, "no policy %q", name).WithHint("the policies are %s", strings.Join(known, ", "))
	}
	return p.status(name), nil
}

// PolicyStatuses returns the status of every policy, ascending by name.
func (p *Policies) PolicyStatuses(context.Context) []*Status {
	var list []*Status
	for _, name := range p.m.names() {
		list = append(list, p.status(name))
	}
	return list
}

func (p *Policies) status(name string) *Status {
	st := p.m.status(name)
	st.Awaited = map[string]map[string]string{}
	for _, v := range st.Versions {
		if awaited := p.AwaitedChecks(v); len(awaited) > 0 {
			st.Awaited[v.ID] = awaited
		}
	}
	return st
}

// names returns the names of the policies that are linked in, loaded, or have a role, in
// ascending order.
func (m *Manager) names() []string {
	names := map[string]bool{}
	for name := range m.active.builtins {
		names[name] = true
	}
	snap := m.cfg.Store.Snapshot()
	for _, v := range snap.PolicyVersions() {
		names[v.Name] = true
	}
	for _, s := range snap.PolicyStates() {
		names[s.Name] = true
	}
	return slices.Sorted(maps.Keys(names))
}

func (m *Manager) status(name string) *Status {
	snap := m.cfg.Store.Snapshot()
	st := &Status{
		Name: name, Builtin: m.active.builtins[name] != nil, State: snap.PolicyState(name), Versions: versionsOf(snap, name),
		Here: m.activeVersion(name), Shadow: m.shadows.status(name), Refused: map[string]string{},
	}
	if st.Trial = snap.PolicyTrial(name); st.Trial != nil {
		st.Summary = m.trials.summaries.of(st.Trial)
		if st.Trial.Running() {
			st.Idle = idleReason(snap, name)
		}
	}
	st.Decisions, st.Lost = m.history.recentOf(name, maxStatusDecisions)
	for _, v := range st.Versions {
		if e, _ := m.versions.get(v.ID); e.opened != nil {
			st.Ready = append(st.Ready, v.ID)
		} else if e.failure != "" {
			st.Refused[v.ID] = e.failure
		}
	}
	return st
}

// activeVersion returns the version that is active under a name on this server, or nil.
func (m *Manager) activeVersion(name string) *ActiveVersion {
	set := m.Pin()
	defer set.Unpin()
	versions := set.Versions()
	i := slices.IndexFunc(versions, func(v *policy.Version) bool { return v.Name == name })
	if i < 0 {
		return nil
	}
	v := versions[i]
	h := &ActiveVersion{Version: v.ID, Digest: v.Digest, Kind: model.PolicyBuiltin, Fallbacks: v.Fallbacks(), Isolation: v.Isolation()}
	h.Calls, h.Faults = v.Stats()
	// A builtin policy that was loaded as well has a second version with the same ID, and
	// only that one was tested.
	if e, _ := m.versions.get(v.ID); e.opened == v {
		h.Calls -= e.testCalls
	}
	if loaded := m.cfg.Store.Snapshot().PolicyVersion(v.ID); loaded != nil {
		h.Kind = loaded.Kind
	}
	if err := v.Breaker.OpenError(m.cfg.Clock.Now().UnixNano()); err != nil {
		h.Open = err.Error()
	}
	return h
}

// idleReason returns the reason for which a policy decides nothing in a state, or "".
func idleReason(snap *state.Snapshot, name string) string {
	config := snap.Config()
	if !slices.Contains(config.Preemption[:], true) {
		return "preemption is off for every type of job, so that no version evicts"
	}
	if config.PolicyOf(&model.Job{}) == name {
		return ""
	}
	for j := range snap.Jobs() {
		if j.Policy == name && !j.Stopped {
			return ""
		}
	}
	return "no job uses policy " + name + ", so that the trial measures nothing"
}
